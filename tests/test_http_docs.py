"""Every example of the pages about HTTP endpoints can be pasted: it loads and makes a codec."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from voxmeter.client import config
from voxmeter.client.targets import settings
from voxmeter.endpoints import catalog
from voxmeter.endpoints.codec import Codec
from voxmeter.endpoints.kind import load

DOCS = Path(__file__).parent.parent / "docs" / "endpoints"


def examples() -> Iterator[tuple[str, str]]:
    for name in ("mini-omni", "openai-chat", "http"):
        page = (DOCS / f"{name}.md").read_text(encoding="utf-8")
        yield from ((name, found) for found in re.findall(r"```toml\n(.*?)```", page, re.DOTALL))


@pytest.mark.parametrize(("kind", "example"), list(examples()))
def test_an_example_loads_and_everything_in_it_has_a_place(kind: str, example: str) -> None:
    bench = config.parse(tomllib.loads(example) | {"suite": [{"kind": "demo"}]}, "page")
    for endpoint in bench.endpoints:
        assert endpoint.kind == kind
        make = load(catalog.find(kind).codec)
        codec = cast("Codec", make(settings(endpoint)))  # type: ignore[operator]
        assert codec.address(endpoint.url or "", None).url.startswith(endpoint.url or "")
        (ready,) = codec.open().events
        assert getattr(ready, "note", None) == ""
