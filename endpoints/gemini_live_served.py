"""What a client of Gemini Live asks its server for: the setup, and turns of the conversation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from voxmeter.endpoints.codec import TurnEnd
from voxmeter.endpoints.fields import Fields
from voxmeter.endpoints.gemini_live_wire import INPUT_RATE, read_blob
from voxmeter.endpoints.serving import HistoryAdded, SessionSet, UserAudio


class Refused(Exception):  # noqa: N818 - an answer to the client, not a fault of this program
    """What the client asked for ends the session, as this protocol has no other way to say no."""

    def __init__(self, code: int, reason: str) -> None:
        self.code = code
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class Asked:
    """A session as it was asked for.

    Attributes:
        spoken: Whether replies are audio.
        said_written: Whether the client wants the text of spoken replies.
        heard_written: Whether it wants to read what it was heard to say.
        signals: Whether it wants to be told where speech begins and ends.
        turn_end: How turns are closed.
        seeds: Whether the first content of the client's is history that nobody answers.
        resumable: Whether it asked for handles.
        changed: What of it is the host's.
    """

    spoken: bool
    said_written: bool
    heard_written: bool
    signals: bool
    turn_end: TurnEnd
    seeds: bool
    resumable: bool
    changed: SessionSet


def read_setup(setup: Fields) -> Asked:
    """Return what a client's `setup` asks for.

    Raises:
        ProtocolError: If a field has a type that it cannot have.
        Refused: If it asks for a session that cannot be.
    """
    generation = setup.object("generationConfig")
    modalities = generation.data.get("responseModalities") or ["AUDIO"]
    if modalities not in (["AUDIO"], ["TEXT"]):
        raise Refused(1007, "Request contains an invalid argument: one response modality at a time")
    resumption = setup.object("sessionResumption")
    if resumption.text("handle", ""):
        raise Refused(1008, "BidiGenerateContent session not found")
    realtime = setup.object("realtimeInputConfig")
    detection = realtime.object("automaticActivityDetection")
    turn_end: TurnEnd = "commit" if detection.flag("disabled", default=False) else "silence"
    silence = "silenceDurationMs"
    voice = generation.object("speechConfig").object("voiceConfig").object("prebuiltVoiceConfig")
    changed = SessionSet(
        instructions=instructions(setup),
        voice=voice.text("voiceName", "") or None,
        temperature=generation.number("temperature") if generation.has("temperature") else None,
        turn_end=turn_end,
        silence_ms=max(0, detection.whole(silence)) if detection.has(silence) else None,
        interruptible=realtime.text("activityHandling", "") != "NO_INTERRUPTION",
    )
    return Asked(
        spoken=modalities == ["AUDIO"],
        said_written=setup.has("outputAudioTranscription"),
        heard_written=setup.has("inputAudioTranscription"),
        signals=setup.flag("explicitVadSignal", default=False),
        turn_end=turn_end,
        seeds=setup.object("historyConfig").flag("initialHistoryInClientContent", default=False),
        resumable=setup.has("sessionResumption"),
        changed=changed,
    )


def instructions(holder: Fields) -> str | None:
    """Return the words of a `systemInstruction`; None where there is none."""
    if not holder.has("systemInstruction"):
        return None
    given = holder.object("systemInstruction")
    return "\n\n".join(part.text("text", "") for part in given.objects("parts"))


def read_turns(content: Fields) -> Iterator[HistoryAdded]:
    """Yield the turns of a `clientContent`.

    Raises:
        ProtocolError: If a turn is of nobody this protocol knows, or a field of the wrong type.
    """
    for turn in content.objects("turns"):
        texts: list[str] = []
        audio = b""
        rate = INPUT_RATE
        for part in turn.objects("parts"):
            inline = part.object("inlineData")
            found = read_blob(inline, INPUT_RATE) if inline.data else None
            if found is not None:
                audio, rate = audio + found[0], found[1]
            texts.append(part.text("text", ""))
        text = " ".join(one for one in texts if one)
        said = UserAudio(audio, "pcm16", rate) if audio else None
        match turn.text("role", "user"):
            case "user":
                yield HistoryAdded("user", text, said)
            case "model":
                yield HistoryAdded("assistant", text, said)
            case "system":
                yield HistoryAdded("system", text, said)
            case role:
                raise turn.problem(f"{turn.place}role {role[:60]!r} is none of user, model, system")
