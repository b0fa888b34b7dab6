"""Asks a judge one question whose verdict is clear, to see whether it answers and is understood."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from voxmeter.client.judge_call import JudgeError, Service
from voxmeter.client.terminal import printable
from voxmeter.endpoints.errors import EndpointError
from voxmeter.scoring import rubrics
from voxmeter.scoring.judge_messages import Case
from voxmeter.scoring.judging import Verdict, judge_order

if TYPE_CHECKING:
    from voxmeter.client.bench import Judge
    from voxmeter.client.redaction import Redactor

RUBRIC = "adu"
CASE = Case("How many legs does a spider have?", "A spider has eight legs.", ("Eight.",))


def try_judge(judge: Judge, source: str, redactor: Redactor) -> str:
    """Return what a judge said about one reply that is plainly right, in words.

    Args:
        judge: Its table of bench.toml.
        source: The file it stands in, for errors.
        redactor: Knows its key.

    Raises:
        UserError: If its key is not in the environment.
        EndpointError: If it cannot be asked, or its reply cannot be read.
    """
    try:
        found = asyncio.run(_ask(judge, source, redactor))
    except JudgeError as error:
        raise EndpointError(str(error)) from None
    said = found.replies[-1]
    if found.reading.value is None:
        words = printable((said.raw or "")[:80])
        raise EndpointError(f'its reply "{words}" cannot be read: {found.reading.reason}')
    served = f" as {printable(said.model, 60)}" if said.model else ""
    return f"rated a right answer{served} with {found.reading.value:g} of 0 to 10"


async def _ask(judge: Judge, source: str, redactor: Redactor) -> Verdict:
    async with Service(judge, source, redactor) as service:
        return await judge_order(rubrics.rubric(RUBRIC), CASE, "reference-first", service.ask)
