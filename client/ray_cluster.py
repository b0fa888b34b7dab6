"""A Ray cluster as a run uses it: reached in bounded time, its nodes, and who runs on them."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from voxmeter.client import affinity
from voxmeter.client.terminal import printable
from voxmeter.endpoints.errors import MissingExtraError, UserError

STREAMS = "voxmeter_stream"
"""Custom resource of the nodes that stream, where a cluster tells them from those that score."""

STARTED_S = 120.0
"""How long nodes may take to give a processor to an actor."""

_LOCAL = "local"
_CLIENT = "ray://"
_REACHED_S = 5.0
_ANSWERED_S = 30.0
_STORE_BYTES = 100 * 2**20  # results are taken as they come: a local store stays small
_CURE = (
    "see that the cluster is up (ray status), and give local, auto, HOST:PORT or ray://HOST:PORT"
)


@dataclass(frozen=True, slots=True)
class Node:
    """One machine of a cluster, or one node of several on a machine.

    Attributes:
        id: Ray's name for it.
        host: The machine's name.
        cpus: How many processors Ray may give away there.
        gpus: Likewise.
        streams: Whether a streaming worker runs there.
        number: Which of the streaming nodes of its machine it is, from 0.
        of: How many that machine has; 0 where it only transcribes.
        marked: Whether it streams because it has the resource `voxmeter_stream`.
    """

    id: str
    host: str
    cpus: int
    gpus: int
    streams: bool
    number: int = 0
    of: int = 1
    marked: bool = False


class LostError(Exception):
    """An actor, or the node that it ran on, is gone; the text is Ray's reason in one line."""


class NotStartedError(LostError):
    """An actor did not answer in time: nothing gave it what it needs to run."""


@contextmanager
def connected(address: str) -> Iterator[None]:
    """Reach a cluster, or start one on this machine that ends with the block.

    Args:
        address: `local` for this machine alone, `auto` for the cluster that runs here,
            `HOST:PORT` of one that this machine belongs to, or `ray://HOST:PORT`.

    Raises:
        MissingExtraError: If Ray is not installed.
        UserError: If there is no cluster within about half a minute.
    """
    _refuse_wrong(address)
    _prepare_environment(local=address == _LOCAL)
    if find_spec("ray") is None:
        raise MissingExtraError("--ray", "ray", "ray")
    _refuse_unreachable(address)
    import ray

    logging.getLogger("ray").setLevel(logging.CRITICAL)  # what matters is told by us
    with tempfile.TemporaryDirectory(
        prefix="vm-ray-", dir=_short_folder(), ignore_cleanup_errors=True
    ) as temporary:
        try:
            _start(ray, address, temporary)
            yield
        finally:
            ray.shutdown()


def nodes() -> list[Node]:
    """Return the living nodes of the cluster, in the order of their names."""
    import ray

    untyped: Any = ray
    rows = sorted((row for row in untyped.nodes() if row["Alive"]), key=lambda row: row["NodeID"])
    marked = any(row["Resources"].get(STREAMS) for row in rows)
    chosen = {
        row["NodeID"]
        for row in rows
        if (row["Resources"].get(STREAMS) if marked else row["Resources"].get("CPU", 0) >= 1)
    }
    of = Counter(row["NodeManagerHostname"] for row in rows if row["NodeID"] in chosen)
    numbers: Counter[str] = Counter()
    found = []
    for row in rows:
        host, streams = row["NodeManagerHostname"], row["NodeID"] in chosen
        found.append(
            Node(
                id=row["NodeID"],
                host=host,
                cpus=int(row["Resources"].get("CPU", 0)),
                gpus=int(row["Resources"].get("GPU", 0)),
                streams=streams,
                number=numbers[host],
                of=of[host],
                marked=marked,
            )
        )
        numbers[host] += streams
    return found


def actor(
    node: Node,
    kind: type,
    *args: object,
    gpus: int = 0,
    mark: bool = False,
    threads: int = 1,
    **named: object,
) -> Any:  # noqa: ANN401 - a handle of Ray's
    """Start an actor on a node; it holds one processor of it for as long as it lives.

    Args:
        node: Where; it runs nowhere else.
        kind: A class of a module of ours.
        *args: What it is made with. They must hold no secret: Ray keeps them.
        gpus: How many of them it holds.
        mark: Whether it takes one of the node's `voxmeter_stream`.
        threads: How many of its methods run at a time.
        **named: As `args`.
    """
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(node.id, soft=False)
    return (
        ray.remote(kind)
        .options(
            num_cpus=min(1, node.cpus),
            num_gpus=gpus,
            resources={STREAMS: 1} if mark else None,
            max_restarts=0,
            max_concurrency=threads,
            scheduling_strategy=here,
        )
        .remote(*args, **named)
    )


