"""A session of OpenAI Realtime as its server keeps it: what was asked for, and how it is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from voxmeter.endpoints.codec import Json, TurnEnd
from voxmeter.endpoints.fields import Fields
from voxmeter.endpoints.openai_dialect import (
    NO_DETECTION,
    PCM_RATE,
    Dialect,
    Format,
    read_format,
)
from voxmeter.endpoints.serving import SessionSet

Object = dict[str, Json]

_ONLY_OLDER = (
    "modalities",
    "input_audio_format",
    "output_audio_format",
    "input_audio_transcription",
    "input_audio_noise_reduction",
    "turn_detection",
    "temperature",
    "max_response_output_tokens",
)
_PCM = Format("pcm16", PCM_RATE)
MAX_PADDING_MS = 60_000
_MODALITIES = ("text", "audio")


def _server_vad() -> Object:
    return {
        "type": "server_vad",
        "threshold": 0.5,
        "prefix_padding_ms": 300,
        "silence_duration_ms": 500,
        "create_response": True,
        "interrupt_response": True,
    }


@dataclass(slots=True)
class Session:
    """What holds for one session; `update` changes it, `json` tells it.

    Attributes:
        dialect: The spelling that the client uses, as far as it has shown.
        modality: `audio` (with its transcript) or `text`.
        input: Format of the user's audio.
        output: Format of the replies.
        detection: The turn detection, or None: the client commits.
        transcription: What the client asked for; None: it is not told what it said.
    """

    id: str
    model: str = "voxmeter"
    dialect: Dialect = "ga"
    modality: str = "audio"
    instructions: str = ""
    voice: str = ""
    speed: float = 1.0
    temperature: float | None = None
    max_tokens: Json = "inf"
    input: Format = _PCM
    output: Format = _PCM
    detection: Object | None = field(default_factory=_server_vad)
    transcription: Object | None = None
    noise_reduction: Object | None = None

    @property
    def turn_end(self) -> TurnEnd:
        """How the user's turns are closed."""
        return "commit" if self.detection is None else "silence"

    @property
    def auto_reply(self) -> bool:
        """Whether a turn that the server closed is answered unasked."""
        return self.detection is not None and self.detection["create_response"] is True

    def update(self, asked: Fields) -> SessionSet:
        """Take the fields of a `session.update`, in either spelling; what is absent stays.

        Raises:
            ProtocolError: If a field has a value that it cannot have; then nothing has changed.
        """
        changed = self._changed(asked)
        for name, value in changed.items():
            setattr(self, name, value)
        detection = self.detection if "detection" in changed else None
        return SessionSet(
            instructions=self.instructions if "instructions" in changed else None,
            voice=self.voice if "voice" in changed else None,
            temperature=self.temperature if "temperature" in changed else None,
            turn_end=self.turn_end if "detection" in changed else None,
            silence_ms=_silence_ms(asked, detection),
            auto_reply=None if detection is None else self.auto_reply,
            interruptible=None if detection is None else detection["interrupt_response"] is True,
        )

    def _changed(self, asked: Fields) -> dict[str, object]:
        audio = asked.object("audio")
        inward, outward = audio.object("input"), audio.object("output")
        changed: dict[str, object] = {
            "dialect": _dialect(asked, self.dialect),
            "input": read_format(asked, "input", self.input),
            "output": read_format(asked, "output", self.output),
            "modality": read_modality(asked, self.modality),
        }
        if "instructions" in asked.data:
            changed["instructions"] = asked.text("instructions", "")
        if outward.has("voice") or asked.has("voice"):
            changed["voice"] = _voice(outward if outward.has("voice") else asked)
        for name, here in (("speed", outward), ("speed", asked), ("temperature", asked)):
            if here.has(name):
                changed[name] = here.number(name)
        for name in ("max_output_tokens", "max_response_output_tokens"):
            if asked.has(name):
                changed["max_tokens"] = _tokens(asked, name)
        for place, name, key in (
            (inward, "turn_detection", "detection"),
            (asked, "turn_detection", "detection"),
            (inward, "transcription", "transcription"),
            (asked, "input_audio_transcription", "transcription"),
            (inward, "noise_reduction", "noise_reduction"),
            (asked, "input_audio_noise_reduction", "noise_reduction"),
        ):
            if name in place.data:
                changed[key] = self._detection(place) if key == "detection" else _flat(place, name)
        return changed

    def _detection(self, place: Fields) -> Object | None:
        """Return the turn detection with what the client left out filled in."""
        if place.has_null("turn_detection"):
            return None
        asked = place.object("turn_detection")
        base = self.detection or _server_vad()
        kind = asked.text("type", cast("str", base["type"]))
        if kind in NO_DETECTION:
            return None
        if kind not in ("server_vad", "semantic_vad"):
            raise asked.problem(f"{asked.place}type {kind!r} is not server_vad or semantic_vad")
        flags: Object = {
            name: asked.flag(name, default=base[name] is True)
            for name in ("create_response", "interrupt_response")
        }
        if kind == "semantic_vad":
            return {"type": kind, "eagerness": asked.text("eagerness", "auto"), **flags}
        base = {**_server_vad(), **base}
        made: Object = {"type": kind, **flags}
        for name in ("threshold", "prefix_padding_ms", "silence_duration_ms"):
            value = asked.number(name, cast("float", base[name]))
            largest = 1 if name == "threshold" else MAX_PADDING_MS
            if not 0 <= value <= largest:
                raise asked.problem(f"{asked.place}{name} is not from 0 to {largest}")
            made[name] = value if name == "threshold" else round(value)
        return made

    def json(self) -> Object:
        """Return the whole session as the client spells it."""
        return self._older() if self.dialect == "legacy" else self._ga()

    def _ga(self) -> Object:
        return {
            "type": "realtime",
            "object": "realtime.session",
            "id": self.id,
            "model": self.model,
            "output_modalities": [self.modality],
            "instructions": self.instructions,
            "max_output_tokens": self.max_tokens,
            "tools": [],
            "tool_choice": "auto",
            "audio": {
                "input": {
                    "format": self.input.json("ga"),
                    "transcription": self.transcription,
                    "noise_reduction": self.noise_reduction,
                    "turn_detection": self.detection,
                },
                "output": {
                    "format": self.output.json("ga"),
                    "voice": self.voice,
                    "speed": self.speed,
                },
            },
        }

    def _older(self) -> Object:
        return {
            "object": "realtime.session",
            "id": self.id,
            "model": self.model,
            "modalities": ["text"] if self.modality == "text" else ["text", "audio"],
            "instructions": self.instructions,
            "voice": self.voice,
            "speed": self.speed,
            "input_audio_format": self.input.json("legacy"),
            "output_audio_format": self.output.json("legacy"),
            "input_audio_transcription": self.transcription,
            "input_audio_noise_reduction": self.noise_reduction,
            "turn_detection": self.detection,
            "temperature": 0.8 if self.temperature is None else self.temperature,
            "max_response_output_tokens": self.max_tokens,
            "tools": [],
            "tool_choice": "auto",
        }


