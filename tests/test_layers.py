"""The layer rule, read from the source, and what may not be loaded before it is needed."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = ("endpoints", "scoring", "suites", "client")
"""From the bottom up: each may import itself and what stands before it."""

HEAVY = {
    "audiomentations",
    "av",
    "ctranslate2",
    "cyllama",
    "faster_whisper",
    "hibari",
    "httpx",
    "httpx2",
    "huggingface_hub",
    "jiwer",
    "numpy",
    "onnxruntime",
    "openai",
    "piper",
    "pydantic",
    "rich",
    "scipy",
    "soundfile",
    "soxr",
    "sphn",
    "text_to_num",
    "uvloop",
    "websockets",
}


def modules() -> Iterator[tuple[str, Path]]:
    for layer in LAYERS:
        for path in sorted((ROOT / layer).rglob("*.py")):
            yield layer, path


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Yield level and full name of everything that a file imports, functions included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            yield from ((node.level, f"{module}.{alias.name}") for alias in node.names)


def wrong(layer: str, path: Path) -> list[str]:
    allowed = LAYERS[: LAYERS.index(layer) + 1]
    found = []
    for level, name in imports(path):
        parts = name.split(".")
        upward = parts[0] == "voxmeter" and parts[1:2] and parts[1] in LAYERS
        if level:
            found.append(f"{path.name}: relative import of {name}")
        elif parts[0] in LAYERS:
            found.append(f"{path.name}: {name} without voxmeter before it")
        elif upward and parts[1] not in allowed:
            found.append(f"{path.name}: {layer} imports {name}")
    return found


def test_no_module_imports_from_a_layer_above_it() -> None:
    found = [line for layer, path in modules() for line in wrong(layer, path)]
    assert found == []


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def f():\n    from voxmeter.client.clock import Clock", "scoring imports"),
        ("import voxmeter.suites.demo", "scoring imports"),
        ("from voxmeter import client", "scoring imports"),
        ("from . import log", "relative import"),
        ("import endpoints.codec", "without voxmeter"),
    ],
)
def test_a_breach_of_the_rule_is_seen(tmp_path: Path, source: str, words: str) -> None:
    path = tmp_path / "module.py"
    path.write_text(source)
    assert [words in line for line in wrong("scoring", path)] == [True]
    path.write_text("from voxmeter.endpoints.codec import Step\nimport json")
    assert wrong("scoring", path) == []


def test_protocols_read_no_clock_open_no_socket_and_log_nothing() -> None:
    banned = {"asyncio", "logging", "socket", "ssl", "threading", "time", "websockets", "random"}
    for layer, path in modules():
        if layer == "endpoints":
            assert not {name.split(".")[0] for _, name in imports(path)} & banned, path.name


def loaded(code: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter has loaded after some code."""
    code = f"{code}\nimport sys; print('\\n'.join({{name.split('.')[0] for name in sys.modules}}))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT / "src")
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "code",
    [
        "import voxmeter",
        "import voxmeter.endpoints.catalog as c; [c.find(name) for name in c.KINDS]",
        "import voxmeter.endpoints.openai_realtime, voxmeter.endpoints.openai_realtime_server",
        "import voxmeter.client.cli",
    ],
)
def test_importing_loads_nothing_heavy(code: str) -> None:
    assert loaded(code) & HEAVY == set()


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["--version"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    code = (
        f"import sys; sys.argv = ['voxmeter', *{arguments!r}]\n"
        "import contextlib, io\n"
        "from voxmeter.__main__ import main\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
        "    main()"
    )
    assert loaded(code) & HEAVY == set()


def test_the_watch_for_heavy_modules_sees_one() -> None:
    assert "numpy" in loaded("import numpy") & HEAVY
