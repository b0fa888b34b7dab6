"""The options of kind `openai-realtime`, checked: every way in which its servers differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from voxmeter.endpoints.codec import Json, Settings, TurnEnd
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.events import Encoding
from voxmeter.endpoints.openai_dialect import (
    NO_DETECTION,
    PROTOCOL,
    WAV_RATE,
    Dialect,
    Format,
    Side,
    format_of,
)
from voxmeter.endpoints.option_table import OptionTable

Object = dict[str, Json]
Shape = Literal["ga", "legacy", "bare"]

_ENCODINGS: Mapping[Side, Sequence[str]] = {
    "input": ("pcm16", "pcmu", "pcma", "wav", "opus"),
    "output": ("pcm16", "pcmu", "pcma", "opus"),
}
_DETECTION = ("threshold", "prefix_padding_ms", "silence_duration_ms", "idle_timeout_ms")
_OPUS_FRAME_MS = 40
OPTIONS = {
    "dialect": "'ga' (default) or 'legacy': the spelling that is sent; both are understood. "
    "'bare': a session of instructions, voice and what `session` adds, and no items",
    "flat_session": "true: voice and turn_detection at the top of a GA session",
    "output_modalities": "'audio' (default; with its transcript) or 'text': replies without audio",
    "input_encoding": "'pcm16' (default), 'pcmu' or 'pcma' (8 kHz telephone audio), 'wav' (each "
    "append is a WAV file) or 'opus' (Ogg pages)",
    "output_encoding": "'pcm16' (default), 'pcmu', 'pcma' or 'opus', for the reply",
    "input_word": "the word by which a legacy session names what is sent, if not pcm16 and so on; "
    "'none': the session names no format, and the server's own must be input_rate",
    "output_word": "the same for the reply",
    "frame_ms": "how much audio one append holds: 20 (default; 40 with Opus), 40, 60, 80 or 100",
    "speed": "speaking speed, 0.25 to 1.5",
    "turn_detection": "'server_vad' (default), 'semantic_vad' or a word of the server's own; "
    "turn_end = 'commit' turns it off",
    "no_detection": "how turn_end = 'commit' is written: 'null' (default), 'client_vad' or 'none'",
    "threshold": "of server_vad, 0 to 1",
    "prefix_padding_ms": "audio that server_vad keeps before the speech, ms",
    "silence_duration_ms": "quiet that ends a turn by server_vad, ms",
    "idle_timeout_ms": "of server_vad: quiet after a reply until the server speaks again, ms",
    "eagerness": "of semantic_vad: 'low', 'medium', 'high' or 'auto'",
    "create_response": "false: the server closes turns, the client asks for the reply",
    "interrupt_response": "false: speech during a reply does not stop it",
    "commit": "'ask' (default): a commit, then response.create; 'alone': the commit asks; 'turns': "
    "commit {final: false} before the first audio, commit {final: true} behind the last",
    "reply_end": "'response.done' (default) or 'audio.done', for servers whose replies are no "
    "responses: then none is asked for, cancelled or cut",
    "ready": "audio flows once the session is 'updated' (default), is 'created' (for servers that "
    "confirm nothing), or was 'sent' (for servers that say nothing at first)",
    "first_speaker": "'user' (default), or 'endpoint': hear a greeting out before the question",
    "transcription": "name of a model that writes down the question, or a whole table",
    "noise_reduction": "'near_field' or 'far_field', or a whole table",
    "reasoning_effort": "'minimal' to 'xhigh', for models that reason",
    "max_output_tokens": "a whole number, or 'inf'",
    "query": "a table of what the URL's query carries; '{model}' is filled in (default: "
    "model = '{model}')",
    "key_header": "header that carries the key, bare, in place of 'Authorization: Bearer KEY'; or "
    "'NAME: WORDS {key}'",
    "beta_header": "whether 'OpenAI-Beta: realtime=v1' is sent; by default with 'legacy'",
    "subprotocols": "a list of websocket sub-protocols to offer",
    "send_tag": "whether the URL carries the session's tag; by default only on this machine",
    "timestamp_field": "a field of every event that counts the audio sent so far, ms",
    "ignore": "a list of server events that are not even looked at",
    "session": "a table laid over the whole session object, for fields that are not listed here; "
    "'{model}', '{instructions}' and '{voice}' are filled in",
    "update": "the same for the session.update event around it",
}
"""Every option there is, with what it does."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a session is to be, read from `Settings` once.

    Attributes:
        settings: Where it was read from.
        options: The checked options.
        shape: Which session object is sent.
        modality: `audio`, or `text` alone.
        turn_end: How turns are closed.
        input: Format of what is sent.
        wraps: Whether each append is a WAV file.
        output: Format asked for.
        frame_ms: How much audio one append holds, ms.
        detection: The `turn_detection` object; None closes turns explicitly.
        commit: How a turn is closed explicitly.
        has_responses: Whether replies are responses, which can be asked for and cancelled.
        ready: What must have happened before audio is sent.
        greets: Whether the server speaks first.
        timestamp: Field of every event that counts the audio sent; empty for none.
        ignored: Types of events that are not looked at.
    """

    settings: Settings
    options: OptionTable
    shape: Shape
    modality: Literal["audio", "text"]
    turn_end: TurnEnd
    input: Format
    wraps: bool
    output: Format
    frame_ms: int
    detection: Object | None
    commit: Literal["ask", "alone", "turns"]
    has_responses: bool
    ready: Literal["updated", "created", "sent"]
    greets: bool
    timestamp: str
    ignored: frozenset[str]

    @property
    def dialect(self) -> Dialect:
        """Return the spelling of items."""
        return "legacy" if self.shape == "legacy" else "ga"

    @property
    def has_items(self) -> bool:
        """Return whether the conversation can be told as items."""
        return self.shape != "bare"

    @property
    def create_response(self) -> bool:
        """Return whether the server answers a turn that it closed itself, unasked."""
        return self.detection is not None and self.detection.get("create_response") is not False

    @property
    def interrupt_response(self) -> bool:
        """Return whether the server stops its reply when the user speaks."""
        return self.detection is not None and self.detection.get("interrupt_response") is not False


def read(settings: Settings) -> Wanted:
    """Return what the settings of a session ask for.

    Raises:
        UserError: If an option is unknown, or has a value that it cannot have.
    """
    options = OptionTable(PROTOCOL, settings.options, OPTIONS)
    turn_end = settings.turn_end or "silence"
    inward, wraps = _format("input", settings.input_rate, options)
    outward, _ = _format("output", settings.output_rate, options)
    shape = cast("Shape", options.choice("dialect", ("ga", "legacy", "bare"), "ga"))
    commit = options.choice("commit", ("ask", "alone", "turns"), "ask")
    _check(turn_end, shape, inward, commit)
    return Wanted(
        settings=settings,
        options=options,
        shape=shape,
        modality=_modality(options),
        turn_end=turn_end,
        input=inward,
        wraps=wraps,
        output=outward,
        frame_ms=_frame_ms(options, inward),
        detection=_detection(options) if turn_end == "silence" else None,
        commit=cast('Literal["ask", "alone", "turns"]', commit),
        has_responses=options.choice("reply_end", ("response.done", "audio.done"), "response.done")
        == "response.done",
        ready=cast(
            'Literal["updated", "created", "sent"]',
            options.choice("ready", ("updated", "created", "sent"), "updated"),
        ),
        greets=options.choice("first_speaker", ("user", "endpoint"), "user") == "endpoint",
        timestamp=options.text("timestamp_field"),
        ignored=frozenset(options.texts("ignore")),
    )


def flag(options: OptionTable, name: str) -> bool | None:
    """Return a truth value, None where the server or somebody else is to decide."""
    return options.flag(name, default=False) if options.has(name) else None


def put(target: Object, name: str, value: Json) -> None:
    """Set a field, unless there is nothing to set."""
    if value is not None:
        target[name] = value


def _check(turn_end: TurnEnd, shape: Shape, inward: Format, commit: str) -> None:
    if commit == "turns" and turn_end != "commit":
        found = f"{turn_end!r} with commit 'turns'"
        raise UserError("turn_end", found, "use 'commit': this server answers nothing else")
    if turn_end == "request" and shape == "bare":
        found = "'request', which puts the question into the conversation as an item"
        raise UserError("turn_end", found, "use 'silence' or 'commit' with this server")
    if turn_end != "silence" and inward.encoding == "opus":
        found = f"{turn_end!r}, and a page of Opus that is not full yet would never be sent"
        raise UserError("turn_end", found, "use 'silence' with input_encoding 'opus'")


def _format(side: Side, rate: int | None, options: OptionTable) -> tuple[Format, bool]:
    """Return the format of one side, and whether it is sent as WAV files."""
    name = f"{side}_encoding"
    chosen = options.choice(name, _ENCODINGS[side], "pcm16")
    word = options.text(f"{side}_word")
    if rate is not None and chosen in {"pcmu", "pcma"} and rate != 8000:
        found = f"{rate} with {name} {chosen!r}"
        raise UserError(f"{side}_rate", found, "leave the rate out: G.711 is always at 8000")
    if rate is not None and not 8000 <= rate <= 48000:
        raise UserError(f"{side}_rate", str(rate), "use a rate from 8000 to 48000")
    if chosen == "wav":
        rate = rate or WAV_RATE
        return Format("pcm16", rate, word or _wav_word(rate)), True
    return format_of(cast("Encoding", chosen), rate, word), False


def _wav_word(rate: int) -> str:
    return "wav" if rate == WAV_RATE else f"wav{rate // 1000}"


def _frame_ms(options: OptionTable, inward: Format) -> int:
    usual = _OPUS_FRAME_MS if inward.encoding == "opus" else 20
    frame_ms = options.whole("frame_ms", usual, 20, 100) or usual
    if frame_ms % 20:
        raise options.wrong("frame_ms", "20, 40, 60, 80 or 100")
    return frame_ms


def _modality(options: OptionTable) -> Literal["audio", "text"]:
    value = options.value("output_modalities")
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if value not in (None, "audio", "text"):
        raise options.wrong("output_modalities", "'audio' (with its transcript) or 'text'")
    return "text" if value == "text" else "audio"


def _detection(options: OptionTable) -> Object:
    """Return the `turn_detection` object, with the server's own defaults left to the server."""
    made: Object = {"type": options.text("turn_detection", "server_vad") or "server_vad"}
    if made["type"] in NO_DETECTION:
        raise options.wrong("turn_detection", "turn_end = 'commit' and no_detection for that")
    for name in _DETECTION:
        put(made, name, options.number(name))
    put(made, "eagerness", options.text("eagerness") or None)
    for name in ("create_response", "interrupt_response"):
        put(made, name, flag(options, name))
    return made
