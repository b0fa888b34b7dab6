"""Published tables beside a run's own figures, and what keeps the two from being compared."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from voxmeter.endpoints.errors import UserError
from voxmeter.scoring.aggregate import Rounding
from voxmeter.suites.published_tables import CLEAN, Column, Published, Table, published

Json = dict[str, Any]
Row = Mapping[str, Any]
Path = tuple[str, ...]


def beside(summary: Row, run: Row, name: str) -> Json:
    """Return what stands under `published` of a summary.

    Args:
        summary: Content of `summary.json`.
        run: Content of `run.json`.
        name: Of the published figures.

    Returns:
        Every table in which the run has a figure: the paper's rows as printed, and the run's.

    Raises:
        UserError: If the name is unknown, or the run has no suite of that kind.
    """
    found = published(name)
    suites = [
        one for one in (run.get("config") or {}).get("suite") or [] if one["kind"] == found.suite
    ]
    if not suites:
        raise UserError(
            "--published",
            f"run {summary['run']} has no suite of kind {found.suite}",
            "name the published figures of a suite that the run has",
        )
    labels = {str(one.get("name") or one["kind"]): one for one in suites}
    cells = [
        cell for cell in summary["cells"] if cell["suite"] in labels and cell.get("control") is None
    ]
    tables = [
        _beside(table, [*_yours(table, cells, run), *_analysed(table, summary, run, set(labels))])
        for table in found.tables
    ]
    return {
        "name": found.name,
        "about": found.about,
        "source": found.source,
        "caveats": list(found.caveats),
        "warnings": [*_of_rating(tables), *_warnings(found, labels, cells, run)],
        "tables": [table for table in tables if table["yours"]],
    }


def _beside(table: Table, yours: Sequence[Json]) -> Json:
    return {
        "title": table.title,
        "metric": table.metric,
        "judge": table.judge,
        "order": table.order,
        "unit": table.unit,
        "columns": [column.name for column in table.columns],
        "systems": [
            {
                "system": one.name,
                "size": one.size,
                "figures": list(one.figures),
                "notes": dict(one.notes),
            }
            for one in table.systems
        ],
        "yours": list(yours),
    }


def _yours(table: Table, cells: Sequence[Row], run: Row) -> Iterator[Json]:
    """Yield a row for each endpoint, suite and judge that has any figure of the table."""
    by_owner: dict[tuple[str, str], list[Row]] = {}
    for cell in () if table.analysis else cells:
        by_owner.setdefault((cell["endpoint"], cell["suite"]), []).append(cell)
    for (endpoint, suite), own in by_owner.items():
        by_condition = {cell["condition"]: cell for cell in own}
        for metric in _metrics(table, own):
            judge = metric.partition(":")[2]
            figures = [
                _figure(table, column, by_condition, metric, _orders(run, judge))
                for column in table.columns
            ]
            figures = _told_apart(table, figures)
            if any(figures):
                yield {
                    "endpoint": endpoint,
                    "size": own[0].get("size", ""),
                    "suite": suite,
                    "metric": metric,
                    "judge": _judge_model(run, judge),
                    "figures": figures,
                }


def _analysed(table: Table, summary: Row, run: Row, suites: Collection[str]) -> Iterator[Json]:
    """Yield the rows of a suite's own analysis, of clean clips."""
    for one in summary.get("analyses") or []:
        if one["suite"] not in suites:
            continue
        sizes = {cell["endpoint"]: cell.get("size", "") for cell in summary["cells"]}
        for found in one["tables"]:
            if not table.analysis or found["name"] != table.analysis:
                continue
            for row in found["rows"]:
                values = dict(zip(found["heads"], row, strict=True))
                figures = [_cell(values.get((column.path or ("",))[0])) for column in table.columns]
                if values.get("condition") == CLEAN and any(figures):
                    yield {
                        "endpoint": one["endpoint"],
                        "size": sizes.get(one["endpoint"], ""),
                        "suite": one["suite"],
                        "metric": table.analysis,
                        "judge": _judge_model(run, str(values.get("judge"))),
                        "figures": figures,
                    }


