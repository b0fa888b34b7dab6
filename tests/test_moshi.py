"""The client codec of Moshi against sessions written down line by line, and against anything.

A line of a recording is one

    {"settings": {...}}                           the session's settings; the first line, if any
    {"do": "audio", "with": [{"hex": "00"}]}      a verb of the codec; "sends" the bytes it leads to
    {"from": "server", "hex": "0248"}             one message; "events" what it stands for
    {"from": "server", "text": "..."}             a text message, which the protocol has not
    {"from": "server", "ended": [1000, ""]}       the peer's close
    {"note": "..."}                               for the reader, and where the recording is from

"events" have their class under "is" and the fields that are compared, audio as hex; "error" is a
part of a `ProtocolError`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.endpoints.codec import Binary, Ended, Json, Message, Settings, Step, Text, Turn
from voxmeter.endpoints.errors import ProtocolError, UserError
from voxmeter.endpoints.events import Event, Ready, ReplyText
from voxmeter.endpoints.moshi import Client, client
from voxmeter.endpoints.moshi_options import OPTIONS, QUERY_KEYS

RECORDINGS = sorted((Path(__file__).parent / "recordings" / "moshi").glob("*.jsonl"))
PLEX: dict[str, Json] = {"dialect": "personaplex"}


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_a_recorded_session_leads_to_what_is_written_beside_it(path: Path) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    settings = rows.pop(0)["settings"] if "settings" in rows[0] else {}
    codec = client(Settings(**settings))
    for number, row in enumerate(rows, start=1):
        if "note" not in row:
            play(codec, row, f"{path.name}, row {number}: {row}")


def play(codec: Client, row: dict[str, Any], where: str) -> None:
    if "error" in row:
        with pytest.raises(ProtocolError) as raised:
            codec.receive(message_of(row))
        assert row["error"] in str(raised.value), where
        return
    if "do" in row:
        given = [
            bytes.fromhex(one["hex"]) if isinstance(one, dict) else one
            for one in row.get("with", [])
        ]
        step: Step = getattr(codec, row["do"])(*given)
    else:
        step = codec.receive(message_of(row))
    wanted = row.get("events", [])
    assert [told(event, one) for event, one in zip(step.events, wanted, strict=False)] == wanted
    assert len(step.events) == len(wanted), (where, step.events)
    assert [m.data.hex() for m in step.messages if isinstance(m, Binary)] == row.get("sends", [])


def told(event: Event, wanted: dict[str, Any]) -> dict[str, Any]:
    """Return an event as a recording spells it, with the fields that the recording has."""
    found = {name: value for name, value in asdict(event).items() if name in wanted}
    shown = {name: v.hex() if isinstance(v, bytes) else v for name, v in found.items()}
    return {"is": type(event).__name__, **shown}


def message_of(row: dict[str, Any]) -> Message:
    if "ended" in row:
        return Ended(*row["ended"])
    return Text(row["text"]) if "text" in row else Binary(bytes.fromhex(row["hex"]))


def test_our_pages_begin_as_those_of_the_genuine_server_and_its_client() -> None:
    pytest.importorskip("sphn")
    from voxmeter.client.encodings import encoder

    file = Path(__file__).parent / "recordings" / "moshi_py_server_tiny_cpu.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    (ours,) = client(Settings()).audio(encoder("opus", 24_000).encode(bytes(3840))).messages
    assert isinstance(ours, Binary)
    headers = 1 + 47 + 55  # the kind, and the pages with OpusHead and OpusTags
    for side in ("s2c", "c2s"):
        said = next(row for row in rows if row["dir"] == side and row.get("kind") == 1)
        assert ours.data[:headers].hex() == said["hex"][: 2 * headers]
    assert ours.data[headers:].count(b"OggS") == 2


def test_every_message_of_the_genuine_server_holds_80_ms() -> None:
    pytest.importorskip("sphn")
    from voxmeter.client.encodings import decoder

    file = Path(__file__).parent / "recordings" / "moshi" / "captured_bytes_as_pieces.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    said = [
        bytes.fromhex(row["hex"]) for row in rows if row.get("from") == "server" and "hex" in row
    ]
    wire = decoder("opus", 24_000)
    lengths = [len(wire.decode(message[1:])) for message in said if message[0] == 1]
    assert lengths == [1920] * 14


@given(st.lists(st.binary(max_size=64) | st.text(max_size=8), max_size=12))
def test_any_messages_give_events_or_a_protocol_error(messages: list[bytes | str]) -> None:
    codec = client(Settings())
    for data in [*messages, b"\0", *messages]:
        message = Text(data) if isinstance(data, str) else Binary(data)
        try:
            step = codec.receive(message)
        except ProtocolError:
            continue
        assert not step.messages
        for event in step.events:
            json.dumps([str(getattr(event, one.name)) for one in fields(event)])
    assert codec.receive(Ended(1000)).events


@given(st.text(alphabet="aé€😀\n<>x0", max_size=12), st.data())
def test_text_is_whole_again_however_a_server_takes_its_characters_apart(
    text: str, data: st.DataObject
) -> None:
    codec = client(Settings())
    codec.receive(Binary(b"\0"))
    heard: list[Event] = []
    for letter in text:
        if data.draw(st.booleans()):
            pieces = [f"<0x{one:02X}>" for one in letter.encode()]
        else:
            pieces = [letter]
        for piece in pieces:
            heard += codec.receive(Binary(b"\2" + piece.encode())).events
    assert "".join(event.text for event in heard if isinstance(event, ReplyText)) == text


def test_the_session_is_full_duplex_in_opus_at_24_khz() -> None:
    traits = client(Settings()).traits
    assert (traits.input_rate, traits.input_encoding) == (24_000, "opus")
    assert (traits.frame_ms, traits.lead_in_ms) == (80, 240)
    assert traits.full_duplex
    assert (traits.reply_end, traits.latency_kind) == ("quiet", "duplex")
    assert traits.first_speaker == "user"
    options: dict[str, Json] = {"frame_ms": 20, "lead_in_ms": 400, "first_speaker": "endpoint"}
    other = client(Settings(options=options)).traits
    assert (other.frame_ms, other.lead_in_ms, other.first_speaker) == (20, 400, "endpoint")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("ws://h:8998", "ws://h:8998/api/chat"),
        ("wss://h:8998/", "wss://h:8998/api/chat"),
        ("https://h", "wss://h/api/chat"),
        ("http://h/lm?a=1&b=", "ws://h/lm?a=1&b="),
        ("ws://h/api/chat?text_seed=9", "ws://h/api/chat?text_seed=9"),
    ],
)
def test_the_url_gets_the_protocols_path_where_it_has_none(url: str, expected: str) -> None:
    address = client(Settings()).address(url, None)
    assert (address.url, address.headers) == (expected, {})


def test_seeds_and_temperatures_go_into_the_query_unless_it_has_them() -> None:
    options: dict[str, Json] = {"text_seed": 2**64 - 1, "audio_seed": 4, "text_temperature": 0.25}
    codec = client(Settings(temperature=0.7, options=options))
    url = codec.address("ws://h?audio_seed=5", "key")
    assert url.url == (
        "ws://h/api/chat?audio_seed=5&text_temperature=0.25&text_seed=18446744073709551615"
        "&audio_temperature=0.7"
    )
    assert url.headers == {"Authorization": "Bearer key"}


def test_personaplex_gets_both_its_prompts_also_an_empty_one() -> None:
    codec = client(Settings(options={**PLEX, "voice_prompt": "NATF2.pt", "seed": -1}))
    url = codec.address("wss://h", None).url
    assert url == "wss://h/api/chat?voice_prompt=NATF2.pt&seed=-1&text_prompt="
    spoken = Settings(voice="NATM1.pt", instructions="Be kind & brief.", options=PLEX)
    url = client(spoken).address("wss://h", None).url
    assert url.endswith("?voice_prompt=NATM1.pt&text_prompt=Be+kind+%26+brief.")


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"options": {"text_sed": 1}}, "options.text_sed: moshi has no such option; did you mean"),
        ({"options": {"frame_ms": 60}}, "options.frame_ms: 60; use 80, 40 or 20"),
        ({"options": {"frame_ms": True}}, "options.frame_ms: True; use a whole number"),
        (
            {"options": {"lead_in_ms": 80}},
            "options.lead_in_ms: 80; use a whole number from 200 to 60000",
        ),
        (
            {"options": {"pad_mult": 5000}},
            "options.pad_mult: 5000; use a number from -1000 to 1000",
        ),
        ({"options": {"audio_seed": 1.5}}, "options.audio_seed: 1.5; use a whole number"),
        ({"options": {"audio_seed": -1}}, "options.audio_seed: -1; use a whole number from 0 to"),
        ({"options": {"audio_seed": 10**400}}, "options.audio_seed: 1000"),
        ({"options": {"pad_mult": float("nan")}}, "options.pad_mult: nan; use a number"),
        ({"options": {"email": 3}}, "options.email: 3; use a string"),
        ({"options": {"repetition_penalty": 1.1}}, "set repetition_penalty_context"),
        ({"options": {"first_speaker": "me"}}, "options.first_speaker: 'me'; use 'user' or"),
        ({"options": {"seed": 1}}, "options.seed: is for dialect 'personaplex'; leave it out"),
        ({"options": {**PLEX, "text_seed": 1}}, "options.text_seed: is for dialect 'moshi'"),
        ({"options": PLEX}, "options.voice_prompt: is missing"),
        ({"options": PLEX, "voice": "v", "temperature": 1}, "temperature: has no place"),
        ({"instructions": "Be brief."}, "instructions: has no place in this protocol"),
        ({"voice": "joe"}, "voice: has no place in this protocol"),
        ({"input_rate": 16000}, "input_rate: 16000; leave it out: moshi is always at 24000"),
        ({"output_rate": 8000}, "output_rate: 8000; leave it out"),
        ({"turn_end": "commit"}, "turn_end: 'commit', and moshi is full duplex"),
    ],
)
def test_what_no_server_would_do_is_the_users_mistake(settings: dict[str, Any], error: str) -> None:
    with pytest.raises(UserError) as raised:
        client(Settings(**settings))
    assert error in str(raised.value)


def test_verbs_without_a_word_in_the_protocol_say_nothing() -> None:
    codec = client(Settings(model="moshiko"))
    steps = [codec.open(), codec.turn(Turn("user", "hello")), codec.text("hello")]
    steps += [codec.end_turn(), codec.played("r"), codec.cancel(10), codec.close()]
    assert all(step == Step() for step in steps)
    assert codec.receive(Binary(b"\0")).events == [Ready()]


def test_every_query_key_is_an_option_or_one_of_the_web_clients() -> None:
    strangers: Sequence[str] = sorted(QUERY_KEYS - set(OPTIONS))
    assert strangers == ["auth_id", "worker_auth_id"]
