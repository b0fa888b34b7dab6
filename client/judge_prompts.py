"""Which prompt each judge uses for which items: a benchmark's own, or the user's file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voxmeter.client import nearest, redaction
from voxmeter.client.jsonlines import disk
from voxmeter.client.terminal import printable
from voxmeter.endpoints.errors import UserError
from voxmeter.scoring import rubrics
from voxmeter.scoring.judge_messages import Case, lacking
from voxmeter.scoring.rubrics import PromptError, Rubric

if TYPE_CHECKING:
    from voxmeter.client.bench import Bench, Judge

Row = Mapping[str, Any]
Used = tuple[str, str]
"""Names of a suite and of the rubric that items of it have."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts of a bench's judges.

    Attributes:
        by_use: Judge, suite and rubric's name -> the prompt.
    """

    by_use: Mapping[tuple[str, str, str], Rubric]

    def of(self, judge: str, suite: str, name: str) -> Rubric | None:
        """Return a judge's prompt for items of a suite; None where it does not judge them."""
        return self.by_use.get((judge, suite, name))

    def record(self) -> dict[str, dict[str, dict[str, object]]]:
        """Return what run.json holds: by judge, then by `suite/rubric`."""
        found: dict[str, dict[str, dict[str, object]]] = {}
        for (judge, suite, name), rubric in self.by_use.items():
            found.setdefault(judge, {})[f"{suite}/{name}"] = rubric.record()
        return found


NO_PROMPTS = Prompts({})


def prompts(bench: Bench, used: Iterable[Used], recorded: Row | None = None) -> Prompts:
    """Return the prompts of every judge for every suite that it judges.

    Args:
        bench: Names judges, and files of the user's own.
        used: Suites and rubrics of the items.
        recorded: `prompts` of run.json. What a prompt held when the run began is kept, so that a
            later version or an edited file changes no score; None reads every prompt anew.

    Raises:
        UserError: If a prompt is unknown or a file is none.
    """
    found = {}
    for suite, name in dict.fromkeys(used):
        for judge in bench.judges:
            if name and judges_suite(judge, suite):
                kept = _recorded(recorded or {}, judge.name, suite, name)
                made = kept or _read(bench, judge, suite, name)
                scale = judge.scale.get(suite) if isinstance(judge.scale, dict) else judge.scale
                found[judge.name, suite, name] = made.on_scale(*scale) if scale else made
    return Prompts(found)


def judges_suite(judge: Judge, suite: str) -> bool:
    """Return whether a judge is asked about a suite."""
    return judge.suites is None or suite in judge.suites


def _recorded(recorded: Row, judge: str, suite: str, name: str) -> Rubric | None:
    match recorded.get(judge):
        case dict() as mine:
            found = mine.get(f"{suite}/{name}")
        case _:
            return None
    match found:
        case {"text": str(text)}:
            try:
                return rubrics.parse(name, text)
            except PromptError:
                return None
        case _:
            return None


def _read(bench: Bench, judge: Judge, suite: str, name: str) -> Rubric:
    place = f'{bench.source}: [[judge]] "{printable(judge.name)}" prompts'
    file = judge.prompts.get(f"{suite}/{name}") or judge.prompts.get(name)
    if file is not None:
        return _parsed(place, name, Path(file))
    known = sorted({*rubrics.shipped(), *(key for key in judge.prompts if "/" not in key)})
    if name not in known:
        found = f'items of suite "{printable(suite)}" have the rubric "{printable(name)}", '
        raise UserError(place, f"{found}and there is no such prompt", nearest.cure(name, known))
    return rubrics.rubric(name)


def _parsed(place: str, name: str, file: Path) -> Rubric:
    if not file.is_file():
        raise UserError(f"{place}: {file}", "no such file", "give the path of a prompt file")
    try:
        with disk(file):
            text = file.read_text(encoding="utf-8-sig")
        return rubrics.parse(name, text)
    except UnicodeDecodeError:
        raise UserError(f"{place}: {file}", "is not UTF-8 text", "save it as UTF-8") from None
    except PromptError as error:
        found, _, cure = str(error).rpartition("; ")
        raise UserError(f"{place}: {file}", found, cure) from None


def case_of(item: Row, response: str) -> Case:
    """Return what a judge is told of one reply.

    Args:
        item: A row of items.jsonl.
        response: The reply in words.
    """
    reference = item.get("reference")
    given = reference if isinstance(reference, list) else [reference]
    return Case(
        question=str(item.get("question") or ""),
        response=response,
        references=tuple(str(one) for one in given if one not in (None, "")),
        told=str(item.get("told") or ""),
        options=tuple(str(one) for one in item.get("options") or ()),
        choice=item.get("kind") == "choice",
    )


def check(
    bench: Bench, items: Iterable[Row], recorded: Row | None = None
) -> tuple[Prompts, list[str]]:
    """Find out before a run whether its judges can be asked.

    Args:
        bench: Names judges.
        items: Rows of items.jsonl, as they will be.
        recorded: `prompts` of the run.json of a run that goes on.

    Returns:
        The prompts, and what a user should know, one sentence each.

    Raises:
        UserError: If a key is not in the environment, or a prompt is unknown or wrong.
    """
    if not bench.judges:
        return NO_PROMPTS, []
    for judge in bench.judges:
        if judge.api_key_env is not None:
            place = f'{bench.source}: [[judge]] "{printable(judge.name)}" api_key_env'
            redaction.secret(judge.api_key_env, place)
    rows = [row for row in items if row.get("rubric")]
    found = prompts(bench, ((str(row["suite"]), str(row["rubric"])) for row in rows), recorded)
    return found, list(_told(bench, found, rows))


def _told(bench: Bench, found: Prompts, rows: list[Row]) -> Iterator[str]:
    for judge in bench.judges:
        reasons: dict[str, int] = {}
        asked = 0
        for row in rows:
            rubric = found.of(judge.name, str(row["suite"]), str(row["rubric"]))
            if rubric is not None:
                asked += 1
                reason = lacking(rubric, case_of(row, ""))
                if reason is not None:
                    reasons[reason] = reasons.get(reason, 0) + 1
        yield from _unused(judge, rows)
        if not asked:
            yield (
                f"judge {printable(judge.name)}: nothing to judge, no item of its suites has a "
                'rubric; add rubric = "adu" to a suite of your own, or remove the judge'
            )
        for reason, count in reasons.items():
            yield f"judge {printable(judge.name)}: {count} of {asked} items cannot be put: {reason}"


def _unused(judge: Judge, rows: list[Row]) -> Iterator[str]:
    """Yield the prompts of the user's own that no item asks for: their names may be mistyped."""
    mine = [row for row in rows if judges_suite(judge, str(row["suite"]))]
    named = {str(row["rubric"]) for row in mine}
    named |= {f"{row['suite']}/{row['rubric']}" for row in mine}
    for key in judge.prompts:
        if key not in named:
            cure = nearest.cure(printable(key), named)
            yield (
                f'judge {printable(judge.name)}: no item has the rubric "{printable(key)}", '
                f"so its prompt is not used; {cure}"
            )
