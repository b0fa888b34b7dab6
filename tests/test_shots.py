"""Worked examples: as earlier turns, and the endpoints that would take them for questions."""

from __future__ import annotations

from pathlib import Path

import pytest
from voxeval_world import Download, mp3, rows, small

from voxmeter.client import clips, config
from voxmeter.client.bench import Bench
from voxmeter.client.bench_suites import load_suites
from voxmeter.client.clips import Clip
from voxmeter.client.shots import NO_EXAMPLES, examples, refuse_lost_examples
from voxmeter.client.speakers import Speaker
from voxmeter.endpoints.errors import ClipError, UserError
from voxmeter.suites.suite import Item

ENDPOINT = '[[endpoint]]\nname = "a"\nkind = "{kind}"\n{more}\n'
REALTIME = {"kind": "openai-realtime", "more": 'url = "ws://127.0.0.1:1"'}
MOSHI = {"kind": "moshi", "more": 'url = "ws://127.0.0.1:1"'}


def bench(root: Path, endpoint: dict[str, str], suite: str = "few_shot = 2") -> Bench:
    path = root / "bench.toml"
    text = ENDPOINT.format(**endpoint) + '[[suite]]\nkind = "voxeval"\npath = "."\n' + suite
    path.write_text(text, encoding="utf-8")
    return config.load(path)


def notes(found: Bench) -> list[str]:
    (suite,) = load_suites(found)
    return refuse_lost_examples(found, ["a"], suite.items)


def refused(found: Bench) -> str:
    with pytest.raises(UserError) as caught:
        notes(found)
    return str(caught.value)


def told_answers(root: Path) -> None:
    """Put tables beside the examples of every subject."""
    world = small(root)
    for stem in world.tables:
        name = stem.replace("_test", "_val")
        made = Download(root / "told", {name: rows(stem, 5)}, settings=()).write()
        (made / "test" / f"{name}.csv").rename(root / "all_fewshot_examples" / f"{name}.csv")


def test_silence_that_ends_a_turn_and_examples_do_not_go_together(tmp_path: Path) -> None:
    small(tmp_path).write()
    assert refused(bench(tmp_path, REALTIME)) == (
        f'{tmp_path / "bench.toml"}: [[endpoint]] "a": kind openai-realtime, as it is set up, '
        "takes silence for the end of a turn, and would answer the first worked example of suite "
        '"voxeval"; write turn_end = "commit" for the endpoint, or write options = '
        '{few_shot_via = "history"} for the suite'
    )


def test_an_endpoint_that_knows_no_other_way_is_run_without_examples(tmp_path: Path) -> None:
    small(tmp_path).write()
    elevenlabs = {"kind": "elevenlabs", "more": 'url = "wss://127.0.0.1:1/x"\nmodel = "m"'}
    line = refused(bench(tmp_path, elevenlabs))
    assert line.endswith("; write few_shot = 0, or run them apart (--only)")


@pytest.mark.parametrize(
    "endpoint",
    [
        {"kind": "openai-realtime", "more": 'url = "ws://127.0.0.1:1"\nturn_end = "commit"'},
        {"kind": "mini-omni", "more": 'url = "http://127.0.0.1:1"'},
    ],
    ids=["commit", "request"],
)
def test_a_turn_that_is_closed_explicitly_may_have_pauses_in_it(
    tmp_path: Path, endpoint: dict[str, str]
) -> None:
    small(tmp_path).write()
    assert notes(bench(tmp_path, endpoint)) == []


def test_full_duplex_runs_with_a_warning(tmp_path: Path) -> None:
    small(tmp_path).write()
    (note,) = notes(bench(tmp_path, MOSHI))
    assert note.startswith("a hears and speaks at once, and may answer the worked examples")
    assert notes(bench(tmp_path, MOSHI, "few_shot = 0")) == []


def test_an_endpoint_that_is_not_asked_is_no_reason_to_refuse(tmp_path: Path) -> None:
    small(tmp_path).write()
    found = bench(tmp_path, REALTIME)
    (suite,) = load_suites(found)
    assert refuse_lost_examples(found, [], suite.items) == []


HISTORY = 'few_shot = 2\noptions = {few_shot_via = "history"}'