def _cell(value: object) -> Json | None:
    """Return a cell of an analysis as a figure; it has its interval elsewhere, if any."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    text = Rounding(2).text(Fraction(repr(float(value))))
    return {"value": value, "low": None, "high": None, "items": None, "text": text}


def _told_apart(table: Table, figures: Sequence[Json | None]) -> list[Json | None]:
    """Return figures, each average with the columns that it was drawn without (`without`).

    An average over fewer groups than the paper's is another figure.
    """
    absent = [
        column
        for column, one in zip(table.columns, figures, strict=True)
        if column.path and not one
    ]

    def without(column: Column) -> list[str]:
        return [
            one.name
            for one in absent
            if one.condition == column.condition and (one.path or ())[:-1] == column.path
        ]

    return [
        one and {**one, "without": without(column)}
        for column, one in zip(table.columns, figures, strict=True)
    ]


def _metrics(table: Table, cells: Sequence[Row]) -> list[str]:
    names = dict.fromkeys(name for cell in cells for name in cell["metrics"])
    wanted = {"accuracy": ("accuracy", "judge_accuracy")}.get(table.metric, (table.metric,))
    return [name for name in names if name.partition(":")[0] in wanted]


def _figure(
    table: Table, column: Column, cells: Mapping[str, Row], metric: str, orders: str
) -> Json | None:
    cell = cells.get(column.condition)
    if column.path is None or cell is None:
        return None
    entry = _entry(cell, column.path, metric)
    if entry is None:
        return None
    value, low, high = (entry[key] for key in ("value", "low", "high"))
    if table.order not in {"", "both"} and orders == "both":
        gap = _entry(cell, column.path, metric.replace("judge_score", "position_gap"))
        if gap is None or gap["items"] != entry["items"]:
            return None
        # The score is the mean of both orders, and the gap their difference.
        value += gap["value"] / 2 * (1 if table.order == "response-first" else -1)
        low = high = None
    elif table.order not in {"", "both", orders} or (table.order == "both" and orders != "both"):
        return None
    scale = 100 if table.unit == "percent" else 1
    text = Rounding(table.digits).text(Fraction(repr(float(value))) * scale)
    return {"value": value, "low": low, "high": high, "items": entry["items"], "text": text}


def _entry(cell: Row, path: Path, metric: str) -> Row | None:
    """Return a group's figure, by the rules of its benchmark where it declares any."""
    found: Row | None
    if "tables" in cell:
        rows = cell["tables"]["figures"]
        mine = [one for one in rows if one["metric"] == metric and tuple(one["path"]) == path]
        found = mine[0] if mine else None
    elif path:
        groups = [one["metrics"] for one in cell["groups"] if tuple(one["path"]) == path]
        found = groups[0].get(metric) if groups else None
    else:
        found = cell["metrics"].get(metric)
    return found if found is not None and found.get("value") is not None else None


def _judge(run: Row, name: str) -> Row:
    judges = (run.get("config") or {}).get("judge") or []
    return next((one for one in judges if one["name"] == name), {})


def _judge_model(run: Row, name: str) -> str:
    return str(_judge(run, name).get("model") or "")


def _orders(run: Row, name: str) -> str:
    return str(_judge(run, name).get("orders") or "both")


def _warnings(
    found: Published, labels: Mapping[str, Row], cells: Sequence[Row], run: Row
) -> Iterator[str]:
    """Yield what makes these figures others than the published ones, one sentence each."""
    yield from _of_judges(found, run)
    for label, suite in labels.items():
        yield from _of_sample(found, label, suite, cells, run)
        yield from _of_options(found, label, suite)
    published_in = {column.condition for table in found.tables for column in table.columns}
    others = sorted({cell["condition"] for cell in cells} - published_in)
    if others:
        yield (
            f"figures in {', '.join(others)} are not set beside any: the published ones are of "
            "other conditions"
        )
    texts = sorted({cell["endpoint"] for cell in cells if cell["reply_channel"] == "text"})
    if texts:
        yield f"{', '.join(texts)} replied in text, so nothing was lost in speech or in hearing"


def _of_options(found: Published, label: str, suite: Row) -> Iterator[str]:
    told = {**suite, **(suite.get("options") or {})}
    given = {name: one for name, one in told.items() if one is not None}
    options = {**found.defaults, **given}
    for name, value in found.options.items():
        if options[name] != value:
            yield f"{label}: {name} is {options[name]}; the published figures are of {value}"
            if name == "prompt_mode":
                return  # it has worked examples of its own, and how many is another question


def _of_rating(tables: Sequence[Json]) -> Iterator[str]:
    for table in tables:
        models = {row["judge"] for row in table["yours"]} - {table["judge"], ""}
        if table["judge"] and models:
            yield (
                f"{table['title'].partition(':')[0]}: the paper's judge is {table['judge']}, "
                f"{' and '.join(sorted(models))} rated these replies; scores of different judges "
                "are not on one scale"
            )


def _of_judges(found: Published, run: Row) -> Iterator[str]:
    rated = any(table.judge for table in found.tables)
    for judge in (run.get("config") or {}).get("judge") or [] if rated else []:
        if judge.get("orders", "both") != "both":
            yield (
                f"judge {judge['name']} was asked with orders = {judge['orders']}: it has no "
                "figures beside tables of both orders"
            )
        if judge.get("scale"):
            yield f"judge {judge['name']} rates on a scale of its own: {judge['scale']}"


def _of_sample(
    found: Published, label: str, suite: Row, cells: Sequence[Row], run: Row
) -> Iterator[str]:
    selection = run.get("selection") or {}
    sampled = [name for name in ("subset", "limit") if suite.get(name)]
    sampled += [f"--{name}" for name in ("limit", "shard") if selection.get(name)]
    asked = max((_items(cell) for cell in cells if cell["suite"] == label), default=0)
    of = f" of {found.items}" if found.items else ""
    if sampled:
        yield (
            f"{label}: a sample ({', '.join(sampled)}) of {asked}{of} questions; the intervals say "
            "what it can tell"
        )
    elif found.items and asked != found.items:
        yield f"{label}: {asked} questions have a figure; the published ones are of {found.items}"


def _items(cell: Row) -> int:
    """Return how many items the figure of a cell stands on."""
    counts = [entry.get("items", 0) for entry in cell["metrics"].values()]
    return int(max(counts, default=0))
