"""The `session.update` that a client of OpenAI Realtime sends, in each of its shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from voxmeter.endpoints.codec import Json
from voxmeter.endpoints.openai_options import Object, Wanted, put
from voxmeter.endpoints.option_table import OptionTable, laid_over


def update(wanted: Wanted) -> Object:
    """Return the fields of `session.update`, besides its type and id.

    Raises:
        UserError: If an option has a value that it cannot have.
    """
    shapes = {"ga": _ga, "legacy": _legacy, "bare": _bare}
    options = wanted.options
    session = laid_over(shapes[wanted.shape](wanted), _filled(options.table("session"), wanted))
    event: Object = {"session": session} if session else {}
    return laid_over(event, _filled(options.table("update"), wanted))


def _filled(table: Mapping[str, Json], wanted: Wanted) -> Object:
    """Return a table with what the session is to be filled into its texts."""
    settings = wanted.settings
    known = {"model": settings.model, "instructions": settings.instructions}
    known["voice"] = settings.voice

    def fill(value: Json) -> Json:
        if isinstance(value, dict):
            return {name: fill(one) for name, one in value.items()}
        if isinstance(value, list):
            return [fill(one) for one in value]
        if isinstance(value, str):
            for name, text in known.items():
                if value == f"{{{name}}}":  # only whole: instructions may hold braces themselves
                    return text
        return value

    return cast("Object", fill(dict(table)))


def _detection(wanted: Wanted) -> Json:
    """Return the turn detection as it is sent; without one, by the server's word for none."""
    word = wanted.options.choice("no_detection", ("null", "client_vad", "none"), "null")
    if wanted.detection is not None or word == "null":
        return wanted.detection
    return {"type": word}


def _ga(wanted: Wanted) -> Object:
    options, voice = wanted.options, wanted.settings.voice or None
    flat = options.flag("flat_session", default=False)
    inward: Object = {}
    put(inward, "format", wanted.input.json("ga"))
    put(inward, "transcription", _named(options, "transcription", "model"))
    put(inward, "noise_reduction", _named(options, "noise_reduction", "type"))
    outward: Object = {}
    put(outward, "format", wanted.output.json("ga"))
    put(outward, "speed", options.number("speed"))
    session: Object = {
        "type": "realtime",
        "output_modalities": [wanted.modality],
        "audio": {"input": inward, "output": outward},
    }
    put(session if flat else outward, "voice", voice)
    (session if flat else inward)["turn_detection"] = _detection(wanted)
    put(session, "instructions", wanted.settings.instructions or None)
    put(session, "max_output_tokens", _tokens(options))
    effort = options.text("reasoning_effort")
    put(session, "reasoning", {"effort": effort} if effort else None)
    return session


def _legacy(wanted: Wanted) -> Object:
    options = wanted.options
    session: Object = {
        "modalities": ["text"] if wanted.modality == "text" else ["text", "audio"],
        "turn_detection": _detection(wanted),
    }
    put(session, "input_audio_format", wanted.input.json("legacy"))
    put(session, "output_audio_format", wanted.output.json("legacy"))
    put(session, "instructions", wanted.settings.instructions or None)
    put(session, "voice", wanted.settings.voice or None)
    put(session, "speed", options.number("speed"))
    put(session, "temperature", wanted.settings.temperature)
    put(session, "input_audio_transcription", _named(options, "transcription", "model"))
    put(session, "input_audio_noise_reduction", _named(options, "noise_reduction", "type"))
    put(session, "max_response_output_tokens", _tokens(options))
    return session


def _bare(wanted: Wanted) -> Object:
    session: Object = {}
    put(session, "instructions", wanted.settings.instructions or None)
    put(session, "voice", wanted.settings.voice or None)
    return session


def _named(options: OptionTable, name: str, key: str) -> Json:
    """Return an object given whole, or by its one important field."""
    value = options.value(name)
    if isinstance(value, str):
        return {key: value}
    if value is not None and not isinstance(value, dict):
        raise options.wrong(name, f"a string or a table with {key}")
    return value


def _tokens(options: OptionTable) -> Json:
    value = options.value("max_output_tokens")
    number = isinstance(value, int) and not isinstance(value, bool) and value > 0
    if value not in (None, "inf") and not number:
        raise options.wrong("max_output_tokens", "a whole number above 0, or 'inf'")
    return value