def ended(handle: Any) -> None:  # noqa: ANN401 - as above
    """End an actor at once."""
    import ray

    with suppress(ray.exceptions.RayError, ValueError):  # it is gone, or so is the cluster
        ray.kill(handle, no_restart=True)


def answer(reference: Any, limit_s: float | None = None) -> Any:  # noqa: ANN401 - as above
    """Wait for what an actor was asked for.

    Args:
        reference: What its method returned here.
        limit_s: How long at most; None without a limit.

    Raises:
        NotStartedError: If the limit is over.
        LostError: If the actor is gone.
        Exception: What its method raised, without what Ray wraps it in.
    """
    import ray

    try:
        return ray.get(reference, timeout=limit_s)
    except ray.exceptions.RayTaskError as error:
        raise cause(error) from None
    except ray.exceptions.GetTimeoutError:
        raise NotStartedError(f"no answer within {limit_s:.0f} s") from None
    except ray.exceptions.RayError as error:
        raise LostError(str(error).strip().split("\n")[0][:200]) from None


def awaited(references: Iterable[Any], limit_s: float) -> None:
    """Wait until actors have done something, or are gone; no longer than the limit."""
    import ray

    if known := list(references):
        with suppress(ray.exceptions.RayError):
            ray.wait(known, num_returns=len(known), timeout=limit_s)


def cause(error: BaseException) -> BaseException:
    """Return what went wrong in an actor, without what Ray wraps it in."""
    inner = getattr(error, "cause", None)
    return inner if isinstance(inner, BaseException) else error


def _refuse_wrong(address: str) -> None:
    if address in {_LOCAL, "auto"}:
        return
    if not re.fullmatch(r"(ray://)?(\[[0-9a-fA-F:]+\]|[A-Za-z0-9_.-]+):[0-9]{1,5}", address):
        cure = "give local, auto, HOST:PORT or ray://HOST:PORT"
        raise UserError("--ray", f"{printable(address, 60)!r} is no address", cure)


def _prepare_environment(*, local: bool) -> None:
    """Set what Ray reads when it is imported, before it is."""
    quiet = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # it would put the environment into what Ray shows
    }
    if local:
        quiet["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # the name misleads: loopback alone
    for name, value in quiet.items():
        os.environ.setdefault(name, value)


def _refuse_unreachable(address: str) -> None:
    """Ray itself tries for over a minute, then ends the process."""
    if address in {_LOCAL, "auto"}:
        return
    host, _, port = address.removeprefix(_CLIENT).rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _REACHED_S).close()
    except (OSError, OverflowError) as error:
        found = f"nobody answers there: {getattr(error, 'strerror', None) or error}"
        raise UserError(f"--ray {address}", found, _CURE) from None
    if address.startswith(_CLIENT):
        return
    command = [sys.executable, "-m", "ray.scripts.scripts", "status", "--address", address]
    try:
        status = subprocess.run(  # noqa: S603 - our own interpreter
            command, capture_output=True, timeout=_ANSWERED_S, check=False
        )
    except subprocess.TimeoutExpired:
        found = f"is no Ray cluster, or did not answer within {_ANSWERED_S:.0f} s"
        raise UserError(f"--ray {address}", found, _CURE) from None
    if status.returncode:
        raise UserError(f"--ray {address}", "is no Ray cluster of this version", _CURE)


def _start(ray: Any, address: str, temporary: str) -> None:  # noqa: ANN401 - the module
    alone: dict[str, Any] = {}
    if address == _LOCAL:
        alone = {
            "num_cpus": len(affinity.allowed()) or os.cpu_count(),
            "include_dashboard": False,
            "object_store_memory": _STORE_BYTES,
            "_temp_dir": temporary,
        }
    on_terminate = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(
            address=address,
            namespace="voxmeter",
            log_to_driver=False,
            configure_logging=False,
            **alone,
        )
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        said = printable(str(error).strip().split("\n")[0].partition(". ")[0], 200)
        raise UserError(f"--ray {address}", said, _CURE) from None
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, on_terminate)  # Ray's own would end us without a word


def _short_folder() -> str | None:
    """Return where Ray's sockets go: their names may have about a hundred characters."""
    return "/tmp" if os.path.isdir("/tmp") else None  # noqa: PTH112, S108 - a folder of our own in it
