"""The process that reads replies while a run goes on; `voxmeter.client.read_ahead` starts it.

Its parent writes one byte whenever the run has a reply more; the replies themselves are found in
the run folder. It answers with one byte for each that has been read, and ends when its parent
closes the pipe or dies.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from voxmeter.client import affinity
from voxmeter.client.bench import Transcribe
from voxmeter.client.child import lower_priority, pipes
from voxmeter.client.jsonlines import growing
from voxmeter.client.runfolder import RunFolder
from voxmeter.client.transcribe_wire import receive
from voxmeter.client.transcripts import (
    is_spoken_reply,
    known_transcripts,
    made_with,
    transcriber_pool,
)
from voxmeter.endpoints.errors import UserError
from voxmeter.scoring.asr import Transcript
from voxmeter.scoring.types import Unscored

Row = Mapping[str, Any]


def main() -> None:
    """Serve one parent until it closes the pipe."""
    requests, replies = pipes()
    os.set_blocking(replies.fileno(), False)  # nobody has to listen
    lower_priority()
    affinity.confine_all(affinity.split(affinity.allowed(), of=1).others)
    setup, _ = receive(requests)
    table = Transcribe.model_validate(setup["transcribe"])
    try:
        with RunFolder.open(Path(setup["folder"])) as folder:
            _read(requests, replies, folder, table)
    except UserError:  # scoring meets the same mistake, and tells it
        os._exit(2)
    os._exit(0)


def _read(requests: IO[bytes], replies: IO[bytes], folder: RunFolder, table: Transcribe) -> None:
    def count(future: Future[Transcript | Unscored]) -> None:
        if future.cancelled() or future.exception() is not None:
            return
        if isinstance(future.result(), Transcript):
            with suppress(OSError):
                os.write(replies.fileno(), b".")

    languages = {(row["suite"], row["item"]): row.get("language") for row in folder.items()}
    pool = transcriber_pool(table)
    record = pool.record()
    known = known_transcripts(folder)
    try:
        for trial in _new_trials(requests, folder):
            asked = table.language or languages.get((trial["suite"], trial["item"]))
            before = known.get(trial["key"])
            made = made_with(record, asked)
            done = before and (before.attempt, before.made_with) == (trial["attempt"], made)
            reply = folder.attempt_paths(trial).reply
            if not done and reply.is_file():
                pool.submit(reply, trial["key"], asked).add_done_callback(count)
    finally:
        pool.close()


def _new_trials(requests: IO[bytes], folder: RunFolder) -> Iterator[Row]:
    """Yield the spoken replies of `trials.jsonl`, waiting for more at its end."""
    rows = growing(folder.path / "trials.jsonl")
    while True:
        yield from (row for row in rows() if is_spoken_reply(row))
        if not os.read(requests.fileno(), 4096):
            return


if __name__ == "__main__":
    main()
