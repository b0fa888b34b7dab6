"""Tells an MQTT broker how a run goes: status, each trial, figures so far, the summary.

Nothing here waits for the broker, and nothing that a broker does changes a run. Topics and payloads
stand in docs/mqtt.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from voxmeter.client import publish_discovery
from voxmeter.client.clock import Clock, SystemClock
from voxmeter.client.publish_content import run_summary, trial_event
from voxmeter.client.publish_note import FILE, noted
from voxmeter.client.publish_process import FLUSH_S, Delivery, Publisher
from voxmeter.client.publish_stats import Rolling
from voxmeter.client.publish_topics import Post, Topics, dumped
from voxmeter.client.publish_wire import Setup
from voxmeter.client.redaction import Redactor
from voxmeter.client.runfolder import FINISHED
from voxmeter.client.terminal import warn
from voxmeter.endpoints.errors import UserError

if TYPE_CHECKING:
    from voxmeter.client.bench import Bench, Mqtt
    from voxmeter.client.plan import Trial
    from voxmeter.client.run import Prepared
    from voxmeter.client.runfolder import RunFolder
    from voxmeter.client.streaming import Show

Row = Mapping[str, Any]
Status = Literal[
    "online", "running", "scoring", "done", "interrupted", "failed", "waiting", "offline"
]


class Sender(Protocol):
    """Who takes messages away."""

    def offer(self, post: Post) -> None:
        """Take one; return at once."""
        ...

    def end(self, limit_s: float = FLUSH_S) -> Delivery:
        """Send what is left within a limit; return what came of everything."""
        ...


class Publication:
    """What one run or live session says; any thread may call.

    Args:
        sender: Takes the messages.
        table: Says which topics, and whether Home Assistant is told.
        run: The run folder's name, or the session's.
        redactor: Knows the secrets of the bench.
        clock: Stamps events.
    """

    def __init__(
        self,
        sender: Sender,
        table: Mqtt,
        run: str,
        redactor: Redactor,
        clock: Clock | None = None,
    ) -> None:
        self._sender, self._table, self._run, self._redactor = sender, table, run, redactor
        self._clock = clock or SystemClock()
        self._began_ns = self._clock.now()
        self._topics = Topics(table.topic, redactor.text(run))
        self._rolling: dict[str, Rolling] = {}
        self._begun: set[str] = set()
        self._told: Status | None = None
        self.status("online")

    def status(self, status: Status) -> None:
        """Say what is going on now; the broker keeps it."""
        if status != self._told:
            self._told = status
            self._sender.offer(Post(self._topics.status, status, retain=True))

    def earlier(self, rows: Iterable[Row]) -> None:
        """Count rows of a run that goes on."""
        for row in rows:
            self._rolling.setdefault(row["endpoint"], Rolling(row["endpoint"])).add(row)

    def endpoint(self, name: str) -> None:
        """Begin an endpoint's figures, or go on with them."""
        if name in self._begun:
            return
        self._begun.add(name)
        rolling = self._rolling.setdefault(name, Rolling(name))
        if self._table.discovery:
            prefix = self._table.discovery_topic
            for post in publish_discovery.found(prefix, self._topics, self._redactor.text(name)):
                self._sender.offer(post)
        self._stats(rolling)

    def trial(self, row: Row, *, stage: str = "answered", **more: object) -> None:
        """Say how an attempt went; unless it is made again, it counts in the figures."""
        self.event(str(row["item"]), trial_event(row, stage, **more))
        if stage != "again":
            self.endpoint(row["endpoint"])
            rolling = self._rolling[row["endpoint"]]
            rolling.add(row)
            self._stats(rolling)

    def event(self, item: str, content: Mapping[str, Any]) -> None:
        """Say something of an item, with the time since the beginning in ms."""
        t_ms = round((self._clock.now() - self._began_ns) / 1e6, 3)
        told = {"run": self._run, **content, "t_ms": t_ms}
        self._offer(self._topics.event(self._redactor.text(item)), told, retain=False)

    def summary(self, summary: Mapping[str, Any]) -> None:
        """Say what came of it all; the broker keeps it."""
        for name, rolling in self._rolling.items():
            self.endpoint(name)
            rolling.scored(summary)
            self._stats(rolling)
        self._offer(self._topics.summary, run_summary(summary), retain=True)

    def end(self, status: Status, limit_s: float = FLUSH_S) -> Delivery:
        """Say the last status, send what is left within a limit; return what came of it."""
        self.status(status)
        if self._table.discovery and self._table.discovery_remove:
            for name in self._begun:
                gone = publish_discovery.removed(
                    self._table.discovery_topic, self._redactor.text(name)
                )
                for post in gone:
                    self._sender.offer(post)
        return self._sender.end(limit_s)

    def _stats(self, rolling: Rolling) -> None:
        topic = self._topics.stats(self._redactor.text(rolling.endpoint))
        self._offer(topic, {"run": self._run, **rolling.content()}, retain=True)

    def _offer(self, topic: str, content: Mapping[str, Any], *, retain: bool) -> None:
        clean = cast("dict[str, Any]", self._redactor.json(dict(content)))
        self._sender.offer(Post(topic, dumped(clean), retain))