def test_earlier_turns_need_a_protocol_that_carries_them(tmp_path: Path) -> None:
    small(tmp_path).write()
    line = refused(bench(tmp_path, MOSHI, HISTORY))
    assert "kind moshi takes no earlier turns" in line
    assert line.endswith(
        'write options = {few_shot_via = "clip"} for the suite, or run them apart (--only)'
    )


def test_the_way_out_of_earlier_turns_is_one_that_works(tmp_path: Path) -> None:
    small(tmp_path).write()
    elevenlabs = {"kind": "elevenlabs", "more": 'url = "wss://127.0.0.1:1/x"\nmodel = "m"'}
    line = refused(bench(tmp_path, elevenlabs, HISTORY))
    assert line.endswith("; write few_shot = 0, or run them apart (--only)")
    assert (
        'write options = {few_shot_via = "clip"} for the suite and turn_end = "commit" for the '
        "endpoint, or put tables"
    ) in refused(bench(tmp_path, REALTIME, HISTORY))


def test_earlier_turns_of_an_assistant_need_words(tmp_path: Path) -> None:
    small(tmp_path).write()
    line = refused(bench(tmp_path, REALTIME, HISTORY))
    assert "have answers in sound alone" in line
    told_answers(tmp_path)
    assert notes(bench(tmp_path, REALTIME, HISTORY)) == []
    (tmp_path / "all_fewshot_examples" / "virology_val.csv").unlink()
    assert "have answers in sound alone" in refused(bench(tmp_path, REALTIME, HISTORY))


@pytest.mark.parametrize("kind", ["demo", "jsonl"])
def test_suites_without_worked_examples_refuse_them(tmp_path: Path, kind: str) -> None:
    (tmp_path / "q.jsonl").write_text('{"id": "a", "text": "Who?", "kind": "open"}\n')
    path = 'path = "q.jsonl"\n' if kind == "jsonl" else ""
    (tmp_path / "bench.toml").write_text(
        ENDPOINT.format(**REALTIME) + f'[[suite]]\nkind = "{kind}"\n{path}few_shot = 3\n'
    )
    with pytest.raises(UserError) as caught:
        load_suites(config.load(tmp_path / "bench.toml"))
    assert str(caught.value).endswith(
        f'[[suite]] "{kind}" few_shot: is 3, and a {kind} suite has no worked examples; remove it'
    )


def no_voice(name: str) -> Speaker:
    pytest.fail(f"nothing is spoken here, not even by {name}")


def test_examples_become_turns_of_both_sides_at_the_rate_of_the_question(tmp_path: Path) -> None:
    small(tmp_path).write()
    told_answers(tmp_path)
    (suite,) = load_suites(bench(tmp_path, REALTIME, HISTORY))
    asked: list[tuple[str, str]] = []

    def clip_of(item: Item, condition: str) -> Clip:
        asked.append((item.item, condition))
        return clips.render(item, no_voice)

    made = examples(suite.items[0], "noisy", clip_of)
    turns = made.turns(16_000)
    assert [(turn.role, turn.text) for turn in turns] == [
        ("user", ""),
        ("assistant", "The correct answer is B."),
        ("user", ""),
        ("assistant", "The correct answer is D."),
    ]
    assert [len(turn.pcm) // 32 for turn in turns] == [380, 280, 380, 280]
    assert {condition for _, condition in asked} == {"noisy"}
    names = [name for name, _ in asked]
    examples(suite.items[1], "noisy", clip_of)
    assert [name for name, _ in asked[4:]] == names, "a subject's examples are rendered once"
    assert NO_EXAMPLES.turns(8_000) == []


def test_an_example_that_cannot_be_played_makes_a_bad_clip(tmp_path: Path) -> None:
    small(tmp_path).write()
    path = tmp_path / "all_fewshot_examples" / "alloy" / "virology_val" / "00000000_answer.mp3"
    path.write_bytes(mp3(200)[:20])
    (suite,) = load_suites(bench(tmp_path, REALTIME, HISTORY))
    with pytest.raises(ClipError):
        examples(suite.items[-1], "clean", lambda item, _: clips.render(item, no_voice))
