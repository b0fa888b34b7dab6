"""Feeds any bytes to every codec there is: what comes back is events or a `ProtocolError`.

    python tests/fuzz_codecs.py CORPUS -max_total_time=60

runs it under atheris, which must be installed, with the recordings as seeds; `make fuzz` does that.
`test_fuzz_codecs.py` runs the seeds alone, whole and cut, in every test run.

An input is a script: which codec, how it closes turns and with which preset, then messages and
verbs, one record each: a byte that says what it is, two with the length of its payload (big-endian)
and the payload.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

from voxmeter.endpoints import catalog, preset
from voxmeter.endpoints.codec import (
    Binary,
    Codec,
    Ended,
    Message,
    Published,
    Request,
    Response,
    Settings,
    Step,
    Text,
    TurnEnd,
)
from voxmeter.endpoints.errors import ProtocolError, UserError
from voxmeter.endpoints.events import Fault, ReplyAudio
from voxmeter.endpoints.kind import load
from voxmeter.endpoints.serving import ClientLeft, ServerCodec

RECORDINGS = Path(__file__).parent / "recordings"
TEXT, BINARY, RESPONSE, ENDED, REQUEST, AUDIO, END_TURN, CANCEL, PLAYED, PUBLISHED = range(10)
_LONGEST = 0xFFFF
_MESSAGES = 200  # of one script; more find nothing new
_TURN_ENDS: tuple[TurnEnd | None, ...] = (None, "silence", "commit", "request")


@dataclass(frozen=True, slots=True)
class Side:
    """One codec of the catalog: a kind's client's side, or its server's."""

    name: str
    client: Callable[[Settings], Codec] | None = None
    server: Callable[[], ServerCodec] | None = None


def sides() -> Sequence[Side]:
    """Return every codec there is, in the catalog's order."""
    found = []
    for name in catalog.KINDS:
        kind = catalog.find(name)
        found.append(Side(name, client=cast("Callable[[Settings], Codec]", load(kind.codec))))
        if kind.server is not None:
            make = cast("Callable[[], ServerCodec]", load(kind.server))
            found.append(Side(f"{name} server", server=make))
    return found


def run(script: bytes, every: Sequence[Side]) -> None:
    """Play one script; anything but a `ProtocolError` that comes out of it is a fault."""
    if len(script) < 2:
        return
    side = every[script[0] % len(every)]
    if side.server is not None:
        _serve(side.server(), script[2:])
    elif side.client is not None:
        _converse(side.client, _settings(side.name, script[1]), script[2:])


def _settings(kind: str, choice: int) -> Sequence[Settings]:
    """Return what a codec may be made with: later ones are for kinds that refuse the first."""
    number, end = divmod(choice, len(_TURN_ENDS))
    known = [{}, *(one for one in _presets() if one["kind"] == kind)]
    table = known[number % len(known)]
    options = table.get("options", {})
    turn_end = _TURN_ENDS[end] or table.get("turn_end")
    wanted = Settings(
        model=table.get("model", ""),
        instructions="Be brief.",
        input_rate=table.get("input_rate"),
        output_rate=table.get("output_rate"),
        turn_end=turn_end,
        options=options,
    )
    return wanted, replace(wanted, instructions="", turn_end=None), Settings()


@cache
def _presets() -> Sequence[Mapping[str, Any]]:
    return [preset.read(name).endpoint for name in preset.names()]


def _converse(
    make: Callable[[Settings], Codec], settings: Sequence[Settings], script: bytes
) -> None:
    for wanted in settings:
        try:
            codec = make(wanted)
        except UserError:
            continue  # a kind that takes no instructions, or cannot close turns this way
        break
    else:
        return
    _sound(codec.open())
    for what, payload in records(script):
        try:
            _sound(_step(codec, what, payload))
        except ProtocolError:
            return  # the driver ends the session
    _sound(codec.close())


def _step(codec: Codec, what: int, payload: bytes) -> Step:
    match what:
        case 5:
            return codec.audio(payload)
        case 6:
            return codec.end_turn()
        case 7:
            return codec.cancel(len(payload))
        case 8:
            return codec.played("r")
        case _:
            return codec.receive(message(what, payload))


def _serve(codec: ServerCodec, script: bytes) -> None:
    codec.open()
    asked = False  # a host speaks only after it was spoken to
    for what, payload in records(script):
        try:
            if what < AUDIO or what == PUBLISHED:
                events = codec.receive(message(what, payload)).events
                if any(isinstance(event, ClientLeft) for event in events):
                    return
                asked = asked or bool(events)
            elif asked:
                _say(codec, what, payload)
        except ProtocolError:
            return