class Shown:
    """Tells a publication what a run shows, besides whoever it is shown to.

    Args:
        publication: Is told first.
        show: Is told as well.
    """

    def __init__(self, publication: Publication, show: Show) -> None:
        self._publication, self._show = publication, show

    def endpoint(self, name: str, trials: int) -> None:
        """Say which endpoint is asked next."""
        self._publication.status("running")
        self._publication.endpoint(name)
        self._show.endpoint(name, trials)

    def trial(self, trial: Trial, row: Row) -> None:
        """Say how a trial went."""
        self._publication.trial(row)
        self._show.trial(trial, row)

    def again(self, trial: Trial, row: Row, wait_s: float) -> None:
        """Say that an attempt was refused and is made again."""
        self._publication.trial(row, stage="again", wait_s=wait_s)
        self._show.again(trial, row, wait_s)


class Publishing:
    """The publishing of one run; does nothing where its bench has no broker.

    Args:
        publication: None without a broker.
        folder: The run.
    """

    def __init__(self, publication: Publication | None, folder: RunFolder) -> None:
        self._publication, self._folder = publication, folder

    def show(self, show: Show) -> Show:
        """Return who is told how the run goes, besides `show`."""
        if self._publication is None:
            return show
        rows = self._folder.newest_trials()
        self._publication.earlier(row for row in rows if row["status"] in FINISHED)
        return Shown(self._publication, show)

    def scoring(self) -> None:
        """Say that all is asked."""
        if self._publication is not None:
            self._publication.status("scoring")

    def scored(self, summary: dict[str, Any]) -> None:
        """Publish a summary, end the publishing, and note in the summary what went missing."""
        if self._publication is None:
            return
        self._publication.summary(summary)
        self.end("done")
        noted(summary, self._folder)
        self._folder.replace("summary.json", json.dumps(summary, allow_nan=False, indent=1) + "\n")

    def end(self, status: Status) -> None:
        """End the publishing if that has not been done: keep the count, warn of what is missing."""
        publication, self._publication = self._publication, None
        if publication is None:
            return
        delivery = publication.end(status)
        with suppress(UserError):  # a full disk is found by what matters more
            self._folder.replace(FILE, json.dumps({"mqtt": asdict(delivery)}) + "\n")
        if delivery.undelivered:
            warn(delivery.words())


@contextmanager
def publishing(prepared: Prepared, folder: RunFolder) -> Iterator[Publishing]:
    """Publish a run while the block lasts; its last status is how the block ended."""
    bench = prepared.bench
    publication = None
    if bench.publish.mqtt is not None:
        publication = publication_of(bench, folder.path.name, prepared.redactor)
    course = Publishing(publication, folder)
    try:
        yield course
    except (KeyboardInterrupt, GeneratorExit):
        course.end("interrupted")
        raise
    except BaseException:
        course.end("failed")
        raise
    course.end("done")


def publication_of(
    bench: Bench, run: str, redactor: Redactor, tell: Callable[[str], None] = warn
) -> Publication:
    """Start publishing for a bench that has a broker.

    Args:
        bench: With a `[publish.mqtt]` table.
        run: The run folder's name, or the live session's.
        redactor: Knows the secrets of the bench.
        tell: Is told once, from a thread, why there is no connection.

    Raises:
        UserError: As `mqtt_settings`.
    """
    from voxmeter.client.publish_settings import mqtt_settings

    table = bench.publish.mqtt
    if table is None:
        raise ValueError(bench.source)
    will = Post(Topics(table.topic, redactor.text(run)).status, "offline", retain=True)

    def told(problem: str) -> None:
        tell(redactor.text(f"MQTT: {problem}; it goes on without"))

    publisher = Publisher(Setup(mqtt_settings(bench), will), told)
    return Publication(_Redacted(publisher, redactor), table, run, redactor)


class _Redacted:
    """A sender whose words on what went wrong hold no secret."""

    def __init__(self, publisher: Publisher, redactor: Redactor) -> None:
        self.offer, self._publisher, self._redactor = publisher.offer, publisher, redactor

    def end(self, limit_s: float = FLUSH_S) -> Delivery:
        """End the publisher."""
        found = self._publisher.end(limit_s)
        return Delivery(found.delivered, found.undelivered, self._redactor.text(found.problem))
