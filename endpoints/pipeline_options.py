"""What a pipeline is made of, read from `Settings` once: its Whisper, language model and voice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

from voxmeter.endpoints.codec import Json, Settings
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.http_exchange import only_requests
from voxmeter.endpoints.option_table import OptionTable

NAME = "pipeline"
EMBEDDED = "embedded"
NONE = "none"

OPTIONS = {
    "asr_model": "Whisper: 'tiny.en' (default) or 'base' of the extra 'local', a name such as "
    "'large-v3', or a folder",
    "asr_language": "what is spoken: 'en' (default), 'de', ... or 'auto'",
    "asr_device": "'auto' (default), 'cpu' or 'cuda'",
    "asr_compute_type": "of Whisper's weights: 'auto' (default), 'float16', 'int8', ...",
    "asr_beam_size": "5 (default); 1 is the fastest",
    "asr_workers": "processes that hear, each with a model of its own (default 1)",
    "allow_downloads": "true: the hub may be asked for Whisper (default false)",
    "llm": "'openai' (default): chat completions at llm_base_url; 'embedded': a small model here",
    "llm_base_url": "where the language model is, such as 'https://api.openai.com/v1'",
    "llm_model": "its name there (or the endpoint's model); of an embedded one its .gguf file",
    "llm_key_env": "environment variable with its key (or the endpoint's api_key_env)",
    "llm_usage": "false: do not ask a stream for its usage (default true)",
    "llm_body": "a table laid over the whole request, for fields that are not listed here",
    "max_tokens": "most tokens of a reply",
    "tts": "who speaks: 'hibari' (default), 'piper', 'espeak-ng', 'openai', or 'none' for replies "
    "in writing",
    "tts_voice": "its voice (or the endpoint's voice): piper's .onnx file, espeak-ng's language, "
    "'alloy'",
    "tts_model": "of tts = 'openai': its name there (default 'tts-1')",
    "tts_base_url": "of tts = 'openai': where it is (default: llm_base_url, with its key)",
    "tts_key_env": "of tts = 'openai': environment variable with its key",
    "tts_body": "of tts = 'openai': a table laid over the whole request",
    "tts_by": "'sentence' (default): each is spoken once it is whole; 'whole': all of it at the "
    "end, as papers do it",
    "stage_timeout_s": "a stage that is silent for longer than this fails (default 60)",
}
"""Every option of kind `pipeline`, with what it does."""

_LOCAL = ("hibari", "piper", "espeak-ng")
_CHAT, _SPEECH = "/chat/completions", "/audio/speech"


@dataclass(frozen=True, slots=True)
class AsrOptions:
    """Which Whisper hears; see `OPTIONS`."""

    model: str
    language: str
    device: Literal["auto", "cpu", "cuda"]
    compute_type: str
    beam_size: int
    workers: int
    downloads: bool


@dataclass(frozen=True, slots=True)
class LlmOptions:
    """Which language model answers.

    Attributes:
        url: Of its chat completions; "" for the embedded model, or where none was given.
        embedded: Whether it is the model in a process of ours.
        model: Its name, or its file.
        key_env: Name of the variable with its key, "" for none.
        instructions: System prompt, "" for none.
        temperature: Sampling temperature; None leaves the model's own.
        fields: Further fields of the request.
        body: Laid over the whole of it.
    """

    url: str
    embedded: bool
    model: str
    key_env: str
    instructions: str
    temperature: float | None
    fields: Mapping[str, Json] = field(default_factory=dict)
    body: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TtsOptions:
    """Who speaks the reply.

    Attributes:
        voice: The service's name of the voice; ours as `voxmeter.client.speakers` names it.
        whole: Whether it is given the whole reply at once.
        url: Of a speech service, "" for a voice in a process of ours.
        shares: Whether the service is where the language model is, so that it takes the same key.
        model: The service's name of the model.
        key_env: Name of the variable with the service's key, "" for none.
        rate: Samples a second of the service's bare samples; None is 24,000.
        body: Laid over the service's request.
    """

    voice: str
    whole: bool
    url: str = ""
    shares: bool = False
    model: str = ""
    key_env: str = ""
    rate: int | None = None
    body: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A whole pipeline.

    Attributes:
        asr: Which Whisper hears.
        llm: Which language model answers.
        tts: Who speaks; None where replies are text.
        timeout_s: How long any of them may be silent, seconds.
    """

    asr: AsrOptions
    llm: LlmOptions
    tts: TtsOptions | None
    timeout_s: float


