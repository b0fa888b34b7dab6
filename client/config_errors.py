"""From what pydantic found in a bench.toml to the one line a user can act on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from voxmeter.client import nearest
from voxmeter.client.terminal import printable
from voxmeter.endpoints.errors import UserError

if TYPE_CHECKING:
    from pydantic import BaseModel

LISTS = ("endpoint", "suite", "condition", "judge", "gate")
TABLES = ("run", "transcribe", "publish")

_SECRET = ("api_key_env", "headers", "username_env", "password_env")
_EXPECTED = {
    "string_type": 'write text in quotes: "..."',
    "int_type": "write a whole number",
    "int_from_float": "write a whole number",
    "float_type": "write a number",
    "finite_number": "write a number that is finite",
    "bool_type": "write true or false",
    "invalid-json-value": "write text, a number, true, false, a list or a table",
    "too_short": "write at least one",
    "tuple_type": "write a list: [...]",
    "dict_type": "write a table: {...}",
    "model_type": "write a table: {...}",
}


def check_shape(data: Mapping[str, Any], source: str) -> None:
    """Check that lists of tables are written `[[...]]` and single tables `[...]`.

    Raises:
        UserError: At the first that is not, or if no endpoint or no suite is there.
    """
    for name in LISTS:
        value = data.get(name)
        if isinstance(value, Mapping):
            inner = next((key for key, one in value.items() if isinstance(one, Mapping)), None)
            header = f"[{name}.{printable(inner)}]" if inner else f"[{name}]"
            named = f' with name = "{printable(inner)}"' if inner else ""
            raise UserError(
                f"{source}: {header}",
                "one table where a list of tables is expected",
                f"write [[{name}]]{named}",
            )
        if value is not None and not _is_list_of_tables(value):
            raise UserError(
                f"{source}: {name}", f"is {described(value)}", f"write [[{name}]] tables"
            )
    for name in TABLES:
        if name in data and not isinstance(data[name], Mapping):
            found = described(data[name])
            raise UserError(f"{source}: {name}", f"is {found}", f"write one table [{name}]")


def check_letters(data: Mapping[str, Any], source: str) -> None:
    """Check that no text has a zero byte in it, which no path, address or argument can hold.

    Raises:
        UserError: At one that has.
    """
    left: list[tuple[tuple[str | int, ...], object]] = [((), data)]
    while left:
        path, value = left.pop()
        if isinstance(value, str) and "\0" in value:
            raise UserError(f"{source}: {place_of(path, data)}", "holds a zero byte", "remove it")
        if isinstance(value, Mapping):
            left += [((*path, name), one) for name, one in value.items()]
        elif isinstance(value, list | tuple):
            left += [((*path, number), one) for number, one in enumerate(value)]


def explained(
    errors: Sequence[Mapping[str, Any]], data: Mapping[str, Any], source: str
) -> UserError:
    """Return the first error as a line; unknown keys first, for they explain missing ones."""
    first = min(errors, key=lambda error: error["type"] != "extra_forbidden")
    path = _path(first, data)
    place = f"{source}: {place_of(path, data)}"
    kind = first["type"]
    if len(path) == 1 and path[0] in LISTS and kind in {"missing", "too_short"}:
        return UserError(source, f"has no [[{path[0]}]]", f"add one; see {_DOCS}")
    if kind == "extra_forbidden":
        return UserError(place, *_unknown(path, data))
    if kind == "missing":
        return UserError(place, "is missing", "add this key")
    if kind == "voxmeter":
        context = first.get("ctx", {})
        return UserError(place, str(context["found"]), str(context["cure"]))
    return UserError(place, _found(path, data), _expected(first))


_DOCS = "docs/configuration.md"


def place_of(path: Sequence[str | int], data: Mapping[str, Any]) -> str:
    """Return a key's place as the file shows it: `[[endpoint]] "mine" url`.

    Args:
        path: Keys and indices from the top of the file.
        data: The file's content; list tables are called by their names where they have one.
    """
    if not path:
        return "the file"
    head, *rest = path
    words: list[str] = []
    if head in LISTS and rest and isinstance(rest[0], int):
        table = data[str(head)][rest[0]]
        name = table.get("name") or (table.get("kind") if head == "suite" else None)
        shown = f'"{printable(name, 60)}"' if isinstance(name, str) and name else str(rest[0] + 1)
        words = [f"[[{head}]] {shown}"]
        rest = rest[1:]
    elif head == "publish" and rest and rest[0] == "mqtt":
        words, rest = ["[publish.mqtt]"], rest[1:]
    elif head in TABLES and (rest or isinstance(data.get(str(head)), Mapping)):
        words = [f"[{head}]"]
    elif isinstance(data.get(str(head)), Mapping):
        words = [f"[{printable(str(head), 60)}]"]
    else:
        words = [printable(str(head), 60)]
    keys = ""
    for one in rest:
        if isinstance(one, int):
            keys += f"[{one}]"
        else:
            keys += f".{printable(one, 60)}" if keys else printable(one, 60)
    return " ".join([*words, keys]) if keys else " ".join(words)


def described(value: object) -> str:
    """Return a value of a TOML file with its kind, short enough for one line."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"{value}"
        case str():
            return f'the text "{printable(value, 60)}"'
        case list():
            return f"a list of {len(value)}"
        case Mapping():
            return "a table"
        case _:
            return f"a {type(value).__name__}"


