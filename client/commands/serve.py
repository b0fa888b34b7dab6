"""`voxmeter serve`: one of the built-in endpoints, until it is told to stop."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from voxmeter.client.builtin_name import Builtin
    from voxmeter.client.servers.brain import Brain
    from voxmeter.client.servers.door import HostSettings
    from voxmeter.endpoints.codec import Address
    from voxmeter.endpoints.kind import Kind
    from voxmeter.endpoints.serving import ServerCodec

    Serving = AbstractAsyncContextManager[str]

_CASCADE_ONLY = ("llm_url", "llm_model", "llm_key_env")
_DUPLEX_DELAY_MS = "500"  # quiet, two frames of 80 ms, and some room
_SWITCH_S = 0.0005  # a thread that searches audio must not hold up the event loop for long


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what is served, where, to whom, and by which model."""
    parser.add_argument(
        "server",
        metavar="cascade|metronome|echo",
        help='what answers; may carry defaults: "metronome?delay_ms=300&jitter_ms=20"',
    )
    parser.add_argument(
        "query", nargs="?", default="", help='the defaults, in any place: "?delay_ms=300"'
    )
    parser.add_argument(
        "--protocol",
        default="openai-realtime",
        metavar="NAME",
        help="wire (default %(default)s); voxmeter endpoints marks those that are served",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address (default %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port (default: a free one)")
    parser.add_argument(
        "--broker",
        metavar="URL",
        help="mqtt:// or mqtts:// URL, for --protocol hermes (default: a mosquitto of its own)",
    )
    parser.add_argument("--broker-user", metavar="NAME", help="user name for that broker")
    parser.add_argument(
        "--broker-password-env", metavar="VAR", help="environment variable with the password"
    )
    parser.add_argument("--broker-ca", metavar="FILE", help="PEM file of its authority")
    parser.add_argument("--voice", metavar="NAME", help="hibari, piper or espeak-ng")
    parser.add_argument(
        "--token-env",
        metavar="VAR",
        help="environment variable with the token that clients must show",
    )
    parser.add_argument("--truth", metavar="FILE", help="append what each turn really was, as JSON")
    parser.add_argument("--llm-url", metavar="URL", help="base URL of an OpenAI-compatible LLM")
    parser.add_argument("--llm-model", metavar="NAME", help="its model")
    parser.add_argument("--llm-key-env", metavar="VAR", help="environment variable with its key")
    parser.add_argument(
        "--until-stdin-closes",
        action="store_true",
        help="stop when standard input ends: the server dies with whoever started it",
    )


def run(args: argparse.Namespace) -> int:
    """Serve until a signal or, where asked for, the end of standard input.

    Returns:
        130 after a signal, 0 after the end of standard input.

    Raises:
        UserError: For any option that cannot be, with what to do about it.
    """
    import sys
    from pathlib import Path
    from typing import cast

    from voxmeter.client.servers.truth import TruthLog
    from voxmeter.endpoints.kind import load

    builtin = _builtin(args)
    kind = _kind(args.protocol)
    codec = cast("Callable[[], ServerCodec]", load(str(kind.server)))
    settings = _settings(args, kind, _defaults(codec(), builtin))
    brain = _brain(args, builtin)
    _check_defaults(brain, settings)
    truth = TruthLog(Path(args.truth)) if args.truth else None
    brain.load()
    host = cast("Callable[..., Serving]", load(kind.host))
    sys.setswitchinterval(_SWITCH_S)
    try:
        serving = host(brain, codec, settings, truth=truth)
        return _serve(serving, until_stdin=args.until_stdin_closes)
    finally:
        if truth is not None:
            truth.close()


def _serve(serving: Serving, *, until_stdin: bool) -> int:
    import asyncio
    import gc

    from voxmeter.client.event_loop import new_loop
    from voxmeter.client.servers.stopping import Stop

    async def serve() -> int:
        stop = Stop(until_stdin=until_stdin)
        async with serving as url:
            print(f"ready {url}", flush=True)
            return await stop.wait()

    gc.collect()
    gc.freeze()  # what was loaded stays: later collections need not look at it
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(serve())


def _builtin(args: argparse.Namespace) -> Builtin:
    from voxmeter.client.builtin_name import parse_builtin
    from voxmeter.endpoints.errors import UserError

    server, query = args.server, args.query
    if server.startswith("?"):  # the query may stand in any place
        server, query = query, server
    query = query.removeprefix("?")
    mark = "&" if "?" in server else "?"
    try:
        builtin = parse_builtin(f"{server}{mark}{query}" if query else server)
    except ValueError as error:
        found, cure = error.args
        raise UserError("voxmeter serve", found, cure) from None
    for option in ("voice",) if builtin.name == "echo" else ():
        _refuse(args, builtin, option)
    for option in _CASCADE_ONLY if builtin.name != "cascade" else ():
        _refuse(args, builtin, option)
    return builtin


def _refuse(args: argparse.Namespace, builtin: Builtin, option: str) -> None:
    from voxmeter.endpoints.errors import UserError

    if getattr(args, option) is not None:
        name = f"--{option.replace('_', '-')}"
        raise UserError(
            f"voxmeter serve {builtin.name} {name}",
            f"{builtin.name} takes no such option",
            "leave it out",
        )


def _defaults(codec: ServerCodec, builtin: Builtin) -> dict[str, str]:
    """Return the query that sessions without one get; see that a full-duplex server can speak.

    Raises:
        MissingExtraError: If what encodes its sound is not installed.
    """
    from voxmeter.endpoints.serving import FullDuplexCodec

    query = dict(builtin.query)
    if isinstance(codec, FullDuplexCodec):
        from voxmeter.client.encodings import encoder

        encoder(codec.output_encoding, codec.output_rate)
        if builtin.name == "metronome":
            query.setdefault("delay_ms", _DUPLEX_DELAY_MS)
    return query


def _settings(args: argparse.Namespace, kind: Kind, query: dict[str, str]) -> HostSettings:
    from voxmeter.client.servers.door import HostSettings
    from voxmeter.endpoints.errors import UserError

    if not 0 <= args.port <= 65535:
        raise UserError(f"--port {args.port}", "is not a port", "use 0 to 65535")
    token = _secret("--token-env", args.token_env) if args.token_env else ""
    return HostSettings(
        args.host,
        args.port,
        kind.path,
        token,
        query,
        client_keys=frozenset(kind.query_keys),
        key_names=kind.key_names,
        broker=_broker(args, kind),
        ca_file=args.broker_ca or "",
    )


def _broker(args: argparse.Namespace, kind: Kind) -> Address | None:
    """Return the broker that was named."""
    from voxmeter.endpoints.codec import Address
    from voxmeter.endpoints.errors import UserError
    from voxmeter.endpoints.kind import MQTT_HOST

    if args.broker is None:
        return None
    if kind.host != MQTT_HOST:
        cure = "leave it out, or use --protocol hermes"
        raise UserError("--broker", f"{kind.name} is not spoken over MQTT", cure)
    shown = {"username": args.broker_user} if args.broker_user else {}
    if args.broker_password_env:
        shown["password"] = _secret("--broker-password-env", args.broker_password_env)
    return Address(args.broker, shown)


def _secret(option: str, variable: str) -> str:
    import os

    from voxmeter.client import redaction
    from voxmeter.endpoints.errors import UserError

    value = os.environ.get(variable, "").strip()
    if not value:
        raise UserError(f"{option} {variable}", "is not set", f"export {variable}=...")
    redaction.remember(value)
    return value


def _kind(protocol: str) -> Kind:
    """Return a protocol that can be served.

    Raises:
        UserError: If there is none of this name, or it has no server side.
    """
    from voxmeter.endpoints import catalog
    from voxmeter.endpoints.errors import UserError

    kind = catalog.find(protocol, "--protocol")
    if kind.server is None:
        cure = f"use one of: {', '.join(catalog.served())}"
        raise UserError(f"--protocol {protocol}", "has no server side", cure)
    return kind


def _brain(args: argparse.Namespace, builtin: Builtin) -> Brain:
    if builtin.name == "echo":
        from voxmeter.client.servers.echo import Echo

        return Echo()
    if builtin.name == "metronome":
        from voxmeter.client.servers.metronome import Metronome, voice

        return Metronome(voice(args.voice or "hibari"), dict(builtin.query))
    from voxmeter.client.servers.cascade import cascade

    return cascade(args)


def _check_defaults(brain: Brain, settings: HostSettings) -> None:
    """Refuse defaults that no session could be opened with, but for a fault that was asked for."""
    from voxmeter.client.servers.brain import RefusedError
    from voxmeter.endpoints.errors import UserError

    try:
        brain.admit(settings.query)
    except RefusedError as refused:
        if refused.status < 500:
            raise UserError("voxmeter serve", refused.reason, "correct the query") from None
