"""The options of kind `gemini-live`, checked, and the `setup` that they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from voxmeter.endpoints.codec import Json, Settings, TurnEnd
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.gemini_live_replies import End
from voxmeter.endpoints.gemini_live_wire import INPUT_RATE, OUTPUT_RATE, Object
from voxmeter.endpoints.option_table import OptionTable, laid_over

Auth = Literal["query", "header", "bearer", "access_token"]

OPTIONS: Mapping[str, str] = {
    "auth": "where the key goes: 'query' (default: ?key=), 'header' (x-goog-api-key), 'bearer' "
    "(Vertex AI) or 'access_token' (an ephemeral token in the query)",
    "response_modality": "'audio' (default) or 'text': replies without audio, scored as text",
    "output_transcription": "false: the text of spoken replies is not asked for",
    "input_transcription": "true: the server writes down the question; it is logged, never scored",
    "language": "of the speech, such as 'en-US'; models of native audio find it themselves",
    "start_sensitivity": "of the server's voice activity detection: 'high' or 'low'",
    "end_sensitivity": "the same, for the end of speech",
    "prefix_padding_ms": "the same: speech that must be heard before it counts",
    "silence_duration_ms": "the same: silence that ends speech",
    "activity_handling": "'interrupt' or 'no_interruption': what speech does to a reply",
    "turn_coverage": "'activity', 'all_input' or 'activity_and_video': what belongs to a turn",
    "commit_with": "how turn_end = 'commit' closes a turn: 'activity' (default; detection is off) "
    "or 'stream_end' (detection stays on, the audio stream is said to end)",
    "reply_end": "'generation' (default): a reply is over once all of it was generated; "
    "'interaction': once the server is idle, for models that go on after a pause to think",
    "text_with": "how a written question travels: 'content' or 'realtime'; by default the first "
    "with detection, the second inside an activity",
    "initial_history": "true: earlier turns are announced in the setup, as some models demand",
    "session_resumption": "true: ask for handles, which are logged; or the handle to go on from",
    "compression": "true, or a table: what happens when the context is full",
    "proactive_audio": "true: the model may leave speech unanswered that is not meant for it",
    "explicit_vad_signal": "true: be told where the server hears speech begin and end (Vertex AI)",
    "thinking_budget": "tokens to think with, 0 for none (models of generation 2.5)",
    "thinking_level": "'minimal' to 'high' (models of generation 3 that have levels)",
    "max_output_tokens": "a whole number",
    "send_tag": "true or false: whether the URL carries the session's tag",
    "setup": "a table that is laid over the whole `setup`, for fields that are not listed here",
}
"""Every option there is, with what it does."""

_HANDLING = {"interrupt": "START_OF_ACTIVITY_INTERRUPTS", "no_interruption": "NO_INTERRUPTION"}
_COVERAGE = {
    "activity": "TURN_INCLUDES_ONLY_ACTIVITY",
    "all_input": "TURN_INCLUDES_ALL_INPUT",
    "activity_and_video": "TURN_INCLUDES_AUDIO_ACTIVITY_AND_ALL_VIDEO",
}
_MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a session is to be, read from `Settings` once.

    Attributes:
        model: As the user wrote it.
        auth: Where the key goes.
        input_rate: Samples a second that we send.
        turn_end: How turns are closed.
        bracketed: Whether we say where speech begins and ends.
        spoken: Whether replies are audio.
        transcribed: Whether their text is asked for.
        reply_end: What ends a reply.
        text_inline: Whether a written question is realtime input.
        seeds: Whether the server waits for the end of the history before it listens.
        tag: Our name for this session.
        send_tag: Whether the URL carries it; None: on this machine alone.
        setup: The session as it is asked for.
    """

    model: str
    auth: Auth
    input_rate: int
    turn_end: TurnEnd
    bracketed: bool
    spoken: bool
    transcribed: bool
    reply_end: End
    text_inline: bool
    seeds: bool
    tag: str
    send_tag: bool | None
    setup: Object


def read(settings: Settings) -> Wanted:
    """Return what the settings of a session ask for.

    Raises:
        UserError: If an option is unknown or has a value that it cannot have, or if a setting asks
            for what this protocol does not have.
    """
    options = OptionTable("gemini-live", settings.options, OPTIONS)
    turn_end = settings.turn_end or "silence"
    if turn_end == "request":
        raise UserError(
            "turn_end", "'request'", "gemini-live closes turns by 'silence' or 'commit'"
        )
    if settings.output_rate not in {None, OUTPUT_RATE}:
        cure = "leave it out: the server says at which rate it speaks"
        raise UserError("output_rate", str(settings.output_rate), cure)
    input_rate = settings.input_rate or INPUT_RATE
    if not 8000 <= input_rate <= 48_000:
        raise UserError("input_rate", str(input_rate), "use a rate from 8000 to 48000")
    committing = options.choice("commit_with", ("activity", "stream_end"), "activity")
    bracketed = turn_end == "commit" and committing == "activity"
    usual = "realtime" if bracketed else "content"
    spoken = options.choice("response_modality", ("audio", "text"), "audio") == "audio"
    auths = ("query", "header", "bearer", "access_token")
    auth = cast("Auth", options.choice("auth", auths, "query"))
    ends = ("generation", "interaction")
    return Wanted(
        model=settings.model,
        auth=auth,
        input_rate=input_rate,
        turn_end=turn_end,
        bracketed=bracketed,
        spoken=spoken,
        transcribed=options.flag("output_transcription", default=True),
        reply_end=cast("End", options.choice("reply_end", ends, "generation")),
        text_inline=options.choice("text_with", ("content", "realtime"), usual) == "realtime",
        seeds=options.flag("initial_history", default=False),
        tag=settings.session_tag,
        send_tag=options.flag("send_tag", default=False) if options.has("send_tag") else None,
        setup=_setup(settings, options, bracketed=bracketed, spoken=spoken, auth=auth),
    )


