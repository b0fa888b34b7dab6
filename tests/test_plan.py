"""The plan: order, warm-up, resume, filters, shards, and a small memory."""

from __future__ import annotations

import tracemalloc
import wave
from dataclasses import replace
from pathlib import Path

import pytest

from voxmeter.client import config, plan
from voxmeter.client.bench import Bench
from voxmeter.client.estimate import MS_PER_LETTER, clip_length, estimate
from voxmeter.client.plan import Plan, Trial, build, parse_only, parse_shard
from voxmeter.client.runfolder import Newest
from voxmeter.endpoints.errors import UserError
from voxmeter.suites.suite import Gap, Item, Recording, Spoken, Suite


def _bench(**run: object) -> Bench:
    return config.parse(
        {
            "run": run,
            "endpoint": [
                {"name": "a", "builtin": "echo"},
                {"name": "b", "builtin": "echo", "concurrency": 2},
            ],
            "suite": [
                {"kind": "demo"},
                {"kind": "jsonl", "name": "mine", "path": "x", "conditions": ["clean"]},
            ],
            "condition": [{"name": "noisy"}],
        },
        "bench.toml",
    )


def _suite(name: str, count: int) -> Suite:
    items = tuple(Item(name, f"q{number}", "open", ()) for number in range(count))
    return Suite(name, "demo", items)


def _plan(demo: int = 2, mine: int = 1, **run: object) -> Plan:
    return build(_bench(**run), [_suite("demo", demo), _suite("mine", mine)])


def _short(trials: list[Trial]) -> list[tuple[str, str, str, str, int]]:
    return [
        (one.endpoint, one.item.suite, one.condition, one.item.item, one.trial) for one in trials
    ]


def test_endpoints_follow_one_another_each_with_its_warm_up_first() -> None:
    found = _plan(trials=2, warmup=1)
    assert _short(list(found.of("a"))) == [
        ("a", "demo", "clean", "q0", 0),
        ("a", "demo", "clean", "q0", 1),
        ("a", "demo", "clean", "q0", 2),
        ("a", "demo", "clean", "q1", 1),
        ("a", "demo", "clean", "q1", 2),
        ("a", "demo", "noisy", "q0", 1),
        ("a", "demo", "noisy", "q0", 2),
        ("a", "demo", "noisy", "q1", 1),
        ("a", "demo", "noisy", "q1", 2),
        ("a", "mine", "clean", "q0", 1),
        ("a", "mine", "clean", "q0", 2),
    ]
    assert [one.endpoint for one in found] == ["a"] * 11 + ["b"] * 11
    assert len(found) == 20
    assert [one.warmup for one in found.of("b")] == [True] + [False] * 10


def test_a_condition_of_the_suites_own_has_items_of_its_own() -> None:
    suite = replace(
        _suite("demo", 2),
        conditions=("noisy",),
        variant=lambda item, condition: replace(item, recipe=(Gap(1),), language=condition),
    )
    found = build(_bench(warmup=0), [suite, _suite("mine", 0)])
    asked = [(one.condition, one.item.language, one.item.recipe) for one in found.of("a")]
    assert asked == [("clean", "en", ())] * 2 + [("noisy", "noisy", (Gap(1),))] * 2
    assert [one.language for one in found.asked()] == ["en", "en", "noisy", "noisy"]
    assert [one.language for one in found.items()] == ["en", "en"]
    assert {one.key for one in found.of("a")} == {
        f"a/demo/q{number}/{condition}/1" for number in range(2) for condition in ("clean", "noisy")
    }


def test_more_warm_up_turns_than_items_never_share_a_key() -> None:
    warmups = [one for one in _plan(demo=2, warmup=5) if one.warmup]
    assert [one.trial for one in warmups if one.endpoint == "a"] == [0, 0, -1, -1, -2]
    assert len({one.key for one in warmups}) == 10


def test_cells_say_how_many_trials_are_planned() -> None:
    cells = _plan(trials=3).cells()
    assert cells[:3] == [
        ("a", "demo", "clean", 6),
        ("a", "demo", "noisy", 6),
        ("a", "mine", "clean", 3),
    ]
    assert sum(cell.planned for cell in cells) == len(_plan(trials=3))


def test_items_are_listed_once_however_many_conditions_there_are() -> None:
    assert [(one.suite, one.item) for one in _plan().items()] == [
        ("demo", "q0"),
        ("demo", "q1"),
        ("mine", "q0"),
    ]


