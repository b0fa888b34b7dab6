"""Reads a bench.toml; whatever is wrong with it becomes one line: place, what was found, a cure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voxmeter.client import config_errors, presets
from voxmeter.client.effects import steps
from voxmeter.client.jsonlines import disk
from voxmeter.endpoints.errors import UserError

if TYPE_CHECKING:
    from voxmeter.client.bench import Bench, Endpoint

DEFAULT_NAME = "bench.toml"
_LONGEST = 4 << 20


def load(path: Path | None) -> Bench:
    """Read a bench.toml.

    Args:
        path: The file; None means `bench.toml` in the working folder, else the copy that comes
            with voxmeter (`Bench.packaged` is then true, so that a command can say so).

    Raises:
        UserError: If there is no such file, or anything in it is wrong: one line with file, key,
            what was found, and what to do.
    """
    packaged = path is None and not Path(DEFAULT_NAME).exists()
    if packaged:
        file = Path(__file__).with_name(DEFAULT_NAME)
    else:
        file = Path(DEFAULT_NAME) if path is None else path
    source = f"{DEFAULT_NAME} (packaged)" if packaged else str(file)
    data = tables(_text(file, source), source)
    return parse(data, source, file.resolve().parent, packaged=packaged)


def tables(text: str, source: str) -> dict[str, Any]:
    """Return the tables and keys of a TOML text.

    Raises:
        UserError: If it is no TOML, with line and column where they are known.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.fullmatch(
            r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", str(error)
        )
        if found is None:
            raise UserError(source, f"not TOML: {error}", "correct it") from None
        line = found[2] or str(text.count("\n") + 1)
        column = f":{found[3]}" if found[3] else ""
        raise UserError(
            f"{source}:{line}{column}", f"not TOML: {found[1]}", "correct this line"
        ) from None
    except RecursionError:
        raise UserError(source, "is nested too deeply", "correct it") from None


def parse(
    data: Mapping[str, Any], source: str, folder: Path = Path(), *, packaged: bool = False
) -> Bench:
    """Check what a bench.toml says; presets are laid under the user's own keys.

    Args:
        data: Tables and keys, as `tomllib` returns them.
        source: The file's name for errors; its stem names a run that has no name.
        folder: What relative paths in the file are relative to.
        packaged: Whether this is the copy that comes with voxmeter.

    Raises:
        UserError: If anything in it is wrong.
    """
    config_errors.check_shape(data, source)
    return _checked(presets.laid_under(data, source), source, folder, packaged=packaged)


def reread(data: Mapping[str, Any], source: str) -> Bench:
    """Check the configuration in a run.json.

    What a preset held when the run began is in it, so that a later version's changes nothing.

    Args:
        data: What `resolved` returned.
        source: The file's name for errors.

    Raises:
        UserError: If anything in it is wrong.
    """
    config_errors.check_shape(data, source)
    return _checked(data, source, Path())


def _checked(
    data: Mapping[str, Any], source: str, folder: Path, *, packaged: bool = False
) -> Bench:
    import pydantic

    from voxmeter.client.bench import Bench
    from voxmeter.client.bench_rules import check

    config_errors.check_letters(data, source)
    try:
        bench = Bench.model_validate(
            {**data, "run": {"name": _stem(source), **data.get("run", {})}}
        )
    except pydantic.ValidationError as error:
        raise config_errors.explained(error.errors(), data, source) from None
    place = {"source": source, "folder": folder, "packaged": packaged}
    bench = _from_here(bench, folder).model_copy(update=place)
    check(bench)
    return bench


def resolved(bench: Bench) -> dict[str, Any]:
    """Return the configuration with every default filled in, for run.json; `reread` reads it back.

    It names environment variables, never their values.
    """
    return bench.model_dump(mode="json", by_alias=True, exclude_none=True)


def overridden(
    bench: Bench,
    *,
    name: str | None = None,
    out: str | None = None,
    trials: int | None = None,
    concurrency: int | None = None,
) -> Bench:
    """Return the bench with what the command line sets; None leaves the file's value.

    Args:
        bench: As loaded.
        name: `--name`.
        out: `--out`.
        trials: `--trials`.
        concurrency: `--concurrency`, for every endpoint.

    Raises:
        UserError: If a value is out of range.
    """
    import pydantic

    given = {"name": name, "out": out, "trials": trials, "concurrency": concurrency}
    changed = {key: value for key, value in given.items() if value is not None}
    endpoints = bench.endpoints
    if concurrency is not None:
        endpoints = tuple(one.model_copy(update={"concurrency": None}) for one in endpoints)
    try:
        run = type(bench.run).model_validate({**bench.run.model_dump(), **changed})
    except pydantic.ValidationError as error:
        errors = [{**one, "loc": ("run", *one["loc"])} for one in error.errors()]
        raise config_errors.explained(errors, {"run": changed}, "command line") from None
    return bench.model_copy(update={"run": run, "endpoints": endpoints})


def _from_here(bench: Bench, folder: Path) -> Bench:
    """Return the bench with its relative paths starting from a folder."""

    def whole(path: str | None) -> str | None:
        return None if path is None else str(folder / Path(path).expanduser())

    suites = tuple(one.model_copy(update={"path": whole(one.path)}) for one in bench.suites)
    endpoints = tuple(
        one.model_copy(update={"ca_file": whole(one.ca_file), "folder": whole(_home(one))})
        for one in bench.endpoints
    )
    judges = tuple(
        one.model_copy(update={"prompts": {name: whole(at) for name, at in one.prompts.items()}})
        for one in bench.judges
    )
    conditions = tuple(
        one.model_copy(update={"chain": steps.located(one.chain, lambda path: str(whole(path)))})
        for one in bench.conditions
    )
    changed: dict[str, object] = {
        "suites": suites,
        "endpoints": endpoints,
        "conditions": conditions,
        "judges": judges,
    }
    mqtt = bench.publish.mqtt
    if mqtt is not None:
        table = mqtt.model_copy(update={"ca_file": whole(mqtt.ca_file)})
        changed["publish"] = bench.publish.model_copy(update={"mqtt": table})
    model = Path(bench.transcribe.model).expanduser()
    if bench.transcribe.model.startswith((".", "~")) or (folder / model).is_dir():
        found = bench.transcribe.model_copy(update={"model": str(folder / model)})
        changed["transcribe"] = found
    return bench.model_copy(update=changed)


def _home(endpoint: Endpoint) -> str | None:
    """Return the folder of an endpoint on this machine; a resumed run must find it again."""
    elsewhere = endpoint.url is not None or endpoint.builtin is not None
    return endpoint.folder if elsewhere or endpoint.folder is not None else "."


def _stem(source: str) -> str:
    return Path(source.removesuffix(" (packaged)")).stem or "bench"


def _text(file: Path, source: str) -> str:
    if not file.exists():
        raise UserError(source, "no such file", "give the path of a bench.toml")
    if file.is_dir():
        inside = file / DEFAULT_NAME
        cure = f"give {inside}" if inside.exists() else "give the path of a file"
        raise UserError(source, "is a folder", cure)
    with disk(file), file.open("rb") as opened:
        data = opened.read(_LONGEST + 1)
    if len(data) > _LONGEST:
        raise UserError(source, f"is over {_LONGEST >> 20} MiB", "give the path of a bench.toml")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\x00" in data:
        raise UserError(source, "is not UTF-8 text", "save it as UTF-8")
    try:
        return data.decode("utf-8-sig")  # editors on Windows put a byte-order mark first
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"{source}:{line}", "is not UTF-8 text", "save it as UTF-8") from None
