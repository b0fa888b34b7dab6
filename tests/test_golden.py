"""The arithmetic of published tables, reproduced: every cell, with exactly the known exceptions."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from voxmeter.scoring.aggregate import Path as GroupPath
from voxmeter.scoring.aggregate import Rounding, Rule, figure, tree
from voxmeter.scoring.agreement import mean_abs_diff, ranks
from voxmeter.scoring.copied_rows import TableRow, copied_rows
from voxmeter.suites import adu_domains

PUBLISHED = Path(__file__).parent.parent / "suites" / "published"
GOLDEN = Path(__file__).parent / "golden"

Row = Mapping[str, str]
DATASETS = ("general", "skill", "multilingual", "ambiguity")
ORDERS = ("ref_first", "ref_last")
TABLES = {
    ("general", "ref_first"): ("adu_table11_general_ref_first",),
    ("general", "ref_last"): ("adu_table12_general_ref_last",),
    ("skill", "ref_first"): ("adu_table13_skill1_ref_first", "adu_table14_skill2_ref_first"),
    ("skill", "ref_last"): ("adu_table15_skill1_ref_last", "adu_table16_skill2_ref_last"),
    ("multilingual", "ref_first"): (
        "adu_table17_multilingual1_ref_first",
        "adu_table18_multilingual2_ref_first",
    ),
    ("multilingual", "ref_last"): (
        "adu_table19_multilingual1_ref_last",
        "adu_table20_multilingual2_ref_last",
    ),
    ("ambiguity", "ref_first"): ("adu_table21_ambiguity_ref_first",),
    ("ambiguity", "ref_last"): ("adu_table22_ambiguity_ref_last",),
}
OVERALL = {
    "gpt4_T2": "adu_table02_overall_avg",
    "llama3_70b_T4": "adu_table04_overall_llama3_70b_judge",
    "qwen2_72b_T5": "adu_table05_overall_qwen2_72b_judge",
    "gpt4_first_T9": "adu_table09_overall_ref_first",
    "gpt4_last_T10": "adu_table10_overall_ref_last",
}
ROUNDED = Rounding(2, "half-up", at_every_level=True)


def rows(name: str, folder: Path = PUBLISHED) -> list[Row]:
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def system(row: Row) -> str:
    return f"{row['model']} {row['size']}"


def by_system(name: str) -> dict[str, Row]:
    return {system(row): row for row in rows(name)}


def domains(dataset: str, order: str) -> dict[str, dict[str, Fraction]]:
    """Domain scores of each system, as printed."""
    found: dict[str, dict[str, Fraction]] = {}
    for name in TABLES[dataset, order]:
        for row in rows(name):
            cells = {key: Fraction(row[key]) for key in row if key not in {"model", "size"}}
            found.setdefault(system(row), {}).update(cells)
    return found


def drawn(
    scores: Mapping[str, Fraction],
    rule: Rule,
    counts: Mapping[str, int] | None = None,
    rounding: Rounding | None = None,
) -> Fraction:
    """The figure of the groups with these scores."""
    paths: dict[str, GroupPath] = {name: (name,) for name in scores}
    whole = tree(list(paths.values()), (rule,))
    means = {paths[name]: score for name, score in scores.items()}
    sizes = {paths[name]: (counts or {}).get(name, 1) for name in scores}
    value = figure(whole, means, sizes, rounding)
    assert value is not None
    return value


def dataset_figure(dataset: str, scores: Mapping[str, Fraction], rule: Rule) -> str:
    counts = {name: adu_domains.COUNTS[f"ADU-{dataset.capitalize()}", name] for name in scores}
    return ROUNDED.text(drawn(scores, rule, counts))


def declared(dataset: str) -> Rule:
    return adu_domains.DATASET_RULES[f"ADU-{dataset.capitalize()}"]


def dataset_cells(order: str) -> Iterator[tuple[str, str, str, dict[str, Fraction]]]:
    published = by_system("adu_table09_overall_ref_first")
    if order == "ref_last":
        published = by_system("adu_table10_overall_ref_last")
    for dataset in DATASETS:
        for name, scores in domains(dataset, order).items():
            yield dataset, name, published[name][dataset], scores


def test_datasets_follow_from_their_domains_in_all_but_three_cells() -> None:
    missed, cells = set(), 0
    for order in ORDERS:
        for dataset, name, published, scores in dataset_cells(order):
            cells += 1
            if dataset_figure(dataset, scores, declared(dataset)) != published:
                missed.add((order, dataset, name))
    assert cells == 104
    assert missed == {
        ("ref_last", "skill", "Whisper+LLaMA-2 7B"),
        ("ref_last", "multilingual", "SALMONN 13B"),
        ("ref_last", "multilingual", "Whisper+LLaMA-2 7B"),
    }


@pytest.mark.parametrize(
    ("dataset", "rule", "right"),
    [("skill", "micro", 25), ("skill", "macro", 1), ("ambiguity", "micro", 0),
     ("ambiguity", "macro", 26), ("general", "macro", 26), ("general", "micro", 26),
     ("multilingual", "macro", 24), ("multilingual", "micro", 24)],
)  # fmt: skip
def test_only_one_rule_gives_the_figures_of_skill_and_of_ambiguity(
    dataset: str, rule: Rule, right: int
) -> None:
    cells = [cell for order in ORDERS for cell in dataset_cells(order) if cell[0] == dataset]
    hits = [dataset_figure(dataset, scores, rule) == told for _, _, told, scores in cells]
    assert (len(hits), sum(hits)) == (26, right)


def test_the_table_of_both_orders_is_the_half_up_mean_of_rounded_figures_but_for_two_ties() -> None:
    first, last = by_system(OVERALL["gpt4_first_T9"]), by_system(OVERALL["gpt4_last_T10"])
    missed = {
        (name, dataset, row[dataset])
        for name, row in by_system(OVERALL["gpt4_T2"]).items()
        for dataset in DATASETS
        if ROUNDED.text(
            drawn(
                {"a": Fraction(first[name][dataset]), "b": Fraction(last[name][dataset])}, "macro"
            )
        )
        != row[dataset]
    }
    assert missed == {
        ("Mini-Omni 0.5B", "skill", "1.96"),
        ("Mini-Omni 0.5B", "ambiguity", "1.67"),
    }


def test_from_unrounded_domains_eleven_cells_of_that_table_come_out_otherwise() -> None:
    published = by_system(OVERALL["gpt4_T2"])
    off = set()
    for dataset in DATASETS:
        first, last = domains(dataset, "ref_first"), domains(dataset, "ref_last")
        for name, row in published.items():
            counts = {one: adu_domains.COUNTS[f"ADU-{dataset.capitalize()}", one]
                      for one in first[name]}  # fmt: skip
            both = {
                order: drawn(scores[name], declared(dataset), counts)
                for order, scores in (("first", first), ("last", last))
            }
            if ROUNDED.text(drawn(both, "macro")) != row[dataset]:
                off.add((name, dataset))
    known = {
        (system(row), row["dataset"])
        for row in rows("check_adu_table02_from_domains", GOLDEN)
        if row["status"] != "exact"
    }
    assert len(known) == 11
    assert off == known


def test_averages_are_means_of_the_rows_own_four_rounded_cells_but_for_one() -> None:
    missed, cells = set(), 0
    for name, file in OVERALL.items():
        for row in rows(file):
            cells += 1
            mean = drawn({dataset: Fraction(row[dataset]) for dataset in DATASETS}, "macro")
            if ROUNDED.text(mean) != row["average"]:
                missed.add((name, system(row), ROUNDED.text(mean), row["average"]))
    assert cells == 65
    assert missed == {("gpt4_last_T10", "Qwen-Audio-Chat 7B", "2.18", "2.19")}


@pytest.mark.parametrize(("mode", "hits"), [("half-up", 60), ("half-even", 52)])
def test_published_figures_are_rounded_half_up(mode: str, hits: int) -> None:
    first, last = by_system(OVERALL["gpt4_first_T9"]), by_system(OVERALL["gpt4_last_T10"])
    rounding = Rounding(2, "half-up" if mode == "half-up" else "half-even")
    right = sum(
        rounding.text(
            drawn({"a": Fraction(first[name][column]), "b": Fraction(last[name][column])}, "macro")
        )
        == row[column]
        for name, row in by_system(OVERALL["gpt4_T2"]).items()
        for column in (*DATASETS, "average")
    )
    assert right == hits


def test_a_table_that_rounds_at_every_level_differs_from_one_that_does_not() -> None:
    name = "Whisper+LLaMA-3 70B"
    scores: dict[GroupPath, Fraction] = {
        (dataset, domain): score
        for dataset in DATASETS
        for domain, score in domains(dataset, "ref_last")[name].items()
    }
    counts: dict[GroupPath, int] = {
        path: adu_domains.COUNTS[f"ADU-{path[0].capitalize()}", path[1]] for path in scores
    }
    by_dataset = {dataset: declared(dataset) for dataset in DATASETS}
    whole = tree(list(scores), ("macro", by_dataset))
    rounded = figure(whole, scores, counts, ROUNDED)
    raw = figure(whole, scores, counts)
    assert rounded is not None
    assert raw is not None
    assert rounded != raw
    assert ROUNDED.text(rounded) == by_system(OVERALL["gpt4_last_T10"])[name]["average"] == "6.81"


def test_position_gaps_are_those_of_the_two_tables() -> None:
    first, last = by_system(OVERALL["gpt4_first_T9"]), by_system(OVERALL["gpt4_last_T10"])
    known = rows("check_adu_position_gap", GOLDEN)
    assert len(known) == 65
    gaps: dict[str, list[Fraction]] = {}
    for row in known:
        column = row["column"]
        gap = Fraction(last[system(row)][column]) - Fraction(first[system(row)][column])
        assert gap == Fraction(row["gap_last_minus_first"])
        gaps.setdefault(column, []).append(gap)
    means = {column: round(float(sum(found) / len(found)), 3) for column, found in gaps.items()}
    assert means == {
        "general": 0.312, "skill": 0.183, "multilingual": 0.141, "ambiguity": 0.166,
        "average": 0.201,
    }  # fmt: skip
    assert all(gap > 0 for gap in gaps["average"])
    assert (min(gaps["average"]), max(gaps["average"])) == (Fraction("0.03"), Fraction("0.35"))


def test_the_largest_gap_of_a_domain_is_in_a_copied_row() -> None:
    gaps = {}
    for dataset in DATASETS:
        first, last = domains(dataset, "ref_first"), domains(dataset, "ref_last")
        for name, scores in first.items():
            for domain, score in scores.items():
                gaps[name, domain] = last[name][domain] - score
    signs = [int(np.sign(float(gap))) for gap in gaps.values()]
    assert (signs.count(1), signs.count(0), signs.count(-1)) == (326, 17, 21)
    assert round(float(sum(gaps.values()) / len(gaps)), 3) == 0.211
    largest = max(gaps, key=lambda key: gaps[key])
    assert largest == ("Whisper+LLaMA-2 7B", "korean")
    assert gaps[largest] == Fraction("2.24")


def test_agreement_of_judges_is_what_the_tables_give() -> None:
    known = rows("check_adu_judge_agreement", GOLDEN)
    assert len(known) == len(list(combinations(OVERALL, 2))) * 5
    for row in known:
        one, other = (
            np.array([float(line[row["column"]]) for line in rows(OVERALL[row[judge]])])
            for judge in ("judge_a", "judge_b")
        )
        found = ranks(one, other)
        distance = mean_abs_diff(one, other)
        assert distance is not None
        assert f"{found.spearman:.6f}" == row["spearman"]
        assert f"{found.kendall_tau_b:.6f}" == row["kendall_tau_b"]
        assert f"{np.corrcoef(one, other)[0, 1]:.6f}" == row["pearson"]
        assert f"{distance:.6f}" == row["mean_abs_diff"]


def adu_rows() -> Iterator[TableRow]:
    for path in sorted(PUBLISHED.glob("adu_table*.csv")):
        for row in rows(path.stem):
            if "model" in row:
                columns = tuple(key for key in row if key not in {"model", "size"})
                yield TableRow(path.stem, columns, system(row), tuple(row[key] for key in columns))


def test_exactly_the_two_copied_rows_of_adu_bench_are_found() -> None:
    found = {(pair.one.table, pair.one.system, pair.other.table, pair.other.system)
             for pair in copied_rows(adu_rows())}  # fmt: skip
    assert found == {
        ("adu_table14_skill2_ref_first", "Whisper+LLaMA-3 8B",
         "adu_table16_skill2_ref_last", "Whisper+LLaMA-2 7B"),
        ("adu_table18_multilingual2_ref_first", "Whisper+LLaMA-3 8B",
         "adu_table20_multilingual2_ref_last", "Whisper+LLaMA-2 7B"),
    }  # fmt: skip


def test_a_copied_row_is_found_and_ones_own_or_a_floor_is_not() -> None:
    columns = ("a", "b", "c", "d")
    one = TableRow("1", columns, "x", ("1", "2", "3", "4"))
    assert copied_rows([one, one._replace(table="2", system="y")])
    assert not copied_rows([one, one._replace(table="2")])
    floor = one._replace(figures=("1.00",) * 4)
    assert not copied_rows([floor, floor._replace(system="y")])
    short = TableRow("1", columns[:3], "x", ("1", "2", "3"))
    assert not copied_rows([short, short._replace(system="y")])


def test_the_counts_of_adu_bench_are_those_of_its_table() -> None:
    told: dict[str, int] = {}
    for row in rows("adu_table08_counts"):
        told[row["dataset"]] = told.get(row["dataset"], 0) + int(row["number"])
    assert told == {"ADU-General": 12000, "ADU-Skill": 3725, "ADU-Multilingual": 3600,
                    "ADU-Ambiguity": 1390}  # fmt: skip
    assert sum(adu_domains.COUNTS.values()) == 20715
    ours: dict[str, int] = {}
    for (dataset, _), count in adu_domains.COUNTS.items():
        ours[dataset] = ours.get(dataset, 0) + count
    assert ours == told
    assert sorted(adu_domains.COUNTS.values()) == sorted(
        int(row["number"]) for row in rows("adu_table08_counts")
    )


def test_the_tidy_form_holds_the_same_figures_as_the_tables() -> None:
    tidy = rows("adu_long_domains", GOLDEN)
    assert len(tidy) == 728
    for row in tidy:
        told = domains(row["dataset"], row["order"])[system(row)][row["domain"]]
        assert Fraction(row["score"]) == told


def test_groups_and_averages_of_air_bench_follow_from_its_tasks() -> None:
    tasks = rows("air_table05_foundation_tasks")
    checked = 0
    for row in rows("air_table03_overall"):
        model = row["model"]
        scores: dict[GroupPath, Fraction] = {
            (task["group"], task["task"]): Fraction(task[model])
            for task in tasks
            if task.get(model)
        }
        groups = {group for group, _ in scores}
        for group in groups:
            inside = {path[1]: score for path, score in scores.items() if path[0] == group}
            told = Fraction(row[f"foundation_{group}"])
            assert abs(drawn(inside, "macro") - told) <= Fraction("0.05")
            checked += 1
        if len(groups) == 3:
            whole = figure(tree(list(scores), ("macro", "macro")), scores, dict.fromkeys(scores, 1))
            assert whole is not None
            assert abs(whole - Fraction(row["foundation_average"])) <= Fraction("0.05")
    assert checked == 22


def test_the_average_of_19_tasks_is_not_what_air_bench_prints() -> None:
    tasks = {row["task"]: Fraction(row["Qwen-Audio Turbo"])
             for row in rows("air_table05_foundation_tasks")}  # fmt: skip
    assert ROUNDED.text(drawn(tasks, "macro")) == "58.31"
    published = {row["model"]: row for row in rows("air_table03_overall")}
    assert published["Qwen-Audio Turbo"]["foundation_average"] == "57.8"


def test_chat_averages_of_air_bench_are_means_of_four_but_for_two_models() -> None:
    missed = set()
    for row in rows("air_table03_overall"):
        if row["chat_average"]:
            groups = {name: Fraction(row[f"chat_{name}"])
                      for name in ("speech", "sound", "music", "mixed")}  # fmt: skip
            if abs(drawn(groups, "macro") - Fraction(row["chat_average"])) > Fraction("0.01"):
                missed.add((row["model"], float(drawn(groups, "macro"))))
    assert missed == {("Macaw-LLM", 0.9725), ("NExT-GPT", 3.93)}


def test_three_chat_averages_of_air_bench_are_cut_instead_of_rounded() -> None:
    cut = set()
    for row in rows("air_table03_overall"):
        if row["chat_average"] and row["model"] not in {"Macaw-LLM", "NExT-GPT"}:
            mean = drawn({name: Fraction(row[f"chat_{name}"])
                          for name in ("speech", "sound", "music", "mixed")}, "macro")  # fmt: skip
            assert row["chat_average"] in {ROUNDED.text(mean), Rounding(2, "down").text(mean)}
            if ROUNDED.text(mean) != row["chat_average"]:
                cut.add(row["model"])
    assert cut == {"SALMONN", "Qwen-Audio Turbo", "PandaGPT"}


def test_every_overall_figure_of_voicebench_follows_from_its_columns() -> None:
    found = rows("voicebench_leaderboard")
    assert len(found) == 33
    for row in found:
        scores = {name: Fraction(value) for name, value in row.items()
                  if name not in {"rank", "model", "overall"}}  # fmt: skip
        for name in ("alpacaeval", "commoneval", "wildvoice"):
            scores[name] *= 20
        assert len(scores) == 9
        assert ROUNDED.text(drawn(scores, "macro")) == row["overall"]


def test_overall_figures_of_uro_bench_are_means_over_sets_but_for_one() -> None:
    missed, total = set(), 0
    for path in sorted(GOLDEN.glob("urobench_leaderboard_*.csv")):
        for row in rows(path.stem, GOLDEN):
            cells = {name: Fraction(value) for name, value in list(row.items())[6:] if value != "-"}
            total += 1
            if ROUNDED.text(drawn(cells, "macro")) != row["overall"]:
                missed.add((path.stem, row["model"], row["overall"]))
    assert total == 32
    assert missed == {("urobench_leaderboard_basic_zh", "GLM-4-Voice", "66.90")}


def test_four_of_six_averages_of_ultraeval_audio_follow_from_its_columns() -> None:
    missed = set()
    for row in rows("ultraeval_generation_leaderboard", GOLDEN):
        acoustics = drawn(
            {name: Fraction(row[name]) for name in ("utmos", "dnsmos835", "dnsmos808")}, "macro"
        )
        scores = {name: Fraction(row[name])
                  for name in ("webq", "triviaqa", "alpaca", "cmmlu", "hsk")}  # fmt: skip
        mean = ROUNDED.text(drawn({**scores, "acoustics": acoustics * 20}, "macro"))
        if Decimal(mean) != Decimal(row["published_avg"]):
            missed.add(row["model"])
    assert missed == {"MiniCPM-o 2.6", "Kimi-Audio-7B-Instruct"}


def test_changes_against_the_first_voice_in_voxeval_have_their_sign() -> None:
    table = {row["condition"]: row for row in rows("voxeval_table3_overall")}
    assert Fraction(table["Pitch"]["Moshi"]) - Fraction(table["Alloy"]["Moshi"]) == Fraction(
        "-0.0607"
    )