def read_modality(asked: Fields, default: str) -> str:
    """Return what replies consist of, from a session or a response, in either spelling.

    Raises:
        ProtocolError: If it is not a list of `text` and `audio`.
    """
    name = "output_modalities" if "output_modalities" in asked.data else "modalities"
    value = asked.data.get(name)
    if value is None:
        return default
    if not isinstance(value, list) or not value or any(one not in _MODALITIES for one in value):
        raise asked.problem(f'{asked.place}{name} is not ["audio"] or ["text"]')
    return "audio" if "audio" in value else "text"


def _dialect(asked: Fields, present: Dialect) -> Dialect:
    if asked.has("type"):
        if asked.text("type") != "realtime":
            raise asked.problem(f"{asked.place}type {asked.text('type')!r} is not 'realtime'")
        return "ga"
    return "legacy" if any(name in asked.data for name in _ONLY_OLDER) else present


def _voice(place: Fields) -> str:
    if isinstance(place.data["voice"], dict):
        return place.object("voice").text("id")
    return place.text("voice")


def _tokens(asked: Fields, name: str) -> Json:
    return "inf" if asked.data[name] == "inf" else asked.whole(name)


def _flat(place: Fields, name: str) -> Object | None:
    """Return a small object's strings, so that nothing deep is ever told back; None for null."""
    if place.has_null(name):
        return None
    inner = place.object(name)
    return {
        key: inner.text(key) for key, value in inner.data.items() if isinstance(value, str) and key
    }


def _silence_ms(asked: Fields, detection: Object | None) -> int | None:
    """Return the quiet that ends a turn, if the client named it; else the host has its own."""
    inner = asked.object("audio").object("input")
    named = any(one.object("turn_detection").has("silence_duration_ms") for one in (asked, inner))
    value = None if detection is None else detection.get("silence_duration_ms")
    return value if named and isinstance(value, int) else None
