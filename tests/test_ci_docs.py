"""The blocks of docs/ci.md as their reader copies them: they parse, and every option exists."""

from __future__ import annotations

import argparse
import re
import shlex
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from sample_run import build, item, score, trial

from voxmeter.client import config
from voxmeter.client.cli import main

ROOT = Path(__file__).parent.parent
PAGES = {
    "docs/ci.md": (ROOT / "docs" / "ci.md").read_text(encoding="utf-8"),
    "README.md": (ROOT / "README.md").read_text(encoding="utf-8"),
}
WORKFLOWS = {
    "docs/ci.md": re.findall(r"```yaml\n(.*?)```", PAGES["docs/ci.md"], re.DOTALL)[0],
    "latency.yml": (ROOT / "examples" / "latency-regression" / "latency.yml").read_text(),
}


def steps(workflow: str) -> list[dict[str, Any]]:
    found = yaml.safe_load(workflow)
    (job,) = found["jobs"].values()
    assert all(len({"uses", "run"} & step.keys()) == 1 for step in job["steps"])
    return list(job["steps"])


COMMAND = re.compile(r"(?:^|[\s(`])voxmeter ((?:run|compare|check|serve|report)\b[^|)`#>]*)")


def commands(text: str) -> list[list[str]]:
    """Every `voxmeter ...` of a shell text, in words, with VALUE for what the shell fills in."""
    lines = (
        text.replace("\\\n", " ").replace('$(cat "$RUNNER_TEMP"/made)', '"$A" "$B"').splitlines()
    )
    written = [words for line in lines for words in COMMAND.findall(line)]
    return [[re.sub(r"\$\w+", "VALUE", one) for one in shlex.split(words)] for words in written]


def accepts(command: str, words: list[str]) -> bool:
    parser = argparse.ArgumentParser(command, allow_abbrev=False)
    import_module(f"voxmeter.client.commands.{command}").add_arguments(parser)
    try:
        parser.parse_args(words)
    except SystemExit:
        return False
    return True


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_is_what_such_a_service_reads(name: str) -> None:
    found = yaml.safe_load(WORKFLOWS[name])
    # YAML 1.1 reads the key `on` as true; the services do not.
    events = found.get("on", found.get(True))
    assert "pull_request" in (events if isinstance(events, list) else [events])
    (job,) = found["jobs"].values()
    assert job["runs-on"]
    assert any("checkout" in step.get("uses", "") for step in steps(WORKFLOWS[name]))
    installs = [
        step["run"] for step in steps(WORKFLOWS[name]) if "pip install" in step.get("run", "")
    ]
    assert len(installs) == 1
    assert re.search(r'"voxmeter(\[\w+\])? @ \$VOXMETER"', installs[0])  # no index has ours
    assert str(job["env"]["VOXMETER"]).startswith("git+https://")


def test_no_page_installs_from_an_index_what_is_not_there() -> None:
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
    for page in pages:
        assert not re.search(r"pip install voxmeter\b", page.read_text(encoding="utf-8")), page


def test_no_recipe_hides_how_a_run_ended_behind_a_pipe() -> None:
    for page in PAGES.values():
        assert not re.search(r"voxmeter (run|compare|check)\b[^\n#]*\| *tail", page)


@pytest.mark.parametrize("name", PAGES)
def test_every_command_of_the_shell_blocks_is_taken_by_the_program(name: str) -> None:
    every = re.findall(r"^```(\w*)\n(.*?)^```", PAGES[name], re.DOTALL | re.MULTILINE)
    blocks = [text for language, text in every if language in {"", "sh"}]
    if name == "docs/ci.md":
        blocks += [str(step["run"]) for step in steps(WORKFLOWS[name]) if "run" in step]
    found = [command for block in blocks for command in commands(block)]
    assert {command[0] for command in found} >= {"run", "compare"}
    assert [command for command in found if not accepts(command[0], command[1:])] == []
    assert not accepts("compare", ["VALUE", "VALUE", "--no-such-option"])


def test_the_bench_of_the_page_is_a_bench(tmp_path: Path) -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", PAGES["docs/ci.md"], re.DOTALL)
    bench = config.parse(tomllib.loads(text), "bench.toml", tmp_path)
    assert [gate.metric for gate in bench.gates] == ["first_audible_ms", "accuracy"]
    assert all(gate.regression for gate in bench.gates)


def test_the_last_steps_of_the_workflow_do_what_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [str(step["run"]) for step in steps(WORKFLOWS["docs/ci.md"]) if "run" in step]
    (line,) = [run for run in runs if run.startswith("voxmeter compare")]
    (tmp_path / "temp").mkdir()
    paths = []
    for shift in (0, 90):
        rows = [
            trial(f"q{n}", first_audible_ms=800 + shift + 7 * n + (n * shift) % 5)
            for n in range(10)
        ]
        names = [item(row["item"]) for row in rows]
        parent = tmp_path / "runs" / str(shift)
        with build(parent, names, rows, [score(row) for row in rows]) as folder:
            paths.append(str(folder.path))
    (tmp_path / "temp" / "made").write_text("\n".join(paths) + "\n")
    monkeypatch.chdir(tmp_path)
    said = line.replace('$(cat "$RUNNER_TEMP"/made)', " ".join(paths))
    words = shlex.split(said.replace('"$RUNNER_TEMP"', str(tmp_path / "temp")))
    assert main(words[1:]) == 1  # the step fails the job
    assert (tmp_path / "gates.xml").is_file()
    assert "**voxmeter: regression**" in (tmp_path / "temp" / "comment.md").read_text()


def test_a_calibration_with_few_trials_in_time_gives_no_jitter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    power = import_module("compare_power")
    errors = [
        {"mark": "first_audible_ms", "sessions": sessions, "n": n, "p99_abs_ms": 2.576}
        for sessions, n in ((1, 99), (50, 100))
    ]
    assert list(power.calibrated_jitter({"errors": errors})) == [1.0]
    assert power.too_few({"errors": errors}) == [
        "calibrate found 99 trials in time with 1 sessions: too few for a 99th percentile (100); "
        "refused"
    ]
    assert (power.calibrated_jitter(None), power.too_few(None)) == ({}, [])
