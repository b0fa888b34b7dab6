"""The pages for readers: what they point at is there, and their scripts run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from voxmeter.client.audio import write_flac
from voxmeter.client.servers.voice import babble

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
_FOLDERS = "examples|tests|docs|benchmarks|client|scoring|suites|endpoints"


def _anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as a code host makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", text):
        name, _, anchor = target.partition("#")
        found = (page.parent / name).resolve() if name else page
        assert found.exists(), target
        if anchor:
            assert anchor in _anchors(found), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    named = re.findall(rf"\b((?:{_FOLDERS})/[\w./-]+\.(?:py|md|jsonl|toml))\b", page.read_text())
    for name in named:
        if "acme" in name or "NAME" in name:  # what a reader is to write
            continue
        assert (ROOT / name).exists() or (page.parent / name).exists(), name


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or not page.exists():
            continue
        seen.add(page)
        links = re.findall(r"\]\((?!https?:)([^)#]+\.md)", page.read_text())
        waiting.extend((page.parent / link).resolve() for link in links)
    assert set(PAGES) <= seen


def test_every_benchmark_has_a_line() -> None:
    text = (ROOT / "docs" / "benchmarks.md").read_text()
    for script in ROOT.glob("benchmarks/*.py"):
        assert f"benchmarks/{script.name}" in text, script.name


def test_the_script_of_the_page_on_scripts_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    text = (ROOT / "docs" / "scripts.md").read_text()
    script = text.partition("```python\n")[2].partition("```")[0]
    write_flac(tmp_path / "question.wav", babble(16_000, 0.3), 16_000)
    (tmp_path / "script.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].split()[1] == "ok"


def test_every_test_that_shows_a_fault_is_there() -> None:
    text = (ROOT / "docs" / "reliability.md").read_text()
    table = text.partition("## Every fault, and its test")[2].partition("\n## ")[0]
    faults = [line for line in table.splitlines() if line.startswith("|")][2:]
    assert len(faults) > 20
    for fault in faults:
        named = re.findall(r"`(tests/test_\w+\.py)::(test_\w+)`", fault)
        assert named, fault
        for file, test in named:
            assert re.search(rf"^(async )?def {test}\(", (ROOT / file).read_text(), re.MULTILINE), (
                test
            )
