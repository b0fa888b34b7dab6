"""From an `[[endpoint]]` table to a target: keys from the environment, a server of ours started."""

from __future__ import annotations

import hashlib
from contextlib import ExitStack
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from voxmeter.client.access import access
from voxmeter.client.builtin import serving
from voxmeter.client.speaking import Patience
from voxmeter.client.target import Target
from voxmeter.client.transport import TransportSettings
from voxmeter.endpoints.codec import Settings

if TYPE_CHECKING:
    from voxmeter.client.bench import Bench, Endpoint


def target(bench: Bench, endpoint: Endpoint, stack: ExitStack) -> Target:
    """Return an endpoint ready to be asked.

    Args:
        bench: The bench it stands in.
        endpoint: Its table.
        stack: Ends the server that is started for `builtin`.

    Raises:
        UserError: If a key is missing from the environment, or our own server does not start.
    """
    reach = access(endpoint, bench.source)
    url = reach.url or ""
    if endpoint.builtin is not None:
        options = ["--voice", endpoint.voice] if endpoint.voice else []
        url = stack.enter_context(serving(endpoint.builtin, kind=endpoint.kind, options=options))
        if endpoint.builtin.name == "metronome":
            url += "?" + urlencode([*endpoint.builtin.query, ("tag", "")])
    return Target(
        name=endpoint.name,
        kind=endpoint.kind,
        url=url,
        settings=settings(endpoint),
        wire=TransportSettings(
            insecure=endpoint.insecure,
            ca_file=endpoint.ca_file or "",
            max_message_mib=endpoint.max_message_mib,
            use_proxy=endpoint.use_proxy,
        ),
        patience=Patience(
            connect_timeout_s=endpoint.connect_timeout_s,
            first_reply_timeout_s=endpoint.first_reply_timeout_s,
            reply_limit_s=endpoint.reply_limit_s,
            greeting_timeout_s=endpoint.greeting_timeout_s,
            drain_ms=endpoint.drain_ms,
            quiet_ms=endpoint.quiet_ms,
        ),
        headers=reach.headers,
        api_key=reach.api_key,
        commit_after_ms=endpoint.commit_after_ms,
        pacing=bench.run.pacing,
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