def test_a_resumed_run_asks_what_is_left_after_warming_up_again() -> None:
    found = _plan(warmup=1)
    everything = list(found.of("a"))
    newest = {one.key: Newest(1, finished=True) for one in everything}
    assert list(found.remaining("a", newest)) == []
    broken = everything[2]
    newest[broken.key] = Newest(2, finished=False)
    del newest[everything[-1].key]
    left = list(found.remaining("a", newest))
    assert [(one.item.item, one.trial, one.attempt) for one in left] == [
        ("q0", 0, 2),
        (broken.item.item, 1, 3),
        ("q0", 1, 1),
    ]
    assert found.count_remaining("a", newest) == 2
    assert found.count_remaining("b", newest) == len(found) // 2


def test_a_fresh_run_is_the_whole_plan() -> None:
    assert list(_plan().remaining("a", {})) == list(_plan().of("a"))


def test_filters_narrow_the_plan() -> None:
    suites = [_suite("demo", 2), _suite("mine", 1)]
    only = parse_only("endpoint=b, suite=demo,suite=mine,condition=noisy")
    cells = build(_bench(), suites, only=only).cells()
    assert cells == [("b", "demo", "noisy", 2)]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("endpoint=bb", '--only: unknown endpoint "bb"; did you mean "b"?'),
        ("suite=demos", '--only: unknown suite "demos"; did you mean "demo"?'),
        ("condition=x", '--only: unknown condition "x"; known: clean, noisy'),
        ("endpoints=a", '--only: cannot filter by "endpoints"; did you mean "endpoint"?'),
        ("a", "--only: 'a' is not a filter; write endpoint=NAME,suite=NAME"),
        ("", "--only: '' is not a filter; write endpoint=NAME,suite=NAME"),
        ("endpoint=", "--only: 'endpoint=' is not a filter; write endpoint=NAME,suite=NAME"),
    ],
)
def test_a_filter_that_means_nothing_is_one_line(text: str, line: str) -> None:
    with pytest.raises(UserError) as caught:
        build(_bench(), [_suite("demo", 1), _suite("mine", 1)], only=parse_only(text))
    assert str(caught.value) == line


def test_shards_share_out_every_item_once_and_always_alike() -> None:
    suites = [_suite("demo", 500), _suite("mine", 0)]
    parts = [
        {one.key for one in build(_bench(warmup=0), suites, shard=(number, 4))}
        for number in range(1, 5)
    ]
    whole = {one.key for one in build(_bench(warmup=0), suites)}
    assert set().union(*parts) == whole
    assert sum(map(len, parts)) == len(whole)
    assert min(map(len, parts)) > len(whole) / 6
    first = [one.item.item for one in build(_bench(), suites, shard=(1, 4)).of("a")][1:4]
    assert first == ["q9", "q12", "q16"]


@pytest.mark.parametrize("text", ["", "0/4", "5/4", "1", "1/0", "a/b", "-1/4", "1/4/2", "1.0/4"])
def test_a_shard_that_is_no_part_is_one_line(text: str) -> None:
    with pytest.raises(UserError, match="is not a part of a whole; write 1/4 to 4/4"):
        parse_shard(text)
    assert parse_shard("3/4") == (3, 4)


def test_a_suite_without_items_has_no_trials() -> None:
    assert list(_plan(demo=0, mine=0)) == []


def test_a_large_plan_is_walked_in_little_memory() -> None:
    found = _plan(demo=20_000, warmup=0)
    newest: dict[str, Newest] = {}
    tracemalloc.start()
    count = sum(1 for _ in found.remaining("a", newest))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 40_001
    assert peak < 1_000_000


def test_an_estimate_counts_pacing_and_sessions() -> None:
    bench = _bench(warmup=0)
    suites = [_suite("demo", 1), _suite("mine", 0)]
    found = estimate(build(bench, suites), bench, lambda _: 3000.0)
    assert found.trials == 4
    assert found.seconds == pytest.approx(2 * 8.3 + 2 * 8.3 / 2)
    assert found.disk_bytes == pytest.approx(4 * (30_000 + 60_000 * 8))
    fast = _bench(warmup=0, pacing="fast")
    assert estimate(build(fast, suites), fast, lambda _: 3000.0).seconds < found.seconds


def test_a_clips_length_is_read_from_headers_and_guessed_for_texts(tmp_path: Path) -> None:
    file = tmp_path / "a.wav"
    with wave.open(str(file), "wb") as writer:
        writer.setparams((1, 2, 8000, 0, "NONE", ""))
        writer.writeframes(bytes(2 * 4000))
    recipe = (Recording(file), Gap(250.0), Spoken("ten letter", "hibari"))
    assert clip_length(Item("s", "i", "open", recipe)) == pytest.approx(
        500 + 250 + 10 * MS_PER_LETTER
    )
    gone = (Recording(tmp_path / "gone.wav"),)
    assert clip_length(Item("s", "i", "open", gone)) == 0


def test_what_only_can_narrow_is_what_a_cell_is_made_of() -> None:
    assert plan.Cell._fields[:3] == plan.ONLY
