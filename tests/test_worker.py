"""The process that calls our functions: what comes back, how it dies, that it outlives nobody."""

from __future__ import annotations

import os
import pickle
import select
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from voxmeter.client.audio import read
from voxmeter.client.child import ChildDiedError
from voxmeter.client.jsonlines import disk
from voxmeter.client.models import locate
from voxmeter.client.worker import Worker, _pickled
from voxmeter.endpoints.errors import ClipError, UserError

LIMIT_S = 20


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker("test") as one:
        yield one


def test_a_function_is_called_in_another_process_of_low_priority(worker: Worker) -> None:
    assert worker.submit(divmod, 7, 2).result(LIMIT_S) == (3, 1)
    assert worker.submit(os.getpid).result(LIMIT_S) != os.getpid()
    assert worker.submit(os.nice, 0).result(LIMIT_S) == 19


def test_calls_are_made_one_after_another_by_the_same_process(worker: Worker) -> None:
    futures = [worker.submit(os.getpid) for _ in range(5)]
    assert len({future.result(LIMIT_S) for future in futures}) == 1


def test_a_users_mistake_crosses_the_border_whole(worker: Worker) -> None:
    with pytest.raises(UserError, match="no such model") as caught:
        worker.submit(locate, "gpt", "tts").result(LIMIT_S)
    assert caught.value.place == "model 'gpt'"
    with pytest.raises(ClipError, match="no such file"):
        worker.submit(read, "/nowhere.wav").result(LIMIT_S)


def test_an_error_of_ours_keeps_where_it_came_from(worker: Worker) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        worker.submit(divmod, 1, 0).result(LIMIT_S)
    assert any("worker.py" in note for note in caught.value.__notes__)


def test_what_cannot_travel_is_told_in_words(worker: Worker) -> None:
    with pytest.raises(TypeError, match="cannot pickle"):
        worker.submit(disk, Path()).result(LIMIT_S)

    class LocalError(Exception):
        pass

    done, error = pickle.loads(_pickled(LocalError("of a library")))  # noqa: S301 - our own
    assert not done
    assert str(error) == "LocalError: of a library"


def test_what_a_function_prints_does_not_get_between_the_replies(worker: Worker) -> None:
    assert worker.submit(os.write, 1, b"noise\n").result(LIMIT_S) == 6
    assert worker.submit(abs, -1).result(LIMIT_S) == 1


def test_a_death_is_told_and_the_next_call_finds_a_new_process(worker: Worker) -> None:
    first = worker.submit(os.getpid).result(LIMIT_S)
    with pytest.raises(ChildDiedError, match="exit status -9"):
        worker.submit(os.kill, first, signal.SIGKILL).result(LIMIT_S)
    assert worker.submit(os.getpid).result(LIMIT_S) != first


def test_a_process_that_died_between_two_calls_is_told_as_well(worker: Worker) -> None:
    pid = worker.submit(os.getpid).result(LIMIT_S)
    gone = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    assert select.select([gone], [], [], LIMIT_S)[0]
    os.close(gone)
    with pytest.raises(ChildDiedError):
        worker.submit(abs, -1).result(LIMIT_S)
    assert worker.submit(abs, -1).result(LIMIT_S) == 1


def test_a_worker_that_is_stopped_works_again_when_it_is_asked(worker: Worker) -> None:
    first = worker.submit(os.getpid).result(LIMIT_S)
    worker.stop()  # it had nothing to do
    assert worker.submit(os.getpid).result(LIMIT_S) != first
    endless = worker.submit(signal.pause)
    while not endless.running():
        os.sched_yield()
    worker.stop()
    with pytest.raises(ChildDiedError):
        endless.result(LIMIT_S)
    assert worker.submit(abs, -1).result(LIMIT_S) == 1
    with Worker("test") as idle:
        idle.stop()


def test_closing_does_not_wait_for_what_is_under_way() -> None:
    worker = Worker("test")
    pid = worker.submit(os.getpid).result(LIMIT_S)
    gone = os.pidfd_open(pid)
    endless, queued = worker.submit(signal.pause), worker.submit(abs, -1)
    worker.close()
    assert select.select([gone], [], [], 0)[0]
    os.close(gone)
    assert endless.cancelled() or isinstance(endless.exception(0), ChildDiedError)
    assert queued.cancelled() or isinstance(queued.exception(0), ChildDiedError)
    worker.close()


def test_a_worker_that_was_never_asked_starts_no_process() -> None:
    with Worker("test") as worker:
        assert worker._process is None


def test_the_process_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "script.py"  # without a guard: it must not be run again by the worker
    script.write_text(
        textwrap.dedent(f"""
            import os, signal
            from voxmeter.client.worker import Worker
            worker = Worker("test")
            print(worker.submit(os.getpid).result({LIMIT_S}), flush=True)
            signal.pause()
        """)
    )
    parent = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent, os.fdopen(os.pidfd_open(int(parent.stdout.readline())), closefd=True) as gone:
        parent.kill()
        assert select.select([gone], [], [], LIMIT_S)[0]
        assert parent.stdout.read() == ""
