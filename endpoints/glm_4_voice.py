"""GLM-4-Voice by the Gradio app of its authors (`web_demo.py`): sound as it is made, then words.

The demo streams its reply as HLS and gives the whole of it once more as a file; the words come at
the end, among the tokens of the sound. Tokens of earlier turns are passed back for the next one.
"""

from __future__ import annotations

import re

from voxmeter.endpoints.codec import Json, Settings
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.gradio_answer import Plan
from voxmeter.endpoints.gradio_template import placeholders
from voxmeter.endpoints.gradio_wire import Client
from voxmeter.endpoints.http_exchange import only_requests, unsaid
from voxmeter.endpoints.kind import HTTP, Kind
from voxmeter.endpoints.option_table import OptionTable

NAME = "glm-4-voice"
OPTIONS = {
    "input_mode": "'audio' (default), or 'text' for questions that are asked in writing",
    "top_p": "0 to 1 (default 0.8)",
    "max_new_token": "most tokens in one reply, of words and sound together (default 2000)",
    "api_name": "name of the function (default '/inference_fn')",
    "login": "user name, where the app has been given a login; the key is the password",
}
"""Every option there is, with what it does."""

KIND = Kind(
    name=NAME,
    about="GLM-4-Voice's web demo: Gradio, sound as HLS while it is made",
    codec="voxmeter.endpoints.glm_4_voice:client",
    transport=HTTP,
    known_by="genuine Gradio 5.3 (the demo's own), 5.50 and 6.31 with the demo's function, "
    "without its model",
    docs="docs/endpoints/glm-4-voice.md",
    options_at="voxmeter.endpoints.glm_4_voice:OPTIONS",
)

_SOUND = re.compile(r"<\|(?:audio_\d+|begin_of_audio|end_of_audio)\|>")
_INTERLEAVED = (  # what the demo tells the model, and what it was trained to hear
    "User will provide you with a {way} instruction. Do it step by step. First, think about the "
    "instruction and respond in a interleaved manner, with 13 text token followed by 26 audio "
    "tokens."
)


def client(settings: Settings) -> Client:
    """Return the codec of one session.

    Raises:
        UserError: If an option is unknown, or has a value that it cannot have.
    """
    only_requests(NAME, settings)
    options = OptionTable(NAME, settings.options, OPTIONS)
    spoken = options.choice("input_mode", ("audio", "text"), "audio") == "audio"
    temperature = 0.2 if settings.temperature is None else settings.temperature
    data: list[Json] = [
        temperature,
        _share(options, settings.options.get("top_p", 0.8)),
        options.whole("max_new_token", 2000, 1, 100_000),
        "audio" if spoken else "text",
        "{audio}" if spoken else None,
        "" if spoken else "{text}",
        None,  # the page's own history, which the model never sees
        "{output.0}",
        "{output.1}",
    ]
    used = placeholders(data, "options")
    plan = Plan(
        kind=NAME,
        name=options.text("api_name", "/inference_fn"),
        index=None,
        data=data,
        used=used,
        audio=["3", "4"],
        text="1",
        error="2",
        words=words,
        login=options.text("login"),
        first={"0": _system(settings.instructions, spoken=spoken)},
        unused=unsaid(settings, used | {"instructions", "temperature"}),
    )
    return Client(settings, plan)


def words(tokens: str) -> str:
    """Return the words among the tokens of a reply."""
    return _SOUND.sub("", tokens).strip()


def _system(instructions: str, *, spoken: bool) -> str:
    """Return the tokens that stand before the first turn; none leave the demo its own."""
    if not instructions:
        return ""
    told = _INTERLEAVED.format(way="speech" if spoken else "text")
    return f"<|system|>\n{instructions} {told}"


def _share(options: OptionTable, value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise options.wrong("top_p", "a number from 0 to 1")
    if not 0 <= value <= 1:
        raise UserError("options.top_p", str(value)[:40], "use a number from 0 to 1")
    return float(value)
