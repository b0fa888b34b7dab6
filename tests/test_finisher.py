"""Attempts finished in the process beside the loop: files, rows, deaths, full disks."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from captures import attempt_in, capture_of

from voxmeter.client.child import ChildDiedError
from voxmeter.client.finisher import Finisher
from voxmeter.endpoints.errors import UserError

LIMIT_S = 20


@pytest.fixture(scope="module")
def finisher() -> Iterator[Finisher]:
    with Finisher() as one:
        yield one


def killed(finisher: Finisher) -> None:
    pid = finisher._worker.submit(os.getpid).result(LIMIT_S)
    os.kill(pid, signal.SIGKILL)


async def test_an_attempt_comes_back_as_a_row_with_its_files_written(
    finisher: Finisher, tmp_path: Path
) -> None:
    attempt = attempt_in(tmp_path, key="k")
    row = await finisher.finish(capture_of(), attempt)
    assert (row["key"], row["status"]) == ("k", "ok")
    assert attempt.paths.audio.is_file()
    assert attempt.paths.reply.is_file()
    assert attempt.paths.events.is_file()
    json.dumps(row, allow_nan=False)


async def test_attempts_side_by_side_each_get_their_own_row(
    finisher: Finisher, tmp_path: Path
) -> None:
    made = [finisher.finish(capture_of(), attempt_in(tmp_path / str(n), key=str(n))) for n in "abc"]
    assert [row["key"] for row in await asyncio.gather(*made)] == ["a", "b", "c"]


async def test_a_process_that_was_killed_is_replaced(finisher: Finisher, tmp_path: Path) -> None:
    killed(finisher)
    row = await finisher.finish(capture_of(), attempt_in(tmp_path))
    assert row["status"] == "ok"


class Deadly:
    """Ends whatever process reads it."""

    def __reduce__(self) -> tuple[Callable[[int], NoReturn], tuple[int]]:
        return os._exit, (7,)


async def test_an_attempt_that_kills_two_processes_is_told_and_the_next_one_is_served(
    finisher: Finisher, tmp_path: Path
) -> None:
    with pytest.raises(ChildDiedError, match="exit status 7"):
        await finisher.finish(capture_of(), attempt_in(tmp_path, poison=Deadly()))
    assert (await finisher.finish(capture_of(), attempt_in(tmp_path)))["status"] == "ok"


async def test_a_disk_that_refuses_is_the_users_one_line(
    finisher: Finisher, tmp_path: Path
) -> None:
    (tmp_path / "audio").write_text("a file where a folder should be")
    with pytest.raises(UserError, match="audio"):
        await finisher.finish(capture_of(), attempt_in(tmp_path))


def test_closing_with_work_under_way_does_not_wait(tmp_path: Path) -> None:
    with Finisher() as finisher:
        endless = finisher._worker.submit(signal.pause)
    assert endless.cancelled() or isinstance(endless.exception(0), ChildDiedError)
