"""What a Gradio app says of itself (`/config`), and the words of its event stream, read as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from voxmeter.endpoints.codec import Json
from voxmeter.endpoints.fields import Fields

_SPOKEN = ("sse_v1", "sse_v2", "sse_v2.1", "sse_v3")
_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Function:
    """One function that can be called.

    Attributes:
        index: Its number.
        name: Its API name without a slash, "" for none.
        inputs: The kinds of component that it takes, in order.
        outputs: Those that it gives.
    """

    index: int
    name: str
    inputs: Sequence[str]
    outputs: Sequence[str]

    def all_inputs(self, given: Sequence[Json]) -> list[Json] | None:
        """Return one value for each input: state that was left out is null; None if some lack."""
        if len(given) == len(self.inputs):
            return list(given)
        shown = [kind for kind in self.inputs if kind != "state"]
        if len(given) != len(shown):
            return None
        left = iter(given)
        return [None if kind == "state" else next(left) for kind in self.inputs]

    def shown(self, outputs: Sequence[Json]) -> list[Json]:
        """Return the outputs without state, which the server keeps to itself."""
        if len(outputs) != len(self.outputs):
            return list(outputs)
        both = zip(outputs, self.outputs, strict=True)
        return [value for value, kind in both if kind != "state"]


@dataclass(frozen=True, slots=True)
class App:
    """One app.

    Attributes:
        version: Of Gradio.
        protocol: How its queue is spoken to; `ws` up to Gradio 3.
        prefix: Of the paths of its API.
        functions: All that can be called.
    """

    version: str
    protocol: str
    prefix: str
    functions: Sequence[Function]

    @property
    def queued(self) -> bool:
        """Whether answers come over an event stream."""
        return self.protocol in _SPOKEN

    @property
    def refused(self) -> str | None:
        """What speaks against this app, None if nothing does."""
        if self.queued or self.protocol == "ws":
            return None
        return (
            f"Gradio {self.version} speaks {self.protocol}, which is not supported: "
            "bring the app to Gradio 4.9 or later"
        )

    @property
    def diffs(self) -> bool:
        """Whether all but the first of several outputs say only what has changed."""
        return self.protocol != "sse_v1"

    def find(self, name: str, index: int | None) -> Function | None:
        """Return a function by its number, or else by its name; None if there is no such one."""
        for one in self.functions:
            if one.index == index if index is not None else one.name == name.strip("/"):
                return one
        return None

    @property
    def names(self) -> str:
        """What can be called, for a message."""
        named = [f"/{one.name}" for one in self.functions if one.name]
        if named:
            return _few(named)
        by_number = [f"{one.index} ({', '.join(one.inputs)})" for one in self.functions]
        return f"no named functions, by fn_index: {_few(by_number) or 'none'}"


def read_app(told: Fields) -> App:
    """Return what a configuration says.

    Raises:
        ProtocolError: If it is not that of a Gradio app.
    """
    if not told.has("dependencies") or not told.has("components"):
        raise told.problem("not the configuration of a Gradio app")
    kinds: dict[int, str] = {}
    for one in told.objects("components"):
        kinds[one.whole("id")] = one.text("type", "")
    functions = []
    for place, one in enumerate(told.objects("dependencies")):
        name = one.data.get("api_name")
        functions.append(
            Function(
                one.whole("id", place),
                name.strip("/") if isinstance(name, str) else "",
                _kinds(one, "inputs", kinds),
                _kinds(one, "outputs", kinds),
            )
        )
    prefix = told.text("api_prefix", "").rstrip("/")
    return App(told.text("version", ""), told.text("protocol", "ws"), prefix, functions)


def _kinds(told: Fields, name: str, kinds: dict[int, str]) -> Sequence[str]:
    ids = told.data.get(name)
    if not isinstance(ids, list):
        raise told.problem(f"{told.place}{name} is not a list")
    return [kinds.get(one, "") if isinstance(one, int) else "" for one in ids]


def patched(told: Fields, old: Json, edits: Json) -> Json:
    """Return a value after the edits by which an event tells how it has changed.

    Args:
        told: The event, for errors.
        old: The value before, which is not changed.
        edits: `[action, path, value]` each: `append`, `replace`, `add` or `delete`.

    Raises:
        ProtocolError: If they are no edits, or do not fit the value.
    """
    if not isinstance(edits, list):
        raise told.problem("an output that should say what has changed does not")
    for edit in edits:
        match edit:
            case [str(action), list(path), value]:
                old = _edited(told, old, path, action, value)
            case _:
                raise told.problem("a change that is not an action, a path and a value")
    return old


def _edited(told: Fields, old: Json, path: Sequence[Json], action: str, value: Json) -> Json:
    """Return a copy with one edit; what lies beside its path is shared with the old value."""
    if not path:
        return _changed(told, old, action, value)
    if len(path) > 100:
        raise told.problem("a change that is nested too deeply")
    key, rest = path[0], path[1:]
    made: Json
    if isinstance(old, dict) and isinstance(key, str):
        made = dict(old)
        if not rest and action == "delete":
            made.pop(key, None)
        elif not rest and action == "add":
            made[key] = value
        elif key in made:
            made[key] = _edited(told, made[key], rest, action, value)
        else:
            raise told.problem("a change where there is nothing")
        return made
    if not isinstance(old, list) or not isinstance(key, int) or key < 0:
        raise told.problem("a change where there is nothing")
    if not rest and action == "delete":
        return old[:key]  # only what has gone at the end is told so, each by the place that it had
    if key > len(old) or (key == len(old) and (rest or action != "add")):
        raise told.problem("a change where there is nothing")
    made = list(old)
    if not rest and action == "add":
        made.insert(key, value)
    else:
        made[key] = _edited(told, made[key], rest, action, value)
    return made


def _changed(told: Fields, old: Json, action: str, value: Json) -> Json:
    if action == "replace":
        return value
    if action == "append" and isinstance(old, str) and isinstance(value, str):
        return old + value
    if action == "append" and isinstance(old, list) and isinstance(value, list):
        return old + value
    raise told.problem(f"a change that cannot be made: {action[:40]}")


def _few(found: Sequence[str]) -> str:
    more = [f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    return ", ".join([*found[:_SHOWN], *more])