def _say(codec: ServerCodec, what: int, payload: bytes) -> None:
    match what:
        case 5:
            codec.reply_started()
            codec.reply_text(payload.decode("utf-8", "replace"))
            codec.reply_audio(payload)
        case 6:
            codec.reply_ended("completed")
        case 7:
            codec.fault("server", "code", "words")
        case _:
            codec.speech_started(0)
            codec.speech_stopped(1)


def _sound(step: Step) -> None:
    """Check what every event must keep, whatever the peer sent."""
    for event in step.events:
        if isinstance(event, ReplyAudio):
            assert event.rate > 0, event
        if isinstance(event, Fault):
            assert event.message, event


def message(what: int, payload: bytes) -> Message:
    """Return the message of one record; every payload is one."""
    match what:
        case 0:
            return Text(payload.decode("utf-8", "surrogateescape"))
        case 2:
            kind, _, status = payload.decode("latin-1").partition("\n")
            return Response(200 + len(status) % 100, {"content-type": kind})
        case 3:
            code = int.from_bytes(payload[:2], "big")
            return Ended(code or None, payload[2:].decode("utf-8", "replace"))
        case 4:
            return Request(payload, {"content-type": "audio/wav"}, path="/")
        case 9:
            topic, _, rest = payload.partition(b"\n")
            return Published(topic.decode("utf-8", "replace"), rest)
        case _:
            return Binary(payload)


def records(script: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the records of a script; the last may be cut."""
    place = 0
    for _ in range(_MESSAGES):
        if place + 3 > len(script):
            return
        length = int.from_bytes(script[place + 1 : place + 3], "big")
        yield script[place] % 10, script[place + 3 : place + 3 + length]
        place += 3 + length


def seeds(every: Sequence[Side]) -> Iterator[tuple[str, bytes]]:
    """Yield a name and a script for each recording that the tests have."""
    names = {side.name.replace("-", "_"): number for number, side in enumerate(every)}
    for path in sorted(RECORDINGS.glob("*/*.jsonl")):
        number = names.get(path.parent.name.replace("-", "_"))
        if number is not None:
            rows = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
            yield f"{path.parent.name}_{path.stem}", _script(number, rows, path.parent)


def _script(number: int, rows: Sequence[Mapping[str, Any]], folder: Path) -> bytes:
    settings = rows[0].get("settings", {})
    wanted = settings.get("turn_end")
    script = bytes([number, _TURN_ENDS.index(wanted) if wanted in _TURN_ENDS else 0])
    for row in rows:
        for what, payload in _of_row(row, folder):
            script += bytes([what]) + len(payload[:_LONGEST]).to_bytes(2, "big")
            script += payload[:_LONGEST]
    return script


def _of_row(row: Mapping[str, Any], folder: Path) -> Iterator[tuple[int, bytes]]:
    verbs = {"audio": AUDIO, "end_turn": END_TURN, "cancel": CANCEL, "played": PLAYED}
    if row.get("do") in verbs:
        yield verbs[row["do"]], b"\x00\x01"
    elif "response" in row:
        yield RESPONSE, str(row["response"][1].get("content-type", "")).encode()
    elif "on" in row:
        inner = row.get("text", "")
        whole = inner if isinstance(inner, str) else json.dumps(inner)
        payload = bytes.fromhex(row["hex"]) if "hex" in row else whole.encode()
        yield PUBLISHED, row["on"].encode() + b"\n" + payload
    elif "ended" in row:
        code, reason = (*row["ended"], "")[:2]
        yield ENDED, (code or 0).to_bytes(2, "big") + str(reason).encode()
    elif "hex" in row:
        yield BINARY, bytes.fromhex(row["hex"])
    elif "file" in row:
        yield BINARY, (folder / row["file"]).read_bytes()
    elif "text" in row:
        text = row["text"]
        whole = text if isinstance(text, str) else json.dumps(text)
        yield TEXT, whole.encode("utf-8", "surrogatepass")
        yield BINARY, whole.encode("utf-8", "surrogatepass")


def _main() -> None:
    import atheris

    every = sides()
    corpus = Path(sys.argv[1])
    corpus.mkdir(parents=True, exist_ok=True)
    for name, script in seeds(every):
        (corpus / name).write_bytes(script)
    atheris.instrument_all()
    atheris.Setup(sys.argv, lambda data: run(data, every))
    atheris.Fuzz()


if __name__ == "__main__":
    _main()
