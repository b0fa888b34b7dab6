"""An endpoint of bench.toml made ready: where it is, how it speaks, how long we wait."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, cast
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from voxmeter.client.capture import Capture, Utterance
from voxmeter.client.lag import LoopMonitor
from voxmeter.client.session import converse
from voxmeter.client.speaking import Ask, History, Patience
from voxmeter.client.transport import Transport, TransportSettings
from voxmeter.endpoints import catalog
from voxmeter.endpoints.codec import Address, Asked, Codec, Settings, Traits
from voxmeter.endpoints.events import Event
from voxmeter.endpoints.kind import load

_TAG = "{session_tag}"


@dataclass(frozen=True, slots=True)
class Target:
    """One endpoint, ready for any number of sessions.

    Attributes:
        name: Its name in bench.toml.
        kind: Name of its protocol in the catalog.
        url: Where it is; `{session_tag}` and an empty `tag=` are filled in for each session.
        settings: What every session is to be.
        wire: What its transport is told.
        patience: Its time-outs.
        headers: Extra headers, with secrets.
        api_key: Its key.
        commit_after_ms: Wait between the last voiced sample and the commit or request.
        pacing: `fast` sends without waiting; no latency can be read from it.
        carrier: Makes transports that share something; None where each stands alone.
    """

    name: str
    kind: str
    url: str
    settings: Settings = field(default_factory=Settings)
    wire: TransportSettings = field(default_factory=TransportSettings)
    patience: Patience = field(default_factory=Patience)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    api_key: str | None = field(default=None, repr=False)
    commit_after_ms: int = 0
    pacing: Literal["real-time", "fast"] = "real-time"
    carrier: Callable[[], Transport] | None = field(default=None, repr=False)

    def codec(self, tag: str = "", asked: Asked | None = None, lane: int = 0) -> Codec:
        """Return a fresh codec for one session."""
        make = cast("Callable[[Settings], Codec]", load(catalog.find(self.kind).codec))
        return make(replace(self.settings, session_tag=tag, asked=asked, lane=lane))

    def transport(self) -> Transport:
        """Return a fresh transport for one session."""
        if self.carrier is not None:
            return self.carrier()
        kind = catalog.find(self.kind)
        make = cast("Callable[[TransportSettings], Transport]", load(kind.transport))
        return make(self.wire)

    def traits(self) -> Traits:
        """Return what is known of the protocol before it speaks."""
        return self.codec().traits

    def address(self, codec: Codec, tag: str) -> Address:
        """Return where one session connects."""
        address = codec.address(_tagged(self.url, tag), self.api_key)
        extra = {name: value.replace(_TAG, tag) for name, value in self.headers.items()}
        return replace(address, headers={**address.headers, **extra})


async def attempt(
    target: Target,
    question: Callable[[int], Utterance],
    *,
    tag: str = "",
    text: str = "",
    history: History = (),
    asked: Asked | None = None,
    stagger_ns: int = 0,
    lane: int = 0,
    monitor: LoopMonitor | None = None,
    listen: Callable[[Event], None] = lambda _: None,
) -> Capture:
    """Ask one question in a session of its own.

    Args:
        target: Whom to ask.
        question: Returns the utterance at a rate, samples a second; called off the event loop.
        tag: Our name for the session.
        text: Text that goes with the audio.
        history: Earlier turns, for protocols that carry them.
        asked: Which question of which suite it is; only answers made elsewhere need it.
        stagger_ns: Delay of the first frame, so that sessions side by side do not send in step.
        lane: Which of the sessions side by side this is, from 0.
        monitor: A running loop monitor.
        listen: Called with every event as it comes.
    """
    tag = tag or new_tag()
    codec = target.codec(tag, asked, lane)
    ask = Ask(
        question,
        history,
        text=text,
        commit_after_ms=target.commit_after_ms,
        pacing=target.pacing,
        stagger_ns=stagger_ns,
        patience=target.patience,
    )
    address = target.address(codec, tag)
    return await converse(codec, target.transport(), address, ask, monitor=monitor, listen=listen)


def new_tag() -> str:
    """Return a name for one session, unlike any other."""
    return secrets.token_hex(8)


def _tagged(url: str, tag: str) -> str:
    parts = urlsplit(url.replace(_TAG, quote(tag)).replace(quote(_TAG), quote(tag)))
    query = parse_qsl(parts.query, keep_blank_values=True)
    if ("tag", "") not in query:
        return urlunsplit(parts)
    filled = [(name, tag if (name, value) == ("tag", "") else value) for name, value in query]
    return urlunsplit(parts._replace(query=urlencode(filled)))
