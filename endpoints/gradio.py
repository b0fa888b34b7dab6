"""Any Gradio app: one of its functions is called, by its API name and a list of inputs."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence

from voxmeter.endpoints.codec import Json, Settings
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.gradio_answer import Plan
from voxmeter.endpoints.gradio_template import placeholders
from voxmeter.endpoints.gradio_wire import Client
from voxmeter.endpoints.http_exchange import only_requests, unsaid
from voxmeter.endpoints.kind import HTTP, Kind
from voxmeter.endpoints.option_table import OptionTable

NAME = "gradio"
OPTIONS = {
    "api_name": "name of the function, as 'Use via API' shows it (default '/predict')",
    "fn_index": "number of the function, where it has no name",
    "data": "its inputs: a list with placeholders (default ['{audio}']); state may be left out",
    "audio_output": "output with the sound: a number, a path, or a list of them, the best first "
    "(default 0, where there is no text_output)",
    "text_output": "output with the words: a number or a path like '0.-1.content'",
    "text_when": "'growing' (default): words count as they come; 'completed': only the last ones",
    "text_html": "true: words without their HTML tags, as chat windows of Gradio 3 hold them",
    "error_output": "output that tells of a failure by not being empty",
    "first_outputs": "a table: what {output.N} is before the first answer, by N (default '')",
    "login": "user name, where the app has a login of its own; the key is the password",
}
"""Every option there is, with what it does."""

KIND = Kind(
    name=NAME,
    about="any Gradio app: a function by its API name, sound streamed or whole",
    codec="voxmeter.endpoints.gradio:client",
    transport=HTTP,
    known_by="genuine Gradio 3.50, 4.16, 4.19, 4.44, 5.3, 5.50 and 6.31",
    docs="docs/endpoints/gradio.md",
    options_at="voxmeter.endpoints.gradio:OPTIONS",
)

_TAG = re.compile(r"<[^>]*>")
_PATH = re.compile(r"-?[0-9]+(\.[^.\s]+)*")


def client(settings: Settings) -> Client:
    """Return the codec of one session.

    Raises:
        UserError: If an option is unknown, or has a value that it cannot have.
    """
    only_requests(NAME, settings)
    options = OptionTable(NAME, settings.options, OPTIONS)
    data = settings.options.get("data", ["{audio}"])
    if not isinstance(data, list):
        raise options.wrong("data", 'a list such as ["{audio}", 0.7]')
    used = placeholders(data, "options.data")
    if not used & {"audio", "text"}:
        cure = 'write "{audio}" where the question goes'
        raise UserError("options.data", "has no place for the question", cure)
    if "temperature" in used and settings.temperature is None:
        cure = "set the endpoint's temperature, or write a number"
        raise UserError("options.data", "has {temperature}, which is not set", cure)
    text = _path(options, settings.options, "text_output")
    audio = _paths(options, settings.options, "audio_output") or ([] if text else ["0"])
    plan = Plan(
        kind=NAME,
        name=options.text("api_name", "/predict"),
        index=options.whole("fn_index", None, 0, 100_000),
        data=data,
        used=used,
        audio=audio,
        text=text,
        error=_path(options, settings.options, "error_output"),
        words=_without_tags if options.flag("text_html", default=False) else str,
        final_text=options.choice("text_when", ("growing", "completed"), "growing") == "completed",
        login=options.text("login"),
        first=options.table("first_outputs"),
        unused=unsaid(settings, used),
    )
    return Client(settings, plan)


def _without_tags(text: str) -> str:
    return " ".join(html.unescape(_TAG.sub(" ", text)).split())


def _path(options: OptionTable, given: Mapping[str, Json], name: str) -> str:
    return _one(options, name, given[name]) if name in given else ""


def _paths(options: OptionTable, given: Mapping[str, Json], name: str) -> Sequence[str]:
    value = given.get(name, [])
    return [_one(options, name, one) for one in (value if isinstance(value, list) else [value])]


def _one(options: OptionTable, name: str, value: Json) -> str:
    """Return a number or a path as a path."""
    path = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    if not _PATH.fullmatch(path):
        raise options.wrong(name, "the number of an output, or a path like '0.1.text'")
    return path