def _is_list_of_tables(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, Mapping) for one in value)


def _path(error: Mapping[str, Any], data: Mapping[str, Any]) -> list[str | int]:
    """Return the error's place without the names that pydantic gives to members of unions."""
    path: list[str | int] = []
    value: Any = data
    for part in error["loc"]:
        if _holds(value, part):
            value = value[part]
        else:
            if error["type"] == "missing" and isinstance(value, Mapping):
                path.append(part)
            break
        path.append(part)
    return path


def _holds(value: object, part: str | int) -> bool:
    if isinstance(value, list):
        return isinstance(part, int) and part < len(value)
    return isinstance(value, Mapping) and part in value


def _value(path: Sequence[str | int], data: Mapping[str, Any]) -> Any:  # noqa: ANN401 - outside data
    value: Any = data
    for part in path:
        value = value[part]
    return value


def _found(path: Sequence[str | int], data: Mapping[str, Any]) -> str:
    if any(part in _SECRET for part in path):
        return "has the wrong type"  # what stands there may be a secret
    return f"is {described(_value(path, data))}"


def _expected(error: Mapping[str, Any]) -> str:
    kind, context = error["type"], error.get("ctx", {})
    match kind:
        case "literal_error":
            known = str(context["expected"]).replace("'", '"')
            return f"write {known}"
        case "greater_than":
            return f"write more than {context['gt']:g}"
        case "greater_than_equal":
            return f"write {context['ge']:g} or more"
        case "less_than_equal":
            return f"write {context['le']:g} or less"
        case _:
            return _EXPECTED.get(kind, str(error["msg"]).lower())


def _unknown(path: Sequence[str | int], data: Mapping[str, Any]) -> tuple[str, str]:
    name = str(path[-1])
    value = _value(path, data)
    model = _model(path[:-1])
    known = [field.alias or key for key, field in model.model_fields.items()]
    known = [key for key in known if not (len(path) == 1 and key in _NOT_IN_FILES)]
    what = "table" if len(path) == 1 and isinstance(value, dict | list) else "key"
    cure = nearest.cure(name, known)
    if nearest.nearest(name, known) is None:
        cure = _better_cure(path, data) or cure
    return f"unknown {what}", cure


def _better_cure(path: Sequence[str | int], data: Mapping[str, Any]) -> str | None:
    """Return what a key that is near to no other was probably meant to be."""
    name = str(path[-1])
    value = _value(path, data)
    shown = printable(name, 60)
    if len(path) != 3 or path[0] not in LISTS:
        return None
    if isinstance(value, Mapping):
        return f'write [[{path[0]}]] with name = "{shown}" for another one'
    if path[0] == "gate":
        from voxmeter.client.gate_rules import suggestion

        metric = suggestion(name)
        return f'write metric = "{metric}" and max or min in its unit' if metric else None
    if path[0] == "endpoint" and nearest.nearest(name, _options(_value(path[:2], data))):
        return f"it is an option of this kind: write {shown} under [endpoint.options]"
    return None


def _options(endpoint: Mapping[str, Any]) -> list[str]:
    from voxmeter.endpoints import catalog

    name = str(endpoint.get("kind", "openai-realtime"))
    return list(catalog.find(name).options) if name in catalog.KINDS else []


_NOT_IN_FILES = frozenset({"source", "folder", "packaged"})


def _model(path: Sequence[str | int]) -> type[BaseModel]:
    from voxmeter.client import bench

    names = tuple(part for part in path if isinstance(part, str))
    models: dict[tuple[str, ...], type[BaseModel]] = {
        (): bench.Bench,
        ("run",): bench.Run,
        ("endpoint",): bench.Endpoint,
        ("suite",): bench.Suite,
        ("condition",): bench.Condition,
        ("transcribe",): bench.Transcribe,
        ("judge",): bench.Judge,
        ("gate",): bench.Gate,
        ("gate", "regression"): bench.Regression,
        ("publish",): bench.Publish,
        ("publish", "mqtt"): bench.Mqtt,
    }
    return models[names]
