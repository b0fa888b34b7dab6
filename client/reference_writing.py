"""References that a chat model writes for a benchmark's questions, kept beside the download."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from voxmeter.client import jsonlines
from voxmeter.client.groups import first_of
from voxmeter.client.judge_call import JudgeError, Service, Sleep
from voxmeter.client.redaction import Redactor
from voxmeter.endpoints.errors import UserError
from voxmeter.scoring.judge_messages import Message, as_data
from voxmeter.suites.adu_domains import BINARY
from voxmeter.suites.written_references import KEYS

if TYPE_CHECKING:
    from voxmeter.client.bench import Judge
    from voxmeter.suites.suite import Item, Suite

PROMPT = (
    "Someone says the following to a voice assistant. Write the answer that a good assistant would "
    "speak: right, helpful, complete, and in a few sentences. Use the language in which they "
    "speak. Write the answer alone."
)
"""What the model is told; a file of the user's own may take its place."""

MOST_FAILURES = 5
"""Questions in a row that may fail before the service is left in peace."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be written.

    Attributes:
        suite: Its questions.
        model: The chat model, with its service and key.
        output: The file.
        prompt: What the model is told.
        every: Whether questions that have a reference get another one.
        limit: At most so many are asked; None for all.
    """

    suite: Suite
    model: Judge
    output: Path
    prompt: str = PROMPT
    every: bool = False
    limit: int | None = None


@dataclass(slots=True)
class Written:
    """What came of it.

    Attributes:
        asked: Questions put to the model.
        written: References that are new in the file.
        known: Those that were there from an earlier call.
        by_voice: Questions left out because their wording does not tell what was meant.
        silent: Questions left out because they are not written down.
        problems: Why the others have none, one line each.
    """

    asked: int = 0
    written: int = 0
    known: int = 0
    by_voice: int = 0
    silent: int = 0
    problems: list[str] = field(default_factory=list)


def default_output(root: Path, model: str) -> Path:
    """Return the file beside a download for what a model writes."""
    plain = re.sub(r"[^\w.-]+", "-", model).strip("-.") or "model"
    return root.parent / f"{root.name}-references-{plain}.jsonl"


def write(
    wanted: Wanted,
    root: Path,
    redactor: Redactor,
    *,
    tell: Callable[[int, int], None] = lambda _done, _total: None,
    sleep: Sleep = asyncio.sleep,
) -> Written:
    """Have references written and append each to the file as soon as it is there.

    What the same model was told to write before under the same prompt is not asked again.

    Args:
        wanted: What is to be written.
        root: The download, in which nothing is written.
        redactor: Takes secrets out of what the service says.
        tell: Told how many are done, of how many.
        sleep: How to wait before the service is asked again.

    Raises:
        UserError: If the file would lie in the download, the key is missing, the service refuses
            the key or the model, or the disk is full.
    """
    _check_place(wanted.output, root)
    found = Written()
    todo = list(_todo(wanted, found))[: wanted.limit]
    try:
        asyncio.run(_write(wanted, todo, redactor, found, tell, sleep))
    except BaseExceptionGroup as group:
        raise first_of(group) from group
    return found


def _check_place(output: Path, root: Path) -> None:
    if output.resolve().is_relative_to(root.resolve()):
        raise UserError(
            str(output), "lies inside the download, which is never altered", "name a file beside it"
        )


def _todo(wanted: Wanted, found: Written) -> Iterator[Item]:
    stamp = _stamp(wanted.prompt)
    known = {
        row["item"]
        for row in jsonlines.read(wanted.output, needed={"item", "reference"})
        if (row.get("model"), row.get("prompt")) == (wanted.model.model, stamp)
    }
    for item in wanted.suite.items:
        if item.reference and not wanted.every:
            continue
        if item.item in known:
            found.known += 1
        elif item.groups[-1] in BINARY:
            found.by_voice += 1
        elif not item.question:
            found.silent += 1
        else:
            yield item


async def _write(
    wanted: Wanted,
    todo: Sequence[Item],
    redactor: Redactor,
    found: Written,
    tell: Callable[[int, int], None],
    sleep: Sleep,
) -> None:
    if not todo:
        return
    one_after_another = iter(todo)  # one iterator for all: each goes to whoever is free
    with jsonlines.Appender(wanted.output) as file:
        async with Service(wanted.model, "voxmeter", redactor, sleep=sleep) as service:
            writer = _Writer(wanted, service, file, found, lambda: tell(found.asked, len(todo)))
            async with asyncio.TaskGroup() as group:
                for number in range(wanted.model.concurrency):
                    group.create_task(writer.work(one_after_another), name=f"writer {number}")


@dataclass(slots=True)
class _Writer:
    """One service and all questions."""

    wanted: Wanted
    service: Service
    file: jsonlines.Appender
    found: Written
    done: Callable[[], None]
    failures: int = 0

    async def work(self, items: Iterator[Item]) -> None:
        """Ask for one reference after another."""
        for item in items:
            problem = await self._one(item)
            self.found.asked += 1
            if problem:
                self.found.problems.append(f"{item.item}: {problem}")
            else:
                self.found.written += 1
            self.done()

    async def _one(self, item: Item) -> str:
        """Have one written; return why there is none."""
        sent = (Message("system", self.wanted.prompt), Message("user", as_data(item.question)))
        try:
            said = await self.service.ask(sent)
        except JudgeError as error:
            self.failures += 1
            if error.hopeless or self.failures >= MOST_FAILURES:
                raise UserError(
                    f"model {self.wanted.model.model}",
                    f"cannot be asked: {error.fault.message}",
                    "see to it and call again; what was written stays, and is not asked again",
                ) from None
            return error.fault.message
        self.failures = 0
        text = (said.raw or "").rpartition("</think>")[2].strip()
        if said.finish == "length":
            return "cut off by the token limit"
        if not text:
            return "nothing was written"
        row = {
            "item": item.item,
            "reference": text,
            "question": item.question,
            "model": self.wanted.model.model,
            "prompt": _stamp(self.wanted.prompt),
            "written_at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        assert row.keys() == set(KEYS)  # noqa: S101 - what `read_references` takes
        self.file.append(row)
        return ""


def _stamp(prompt: str) -> str:
    return hashlib.sha256(prompt.encode()).hexdigest()[:16]
