"""docs/configuration.md lists every key of a bench.toml with its default, and no other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from voxmeter.client import bench

DOCS = Path(__file__).parent.parent / "docs" / "configuration.md"
TABLES: dict[str, type[BaseModel]] = {
    "[run]": bench.Run,
    "[[endpoint]]": bench.Endpoint,
    "[[suite]]": bench.Suite,
    "[[condition]]": bench.Condition,
    "[transcribe]": bench.Transcribe,
    "[[judge]]": bench.Judge,
    "[[gate]]": bench.Gate,
    "[publish.mqtt]": bench.Mqtt,
}


def _documented(header: str) -> dict[str, str]:
    """Return the keys of one table of the page, with what it says of their defaults."""
    text = DOCS.read_text()
    section = text.partition(f"## `{header}`\n")[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| `([a-z_.]+)` \| (.*?) ?\|", section, re.MULTILINE))


def _keys(model: type[BaseModel]) -> dict[str, Any]:
    found = {name: field.default for name, field in model.model_fields.items()}
    if model is bench.Gate:
        nested = _keys(bench.Regression)
        found |= {f"regression.{name}": default for name, default in nested.items()}
    return found


@pytest.mark.parametrize("header", TABLES)
def test_every_key_is_documented_and_no_other(header: str) -> None:
    assert set(_documented(header)) == set(_keys(TABLES[header]))


@pytest.mark.parametrize("header", TABLES)
def test_defaults_are_those_of_the_page(header: str) -> None:
    documented = _documented(header)
    for name, field in TABLES[header].model_fields.items():
        shown = documented[name]
        if field.is_required():
            assert shown == "needed", name
        elif isinstance(field.default, bool | int | float | str) and field.default != "":
            default = field.default
            written = f'"{default}"' if isinstance(default, str) else f"{default}".lower()
            written = written.removesuffix(".0")
            assert shown == f"`{written}`" or (header, name) == ("[run]", "name"), name
        else:
            assert not shown.startswith('`"'), name


def test_every_table_of_the_file_has_a_section() -> None:
    fields = bench.Bench.model_fields.items()
    names = {field.alias or name for name, field in fields if not field.exclude}
    sections = re.findall(r"^## `\[+([a-z]+)", DOCS.read_text(), re.MULTILINE)
    assert set(sections) == names
