"""The options of kind `elevenlabs`, checked, and the message that begins a conversation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from voxmeter.endpoints.codec import Json, Settings
from voxmeter.endpoints.events import Encoding
from voxmeter.endpoints.hosted import only_silence, refuse
from voxmeter.endpoints.option_table import OptionTable, laid_over

ENCODINGS: Mapping[str, Encoding] = {"pcm": "pcm16", "ulaw": "pcmu"}

OPTIONS = {
    "agent_id": "the agent to talk with; or put it into the URL's query",
    "signed_url": "whether the key buys a signed URL first (default true), as private agents need",
    "first_message": "what the agent says first, in place of its own; '' for no greeting",
    "first_speaker": "'endpoint' (default): hear the greeting out; 'user' for an agent without one",
    "language": "the agent's language, such as 'en'",
    "frame_ms": "length of one piece of sound that we send, 10 to 250 (default 20)",
    "dynamic_variables": "a table of values for the agent's variables",
    "initiation": "a table laid over the first message: conversation_config_override, user_id",
}
"""Every option there is, with what it does."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a conversation is to be, read from `Settings` once.

    Attributes:
        agent_id: The agent, or "" where the URL names it.
        signed_url: Whether a signed URL is asked for.
        first_speaker: Who speaks first.
        frame_ms: Length of one paced frame, ms.
        input_rate: The rate that the agent must be set to, if any.
        output_rate: Likewise.
        message: What begins the conversation.
    """

    agent_id: str
    signed_url: bool
    first_speaker: Literal["user", "endpoint"]
    frame_ms: int
    input_rate: int | None
    output_rate: int | None
    message: dict[str, Json]


def read(settings: Settings) -> Wanted:
    """Return what the settings of a session ask for.

    Raises:
        UserError: If an option is unknown or has a value that it cannot have, or if a setting
            asks for something that the protocol has no word for.
    """
    options = OptionTable("elevenlabs", settings.options, OPTIONS)
    only_silence("elevenlabs", settings)
    refuse("elevenlabs", "set it in the agent", temperature=settings.temperature)
    quiet = options.has("first_message") and not options.text("first_message")
    first = options.choice("first_speaker", ("endpoint", "user"), "user" if quiet else "endpoint")
    message: dict[str, Json] = {"type": "conversation_initiation_client_data"}
    override = _override(settings, options)
    if override:
        message["conversation_config_override"] = override
    if options.has("dynamic_variables"):
        message["dynamic_variables"] = dict(options.table("dynamic_variables"))
    return Wanted(
        agent_id=options.text("agent_id"),
        signed_url=options.flag("signed_url", default=True),
        first_speaker=cast('Literal["user", "endpoint"]', first),
        frame_ms=options.whole("frame_ms", 20, 10, 250) or 20,
        input_rate=settings.input_rate,
        output_rate=settings.output_rate,
        message=laid_over(message, options.table("initiation")),
    )


def _override(settings: Settings, options: OptionTable) -> dict[str, Json]:
    """Return what is to differ from the agent's own settings; each must be allowed in the agent."""
    prompt: dict[str, Json] = {}
    if settings.instructions:
        prompt["prompt"] = settings.instructions
    if settings.model:
        prompt["llm"] = settings.model
    agent: dict[str, Json] = {"prompt": prompt} if prompt else {}
    for name in ("first_message", "language"):
        if options.has(name):
            agent[name] = options.text(name)
    made: dict[str, Json] = {"agent": agent} if agent else {}
    if settings.voice:
        made["tts"] = {"voice_id": settings.voice}
    return made
