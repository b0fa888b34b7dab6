"""The plugin as a user's tests see it: run by pytest itself on small files of tests."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import conversations
import pytest
from test_layers import HEAVY, ROOT, loaded

from voxmeter.client import api
from voxmeter.client.servers.voice import babble

PLUGIN = "voxmeter.client.pytest_plugin"

TESTS = """
    from conversations import conversation, spread

    def test_hello(voxmeter):
        result = conversation(spread({centre}), {more})
        voxmeter.assert_no_regression(result, "baselines/hello.json", {limits})
"""


@pytest.fixture(autouse=True)
def _only_this_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess("-p", PLUGIN, "-W", "error", *arguments)


def write(pytester: pytest.Pytester, centre: float, more: str = "", limits: str = "") -> Path:
    text = TESTS.format(centre=centre, more=more, limits=limits)
    return Path(pytester.makepyfile(test_it=text))


@pytest.fixture
def baseline(pytester: pytest.Pytester) -> Path:
    """A baseline of 300 ms, written as users write it."""
    write(pytester, 300)
    done = run(pytester, "--voxmeter-update")
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(
        [
            "*= voxmeter =*",
            "test_it.py::test_hello: wrote baselines/hello.json: first_audible_ms of 20 trials",
        ]
    )
    return Path(pytester.path / "baselines" / "hello.json")


def test_what_is_no_worse_passes_and_the_figures_are_shown(
    baseline: Path, pytester: pytest.Pytester
) -> None:
    had = baseline.read_bytes()
    write(pytester, 301)
    done = run(pytester)
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(
        [
            "test_it.py::test_hello: first_audible_ms p50 301 ms [[]*] (n 20), was 300 ms [[]*] "
            "(n 20); change +1.0 ms [[]-* to +*]: the interval holds zero",
        ]
    )
    assert baseline.read_bytes() == had


def test_a_regression_fails_with_figures_floors_and_the_command_that_accepts_it(
    baseline: Path, pytester: pytest.Pytester
) -> None:
    write(pytester, 400, "late=1")
    done = run(pytester)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            ">*voxmeter.assert_no_regression(result*",
            "E*AssertionError: first_audible_ms is worse than in baselines/hello.json",
            "E*p50 400 ms [[]*] (n 20), was 300 ms [[]*] (n 20); change +100.0 ms *",
            "E*beyond both floors: 30 ms (absolute_ms=30), 30 ms (relative=0.1 of 300 ms)*",
            "E*here, of 21 trials (left out: 1 late on this machine)",
            "E*pytest --voxmeter-update test_it.py::test_hello",
        ]
    )
    assert "regression.py" not in done.stdout.str()  # only the user's own lines are shown
    assert "pytest_plugin.py" not in done.stdout.str()


def test_the_command_in_a_message_works_as_it_stands(
    baseline: Path, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(
        test_it="""
            import pytest
            from conversations import conversation, spread

            @pytest.mark.parametrize("voice", ["it's", "a b"])
            def test_hello(voice, voxmeter):
                voxmeter.assert_no_regression(conversation(spread(300)), f"{voice}.json")
        """
    )
    done = run(pytester)
    done.assert_outcomes(failed=2)
    lines = done.stdout.str().splitlines()
    commands = {line.partition("write it with: ")[2] for line in lines if line.startswith("E ")}
    for command in filter(None, commands):
        again = subprocess.run(
            ["sh", "-c", f"{sys.executable} -m {command} -p {PLUGIN}"],
            cwd=pytester.path,
            env={
                "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}",
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # else it is there twice
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert "1 passed" in again.stdout, again.stdout + again.stderr
    run(pytester).assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("limits", "failed"),
    [
        ("relative=0.5", 0),
        ("absolute_ms=150", 0),
        ("relative=0, absolute_ms=0", 1),
        ("at='mean'", 1),
        ("metric='first_audible_ms', relative=0.3, absolute_ms=90", 1),
    ],
)
def test_floors_and_figure_can_be_chosen(
    limits: str, failed: int, baseline: Path, pytester: pytest.Pytester
) -> None:
    write(pytester, 400, limits=limits)
    run(pytester).assert_outcomes(failed=failed, passed=1 - failed)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("clip='cd' * 32", "another clip_sha256 (abababababab, now cdcdcdcdcdcd)"),
        ("endpoint_kind='moshi'", "another endpoint_kind (openai-realtime, now moshi)"),
        ("latency_kind='commit'", "another latency_kind (server-vad, now commit)"),
        (
            "clip='cd' * 32, endpoint_kind='moshi'",
            "another endpoint_kind (openai-realtime, now moshi) and another clip_sha256",
        ),
    ],
)
def test_a_baseline_of_something_else_is_refused_and_not_compared(
    more: str, told: str, baseline: Path, pytester: pytest.Pytester
) -> None:
    write(pytester, 900, more)  # slower, too: that must not be what is said
    done = run(pytester)
    done.assert_outcomes(failed=1)
    reason = [line for line in done.stdout.str().splitlines() if line.startswith("E ")]
    assert len(reason) == 1
    assert f"UserError: baselines/hello.json: was made from {told}" in reason[0]
    assert "is worse" not in done.stdout.str()


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("schema", 7, "is of schema 7, and this version of voxmeter reads 1"),
        ("metrics", {}, "has 0 samples of first_audible_ms; 5 are needed"),
        ("metrics", "\x1b[2J", "is no baseline (metrics: *)"),
        ("pacing", "fast", "was made from another pacing (fast, now real-time)"),
    ],
)
def test_a_damaged_or_newer_baseline_fails_in_one_line(
    key: str, value: object, told: str, baseline: Path, pytester: pytest.Pytester
) -> None:
    baseline.write_text(json.dumps(json.loads(baseline.read_text()) | {key: value}))
    done = run(pytester)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines([f"E *UserError: baselines/hello.json: {told}; *--voxmeter-update*"])
    assert sum(line.startswith("E ") for line in done.stdout.str().splitlines()) == 1


def test_a_missing_baseline_fails_with_the_command_that_writes_it(
    pytester: pytest.Pytester,
) -> None:
    write(pytester, 300)
    done = run(pytester)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            "E *UserError: baselines/hello.json: there is no such baseline; write it with: "
            "pytest --voxmeter-update test_it.py::test_hello"
        ]
    )
    assert not (pytester.path / "baselines").exists()


@pytest.mark.parametrize(
    "named", ['"baselines/hello.json"', 'baseline="baselines/hello.json", metric="reply_ms"']
)
def test_a_missing_baseline_is_told_before_anything_is_asked(
    named: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(api, "converse", lambda *words, **_: asked.append(words))
    pytester.makepyfile(
        test_it=f"""
        class TestIt:
            def test_hello(self, voxmeter):
                result = voxmeter.converse("ws://127.0.0.1:9", "clip.wav")
                voxmeter.assert_no_regression(result, {named})
        """
    )
    done = run(pytester)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        ["E *baselines/hello.json: there is no such baseline; write it with: pytest *"]
    )
    assert asked == []
    run(pytester, "--voxmeter-update")  # there it is about to be written
    assert len(asked) == 1


def test_a_baseline_that_is_no_plain_text_is_told_of_afterwards(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def converse(*words: object, **_: object) -> object:
        asked.append(words)
        return conversations.conversation(conversations.spread(300))

    monkeypatch.setattr(api, "converse", converse)
    pytester.makepyfile(
        test_it="""
        def test_hello(voxmeter, request):
            result = voxmeter.converse("ws://127.0.0.1:9", "clip.wav")
            voxmeter.assert_no_regression(result, f"{request.node.name}.json")
        """
    )
    run(pytester).stdout.fnmatch_lines(["E *test_hello.json: there is no such baseline*"])
    assert len(asked) == 1


def test_what_a_new_baseline_left_out_is_said_when_it_is_written(
    pytester: pytest.Pytester,
) -> None:
    write(pytester, 300, "late=3, failed=1")
    run(pytester, "--voxmeter-update").stdout.fnmatch_lines(
        [
            "*wrote baselines/hello.json: first_audible_ms of 20 of 24 trials "
            "(left out: 3 late on this machine, 1 timeout)"
        ]
    )


def test_baselines_lie_beside_the_test_file_wherever_pytest_was_started(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = write(pytester, 300)
    folder = pytester.mkdir("deep")
    test.rename(folder / test.name)
    other = pytester.mkdir("other")
    monkeypatch.chdir(other)
    done = run(pytester, "--voxmeter-update", "--rootdir", str(pytester.path), str(folder))
    done.assert_outcomes(passed=1)
    assert (folder / "baselines" / "hello.json").is_file()
    run(pytester, "--rootdir", str(pytester.path), str(folder)).assert_outcomes(passed=1)
    write(pytester, 900).rename(folder / test.name)
    done = run(pytester, "--rootdir", str(pytester.path), str(folder))
    done.stdout.fnmatch_lines(
        ["E*--voxmeter-update ../deep/test_it.py::test_hello"]  # from where pytest was started
    )


@pytest.mark.parametrize("option", ["--voxmeter-update", "--verbose"])
def test_too_few_samples_neither_make_a_baseline_nor_pass(
    option: str, baseline: Path, pytester: pytest.Pytester
) -> None:
    had = baseline.read_bytes()
    text = TESTS.format(centre=300, more="n=4), late=3, failed=2", limits="")
    pytester.makepyfile(test_it=text.replace("spread(300), n=4)", "spread(300, n=4)"))
    done = run(pytester, option)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            "E*too few samples: 4 of 9 trials have first_audible_ms "
            "(left out: 3 late on this machine, 2 timeout); 5 are needed"
        ]
    )
    assert baseline.read_bytes() == had


def test_an_endpoint_that_mostly_fails_does_not_pass_by_the_few_that_were_quick(
    baseline: Path, pytester: pytest.Pytester
) -> None:
    write(pytester, 300, "failed=21")
    done = run(pytester)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["E*most trials failed: 20 of 41 trials*21 timeout*"])


def test_two_conversations_cannot_write_one_baseline(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_it="""
            from conversations import conversation, spread

            def test_one(voxmeter):
                result = conversation(spread(300))
                voxmeter.assert_no_regression(result, "b.json")
                voxmeter.assert_no_regression(result, "b.json", at="mean")

            def test_two(voxmeter):
                voxmeter.assert_no_regression(conversation(spread(400)), "b.json")
        """
    )
    done = run(pytester, "--voxmeter-update")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["E*b.json: was written from another conversation by this very*"])
    assert json.loads((pytester.path / "b.json").read_text())["metrics"]["first_audible_ms"][
        "p50"
    ] == pytest.approx(300)


def test_limits_that_cannot_be_fail_in_either_mode(pytester: pytest.Pytester) -> None:
    write(pytester, 300, limits="metric='ttfa'")
    for arguments in ([], ["--voxmeter-update"]):
        done = run(pytester, *arguments)
        done.assert_outcomes(failed=1)
        done.stdout.fnmatch_lines(['E*UserError*did you mean "first_audible_ms"?'])


def test_the_figures_are_in_the_junit_file(baseline: Path, pytester: pytest.Pytester) -> None:
    write(pytester, 400)
    run(pytester, "--junit-xml=out.xml")
    assert '<property name="voxmeter" value="first_audible_ms p50 400 ms [' in (
        pytester.path / "out.xml"
    ).read_text(encoding="utf-8")


def test_a_clip_beside_the_test_is_asked_for_real(pytester: pytest.Pytester) -> None:
    from voxmeter.client.audio import write_flac

    write_flac(pytester.path / "clip.flac", babble(16_000, 0.3), 16_000)
    pytester.makepyfile(
        test_it="""
            import pytest
            import voxmeter as package

            def test_hello(voxmeter):
                endpoint = "metronome?delay_ms=250&pacing=burst"
                found = voxmeter.converse(endpoint, "clip.flac", 5, transcribe=None)
                assert [trial["status"] for trial in found.trials] == ["ok"] * 5
                assert found.transcripts == ("",) * 5
                latency = found.latency("first_audible_ms")
                assert len(latency.samples) + latency.invalid == 5
                assert latency.interval is None or latency.interval[0] is None
                with pytest.raises(package.UserError, match="there is no such clip"):
                    voxmeter.converse("metronome", "none.flac")

            def test_a_mistake(voxmeter):
                voxmeter.converse("metronom", "clip.flac")
        """
    )
    environment = {"PYTHONPATH": str(ROOT / "src"), "XDG_CACHE_HOME": str(pytester.path / "cache")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", PLUGIN, "-W", "error"],
        cwd=pytester.path,
        env=environment | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    told = [line for line in done.stdout.splitlines() if line.startswith("E ")]
    assert len(told) == 1
    assert "UserError" in told[0]
    assert "metronom" in told[0]


def test_the_package_names_the_plugin_to_pytest() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"voxmeter": PLUGIN}
    assert import_module(PLUGIN).voxmeter


def test_pytest_loads_it_by_its_entry_point_and_nothing_heavy_with_it(tmp_path: Path) -> None:
    info = tmp_path / "voxmeter_here-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: voxmeter-here\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[pytest11]\nvoxmeter_here = {PLUGIN}\n")
    (info / "RECORD").write_text("")
    (tmp_path / "test_it.py").write_text("def test_it(request): pass\n")
    arguments = ["-q", "-p", "no:voxmeter", "-p", "no:cacheprovider", str(tmp_path)]
    code = f"""
import os, sys, contextlib, io
sys.path.insert(0, {str(tmp_path)!r})
del os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"]
import pytest
with contextlib.redirect_stdout(io.StringIO()):
    assert pytest.main({arguments!r}) == 0
assert {PLUGIN!r} in sys.modules
"""
    assert loaded(code) & HEAVY == set()


def test_the_plugin_alone_loads_nothing_heavy() -> None:
    assert loaded(f"import {PLUGIN}") & HEAVY == set()
    assert conversations.CLIP