def read(settings: Settings) -> Wanted:
    """Return what the settings of an endpoint ask for.

    Raises:
        UserError: If an option is unknown, has a value that it cannot have, or does not go with
            another.
    """
    only_requests(NAME, settings)
    options = OptionTable(NAME, settings.options, OPTIONS)
    return Wanted(
        _asr(options),
        _llm(options, settings),
        _tts(options, settings),
        options.whole("stage_timeout_s", 60, 1, 86_400) or 60,
    )


def _asr(options: OptionTable) -> AsrOptions:
    device = options.choice("asr_device", ("auto", "cpu", "cuda"), "auto")
    return AsrOptions(
        options.text("asr_model", "tiny.en") or "tiny.en",
        options.text("asr_language", "en") or "en",
        "cpu" if device == "cpu" else "cuda" if device == "cuda" else "auto",
        options.text("asr_compute_type", "auto") or "auto",
        options.whole("asr_beam_size", 5, 1, 100) or 5,
        options.whole("asr_workers", 1, 1, 64) or 1,
        options.flag("allow_downloads", default=False),
    )


def _llm(options: OptionTable, settings: Settings) -> LlmOptions:
    embedded = options.choice("llm", ("openai", EMBEDDED), "openai") == EMBEDDED
    if embedded:
        _refuse(
            options,
            ("llm_base_url", "llm_key_env", "llm_usage", "llm_body", "max_tokens"),
            "llm = 'embedded' takes no such option",
        )
    model = options.text("llm_model") or settings.model
    fields: dict[str, Json] = {"model": model} if model else {}
    if settings.temperature is not None:
        fields["temperature"] = settings.temperature
    limit = options.whole("max_tokens", None, 1, 10_000_000)
    if limit is not None:
        fields["max_tokens"] = limit
    if options.flag("llm_usage", default=True):
        fields["stream_options"] = {"include_usage": True}
    return LlmOptions(
        _url(options, "llm_base_url", _CHAT),
        embedded,
        model,
        options.text("llm_key_env"),
        settings.instructions,
        settings.temperature,
        fields,
        options.table("llm_body"),
    )


def _tts(options: OptionTable, settings: Settings) -> TtsOptions | None:
    tts = options.choice("tts", (*_LOCAL, "openai", NONE), "hibari")
    whole = options.choice("tts_by", ("sentence", "whole"), "sentence") == "whole"
    named = options.text("tts_voice") or settings.voice
    if tts != "openai":
        _refuse(
            options,
            ("tts_model", "tts_base_url", "tts_key_env", "tts_body"),
            f"tts = {tts!r} takes no such option",
        )
        if settings.output_rate is not None:
            found = f"{settings.output_rate}, but tts = {tts!r} has no rate to ask for"
            raise UserError("output_rate", found, "remove the key")
    if tts == NONE:
        _refuse(options, ("tts_voice", "tts_by"), "tts = 'none' takes no such option")
        if settings.voice:
            raise UserError("voice", "is set, but with tts = 'none' nobody speaks", "remove it")
        return None
    if tts != "openai":
        voice = f"{tts}:{named}" if named else tts
        return TtsOptions(voice, whole)
    own, shared = _url(options, "tts_base_url", _SPEECH), _url(options, "llm_base_url", _SPEECH)
    if not own and not shared:
        cure = "write where the speech service is, such as 'https://api.openai.com/v1'"
        raise UserError("options.tts_base_url", "is missing", cure)
    return TtsOptions(
        named or "alloy",
        whole,
        url=own or shared,
        shares=not own or own == shared,
        model=options.text("tts_model", "tts-1"),
        key_env=options.text("tts_key_env"),
        rate=settings.output_rate,
        body=options.table("tts_body"),
    )


def _refuse(options: OptionTable, names: tuple[str, ...], why: str) -> None:
    for name in names:
        if options.has(name):
            raise UserError(f"options.{name}", f"is set, but {why}", "remove it")


def _url(options: OptionTable, name: str, path: str) -> str:
    """Return where a request goes: the base URL, made whole."""
    base = options.text(name)
    if not base:
        return ""
    try:
        parts = urlsplit(base)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
        usable = usable and parts.username is None and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable:
        raise options.wrong(name, "a URL such as 'http://127.0.0.1:8000/v1', without a password")
    own = parts.path.rstrip("/")
    return urlunsplit(parts._replace(path=f"{own or '/v1'}{path}"))
