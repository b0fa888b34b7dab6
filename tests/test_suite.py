"""Items, seeded limits and subsets, hashes, and the catalog of suite kinds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.endpoints.errors import UserError
from voxmeter.suites import catalog
from voxmeter.suites.suite import Gap, Item, Kind, Recording, Spoken, Suite, stratified


def item(name: str, kind: Kind = "number", *groups: str, first: bool = False) -> Item:
    recipe = (Spoken(f"Question {name}?", "hibari"),)
    return Item("s", name, kind, recipe, reference=("1",), groups=groups, first=first)


def suite(*items: Item) -> Suite:
    return Suite("s", "jsonl", items)


MANY = suite(
    *(item(f"n{number}", "number", "even" if number % 2 == 0 else "odd") for number in range(60)),
    *(item(f"y{number}", "yes-no", "all") for number in range(30)),
    *(item(f"o{number}", "open", "all") for number in range(10)),
)


def names(wanted: Suite) -> list[str]:
    return [one.item for one in wanted.items]


@pytest.mark.parametrize("seed", [0, 1, 77])
@pytest.mark.parametrize("count", [10, 20, 50])
def test_every_beginning_holds_each_kind_in_its_share(seed: int, count: int) -> None:
    kinds = Counter(str(one.kind) for one in MANY.limit(count, seed).items)
    for kind, share in {"number": 0.6, "yes-no": 0.3, "open": 0.1}.items():
        assert abs(kinds[kind] - share * count) <= 1


def test_the_same_seed_gives_the_same_items_and_another_seed_others() -> None:
    assert names(MANY.limit(20, 5)) == names(MANY.limit(20, 5))
    assert set(names(MANY.limit(20, 5))) != set(names(MANY.limit(20, 6)))


@given(st.integers(0, 100), st.integers(0, 100), st.integers())
def test_a_larger_limit_only_adds_items(small: int, more: int, seed: int) -> None:
    few = names(MANY.limit(small, seed))
    assert names(MANY.limit(small + more, seed))[: len(few)] == few
    assert len(few) == small


def test_the_order_of_the_file_does_not_matter() -> None:
    turned = replace(MANY, items=MANY.items[::-1])
    assert names(turned.limit(15, 3)) == names(MANY.limit(15, 3))
    assert turned.sha256() == MANY.sha256()


def test_items_marked_first_come_first_within_their_kind() -> None:
    marked = suite(*MANY.items[:-1], item("last", "number", first=True))
    assert "last" in names(marked.limit(2, 0))


def test_a_subset_keeps_groups_in_their_share_and_the_suites_order() -> None:
    kept = MANY.subset(20, seed=1)
    assert Counter((one.kind, *one.groups) for one in kept.items) == {
        ("number", "even"): 6,
        ("number", "odd"): 6,
        ("yes-no", "all"): 6,
        ("open", "all"): 2,
    }
    assert names(kept) == [name for name in names(MANY) if name in set(names(kept))]


@pytest.mark.parametrize(("size", "count"), [(0.25, 25), (0.001, 1), (1, 1), (7, 7), (1000, 100)])
def test_a_subset_is_a_share_below_one_and_a_number_from_one_on(size: float, count: int) -> None:
    assert len(MANY.subset(size, seed=0).items) == count


def test_an_order_holds_every_item_once() -> None:
    assert sorted(one.item for one in stratified(MANY.items, 0)) == sorted(names(MANY))


def test_a_row_is_as_the_run_folder_has_it() -> None:
    one = Item(
        "s", "q1", "name", (Gap(5),), "Who?", ("Ann", "Anna"), groups=("a", "b"), language="de"
    )
    assert one.row() == {
        "suite": "s",
        "item": "q1",
        "cluster": "q1",
        "groups": ["a", "b"],
        "kind": "name",
        "question": "Who?",
        "reference": ["Ann", "Anna"],
        "options": [],
        "language": "de",
        "question_via": None,
        "shots": 0,
        "shots_via": None,
        "written": "",
        "rubric": "",
        "told": "",
        "checks": [],
        "origin": "",
    }
    assert item("n").row()["reference"] == "1"
    assert replace(one, reference=()).row()["reference"] is None


def test_the_hash_follows_texts_references_and_name_and_size_of_audio(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    heard = replace(item("a"), recipe=(Recording(path),))
    absent = suite(heard).sha256()
    path.write_bytes(b"one")
    one = suite(heard).sha256()
    path.write_bytes(b"longer")
    hashes = {
        absent,
        one,
        suite(heard).sha256(),
        suite(replace(heard, reference=("2",))).sha256(),
        suite(replace(heard, recipe=(Gap(1.0), Recording(path)))).sha256(),
        suite(item("a")).sha256(),
        suite(replace(item("a"), recipe=(Spoken("Question a?", "piper"),))).sha256(),
    }
    assert len(hashes) == 7
    path.write_bytes(b"one")
    assert replace(suite(heard), name="other").sha256() == one


def test_a_suite_is_loaded_by_its_kind() -> None:
    loaded = catalog.load("demo", "mine", {"kind": "demo"}, Path())
    assert (loaded.name, loaded.kind) == ("mine", "demo")


@pytest.mark.parametrize(
    ("kind", "cure"), [("jsnol", "did you mean 'jsonl'"), ("zzz", "use one of: adu-bench, ")]
)
def test_an_unknown_kind_is_met_with_the_nearest_one(kind: str, cure: str) -> None:
    with pytest.raises(UserError, match=f"unknown suite kind '{kind}'") as caught:
        catalog.load(kind, "s", {}, Path())
    assert cure in caught.value.cure


def twin(name: str, _config: object, _base: Path) -> Suite:
    return Suite(name, "twin", (item("a"), item("a")))


def nothing(name: str, _config: object, _base: Path) -> Suite:
    return Suite(name, "nothing", ())


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that packages with suites are installed."""
    values = {
        "twin": "test_suite:twin",
        "nothing": "test_suite:nothing",
        "gone": "voxmeter_no_such_package:load",
        "demo": "voxmeter_no_such_package:load",
    }
    points = EntryPoints(EntryPoint(name, at, catalog.GROUP) for name, at in values.items())
    monkeypatch.setattr(catalog, "entry_points", lambda group: points.select(group=group))


@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("twin", "item id 'a' occurs twice"),
        ("nothing", "no items"),
        ("gone", "suite kind 'gone' cannot be loaded"),
    ],
)
def test_a_plugin_that_does_not_deliver_is_one_line(kind: str, found: str) -> None:
    with pytest.raises(UserError, match=found):
        catalog.load(kind, "s", {}, Path())


@pytest.mark.usefixtures("plugins")
def test_a_plugin_cannot_replace_a_built_in_kind() -> None:
    assert catalog.load("demo", "s", {}, Path()).kind == "demo"
    assert set(catalog.kinds()) == {*catalog.BUILT_IN, "twin", "nothing", "gone"}
    assert {"demo", "jsonl"} <= set(catalog.BUILT_IN)
