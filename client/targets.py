"""From an `[[endpoint]]` table to a target: keys from the environment, a server of ours started."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import urlencode

from voxmeter.client.access import access
from voxmeter.client.builtin import serving
from voxmeter.client.speaking import MOST_MIB, Patience
from voxmeter.client.target import Target
from voxmeter.client.terminal import printable
from voxmeter.client.transport import Launch, Pool, TransportSettings
from voxmeter.endpoints import catalog
from voxmeter.endpoints.codec import Settings
from voxmeter.endpoints.kind import load

if TYPE_CHECKING:
    from voxmeter.client.bench import Bench, Endpoint


def target(bench: Bench, endpoint: Endpoint, stack: ExitStack) -> Target:
    """Return an endpoint ready to be asked.

    Args:
        bench: The bench it stands in.
        endpoint: Its table.
        stack: Ends what is started for it: the server of `builtin`, its program.

    Raises:
        UserError: If a key is missing from the environment, our own server does not start, or what
            the table names is not on this machine.
    """
    reach = access(endpoint, bench.source)
    url = reach.url or ""
    if endpoint.builtin is not None:
        options = ["--voice", endpoint.voice] if endpoint.voice else []
        url = stack.enter_context(serving(endpoint.builtin, kind=endpoint.kind, options=options))
        if endpoint.builtin.name == "metronome":
            url += "?" + urlencode([*endpoint.builtin.query, ("tag", "")])
    shared = pool(bench, endpoint)
    timed = catalog.find(endpoint.kind).timed
    return Target(
        name=endpoint.name,
        kind=endpoint.kind,
        url=url,
        settings=settings(endpoint),
        wire=_wire(endpoint),
        patience=Patience(
            connect_timeout_s=endpoint.connect_timeout_s,
            first_reply_timeout_s=endpoint.first_reply_timeout_s,
            reply_limit_s=endpoint.reply_limit_s,
            greeting_timeout_s=endpoint.greeting_timeout_s,
            drain_ms=endpoint.drain_ms,
            quiet_ms=endpoint.quiet_ms,
            most_mib=max(MOST_MIB, 2 * endpoint.max_message_mib),
        ),
        headers=reach.headers,
        api_key=reach.api_key,
        commit_after_ms=endpoint.commit_after_ms,
        pacing=bench.run.pacing if timed else "fast",
        carrier=None if shared is None else stack.enter_context(shared),
    )


def pool(bench: Bench, endpoint: Endpoint) -> Pool | None:
    """Return what the sessions of an endpoint will share; nothing is started until it is entered.

    Raises:
        UserError: If what the endpoint's table names is not there.
    """
    kind = catalog.find(endpoint.kind)
    if kind.pool is None:
        return None
    make = cast("Callable[[Launch], Pool]", load(kind.pool))
    launch = Launch(
        place=f'{bench.source}: [[endpoint]] "{printable(endpoint.name)}"',
        folder=Path(endpoint.folder) if endpoint.folder else bench.folder,
        command=endpoint.command or (),
        options=endpoint.options,
        connect_timeout_s=endpoint.connect_timeout_s,
        wire=_wire(endpoint),
        settings=settings(endpoint),
    )
    return make(launch)


def _wire(endpoint: Endpoint) -> TransportSettings:
    return TransportSettings(
        insecure=endpoint.insecure,
        ca_file=endpoint.ca_file or "",
        max_message_mib=endpoint.max_message_mib,
        use_proxy=endpoint.use_proxy,
    )


def settings(endpoint: Endpoint) -> Settings:
    """Return what every session with an endpoint is to be."""
    return Settings(
        model=endpoint.model,
        instructions=endpoint.instructions,
        voice=endpoint.voice,
        temperature=endpoint.temperature,
        input_rate=endpoint.input_rate,
        output_rate=endpoint.output_rate,
        turn_end=endpoint.turn_end,
        options=endpoint.options,
    )


def instructions_hash(endpoint: Endpoint) -> str:
    """Return the sha256 of an endpoint's instructions: two runs can be told apart by it."""
    return hashlib.sha256(endpoint.instructions.encode("utf-8", "surrogatepass")).hexdigest()
