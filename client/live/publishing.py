"""The talks of one command told to the bench's MQTT broker, each under a name of its own."""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from voxmeter.client.clock import utc_now
from voxmeter.client.live.updates import Notice, PhaseChanged, Saved, Show, Update
from voxmeter.client.terminal import warn

if TYPE_CHECKING:
    from voxmeter.client.bench import Bench
    from voxmeter.client.publish import Publication, Status
    from voxmeter.client.redaction import Redactor


class Publishing:
    """Publishes talks; does nothing where the bench has no broker.

    Args:
        bench: Names the broker, or none.
        redactor: Knows every secret of the bench.

    Raises:
        UserError: If the broker's table cannot be right: a variable that is missing, say.
    """

    def __init__(self, bench: Bench, redactor: Redactor) -> None:
        self._bench, self._redactor = bench, redactor
        self._open: list[_Told] = []
        self._ending: list[threading.Thread] = []
        if bench.publish.mqtt is not None:
            from voxmeter.client.publish_settings import mqtt_settings

            mqtt_settings(bench)

    def show(self, endpoint: str, show: Show) -> Show:
        """Return who is told of a talk that begins now, besides `show`; ends those before it."""
        if self._bench.publish.mqtt is None:
            return show
        for told in self._open:
            thread = threading.Thread(target=told.end, args=("done",), name="publish: end")
            thread.start()
            self._ending.append(thread)
        self._open = [_Told(self._bench, self._redactor, endpoint, show)]
        return self._open[0].show

    def end(self, status: Status) -> None:
        """Say the last status of what is open, and wait a little for what is not sent yet."""
        for told in self._open:
            told.end(status)
        for thread in self._ending:
            thread.join()
        self._open.clear()


class _Told:
    """One talk."""

    def __init__(self, bench: Bench, redactor: Redactor, endpoint: str, show: Show) -> None:
        from voxmeter.client.publish import publication_of
        from voxmeter.client.publish_live import live_listener

        self._loop = asyncio.get_running_loop()
        self._front = show
        self._folder: Path | None = None
        self._fault = False
        name = f"live-{utc_now():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        self._publication: Publication = publication_of(bench, name, redactor, self._tell)
        self._listen = live_listener(self._publication, endpoint)

    def show(self, update: Update) -> None:
        match update:
            case PhaseChanged("ended", fault):
                self._fault = bool(fault)
            case Saved(folder):
                self._folder = folder
            case _:
                pass
        self._listen(update)
        self._front(update)

    def _tell(self, problem: str) -> None:
        """Show from the publishing's thread why there is no connection."""
        with suppress(RuntimeError):  # the talk is over, and its loop closed
            self._loop.call_soon_threadsafe(self._front, Notice(problem))

    def end(self, status: Status) -> None:
        delivery = self._publication.end("failed" if self._fault else status)
        if self._folder is not None:
            from voxmeter.client.publish_note import FILE

            with suppress(OSError):  # a full disk is found by what matters more
                (self._folder / FILE).write_text(json.dumps({"mqtt": asdict(delivery)}) + "\n")
        if delivery.undelivered:
            warn(delivery.words())