def _setup(
    settings: Settings, options: OptionTable, *, bracketed: bool, spoken: bool, auth: Auth
) -> Object:
    """Return the session as it is asked for; what the user left out is left to the server."""
    setup: Object = {"generationConfig": _generation(settings, options, spoken=spoken)}
    if settings.model:
        # Vertex AI has whole paths, and what stands behind a gateway is called as it likes.
        plain = "/" in settings.model or auth == "bearer"
        setup["model"] = settings.model if plain else f"models/{settings.model}"
    if settings.instructions:
        setup["systemInstruction"] = {"parts": [{"text": settings.instructions}]}
    realtime = _realtime(options, bracketed=bracketed)
    if realtime:
        setup["realtimeInputConfig"] = realtime
    if options.flag("input_transcription", default=False):
        setup["inputAudioTranscription"] = {}
    if spoken and options.flag("output_transcription", default=True):
        setup["outputAudioTranscription"] = {}
    if options.flag("initial_history", default=False):
        setup["historyConfig"] = {"initialHistoryInClientContent": True}
    if options.has("session_resumption"):
        _put(setup, "sessionResumption", _resumption(settings, options))
    if options.has("compression"):
        _put(setup, "contextWindowCompression", _compression(settings, options))
    if options.has("proactive_audio"):
        proactive = options.flag("proactive_audio", default=False)
        setup["proactivity"] = {"proactiveAudio": proactive}
    if options.has("explicit_vad_signal"):
        setup["explicitVadSignal"] = options.flag("explicit_vad_signal", default=False)
    return laid_over(setup, options.table("setup"))


def _generation(settings: Settings, options: OptionTable, *, spoken: bool) -> Object:
    made: Object = {"responseModalities": ["AUDIO" if spoken else "TEXT"]}
    _put(made, "temperature", settings.temperature)
    _put(made, "maxOutputTokens", options.whole("max_output_tokens", None, 1, _MOST))
    speech: Object = {}
    if settings.voice:
        speech["voiceConfig"] = {"prebuiltVoiceConfig": {"voiceName": settings.voice}}
    _put(speech, "languageCode", options.text("language") or None)
    _put(made, "speechConfig", speech or None)
    thinking: Object = {}
    _put(thinking, "thinkingBudget", options.whole("thinking_budget", None, -1, _MOST))
    _put(thinking, "thinkingLevel", options.text("thinking_level").upper() or None)
    _put(made, "thinkingConfig", thinking or None)
    return made


def _realtime(options: OptionTable, *, bracketed: bool) -> Object:
    detection: Object = {"disabled": True} if bracketed else {}
    for name, field in (("start", "startOfSpeech"), ("end", "endOfSpeech")):
        if options.has(f"{name}_sensitivity"):
            level = options.choice(f"{name}_sensitivity", ("high", "low"), "").upper()
            detection[f"{field}Sensitivity"] = f"{name.upper()}_SENSITIVITY_{level}"
    padding = options.whole("prefix_padding_ms", None, 0, 60_000)
    _put(detection, "prefixPaddingMs", padding)
    silence = options.whole("silence_duration_ms", None, 0, 60_000)
    _put(detection, "silenceDurationMs", silence)
    made: Object = {}
    _put(made, "automaticActivityDetection", detection or None)
    if options.has("activity_handling"):
        made["activityHandling"] = _HANDLING[options.choice("activity_handling", [*_HANDLING], "")]
    if options.has("turn_coverage"):
        made["turnCoverage"] = _COVERAGE[options.choice("turn_coverage", [*_COVERAGE], "")]
    return made


def _resumption(settings: Settings, options: OptionTable) -> Object | None:
    value = settings.options["session_resumption"]
    if isinstance(value, str) and value:
        return {"handle": value}
    if not isinstance(value, bool):
        raise options.wrong("session_resumption", "true, or the handle of an earlier session")
    return {} if value else None


def _compression(settings: Settings, options: OptionTable) -> Object | None:
    value = settings.options["compression"]
    if isinstance(value, dict):
        return value
    if not isinstance(value, bool):
        raise options.wrong("compression", "true, or a table")
    return {"slidingWindow": {}} if value else None


def _put(target: Object, name: str, value: Json) -> None:
    if value is not None:
        target[name] = value
