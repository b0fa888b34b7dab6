"""What a server really did, one JSON line a turn, for whoever checks a client's clock."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from voxmeter.client.jsonlines import Appender, disk

Outcome = Literal["completed", "cancelled", "dropped", "disconnected", "failed"]


class Packet(NamedTuple):
    """One packet of a reply.

    Attributes:
        sent_ns: Moment at which its send returned.
        samples: How many samples it carried.
        heard_ns: When a listener hears its first sample, where packets are parts of a stream that
            never stops; None leaves it to `Delivery`.
    """

    sent_ns: int
    samples: int
    heard_ns: int | None = None


@dataclass(slots=True)
class Delivery:
    """What has been sent of one reply, in order.

    Attributes:
        rate: Samples a second.
        onset: Index of the reply's first audible sample; None while there is none.
    """

    rate: int
    packets: list[Packet] = field(default_factory=list)
    onset: int | None = None

    @property
    def samples(self) -> int:
        """Samples sent so far."""
        return sum(packet.samples for packet in self.packets)

    def first_audible_ns(self) -> int | None:
        """Return when a listener hears the first audible sample; None if there is none.

        The listener plays each sample at its packet's arrival or behind the samples before it,
        whichever is later: a burst queues, a late packet leaves a gap.
        """
        if self.onset is None:
            return None
        before, free_ns = 0, 0
        for packet in self.packets:
            begins_ns = packet.heard_ns or max(packet.sent_ns, free_ns)
            if self.onset < before + packet.samples:
                return begins_ns + (self.onset - before) * 1_000_000_000 // self.rate
            free_ns = begins_ns + packet.samples * 1_000_000_000 // self.rate
            before += packet.samples
        return None


@dataclass(frozen=True, slots=True)
class TruthLine:
    """One turn, as a line of the truth log; every `*_ns` is `time.perf_counter_ns`.

    Attributes:
        tag: The client's name for its session.
        session: Number of the session within the server, from 1.
        turn: Number of the turn within the session, from 1.
        user_end_ns: The user's end of speech.
        first_packet_ns: Send of the first packet of the reply; null without one.
        first_audible_ns: When a listener hears the first audible sample; null without one.
        last_packet_ns: Send of the last packet.
        reply_samples: Samples sent.
        reply_rate: Samples a second of them.
        outcome: How the reply ended.
    """

    tag: str
    session: int
    turn: int
    user_end_ns: int
    first_packet_ns: int | None
    first_audible_ns: int | None
    last_packet_ns: int | None
    reply_samples: int
    reply_rate: int
    outcome: Outcome


class TruthLog:
    """Appends whole lines to a file, each flushed by the write itself."""

    def __init__(self, path: Path) -> None:
        """Open the file now, so that a wrong path is told before anything is served.

        Raises:
            UserError: If it cannot be written.
        """
        with disk(path):
            path.open("ab").close()
        self._lines = Appender(path)

    def write(self, line: TruthLine) -> None:
        """Append one line.

        Raises:
            UserError: If the disk is full or may no longer be written.
        """
        self._lines.append(asdict(line))

    def close(self) -> None:
        """Close the file."""
        self._lines.close()
