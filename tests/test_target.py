"""An endpoint made ready: tags filled in, codec and transport from the catalog."""

from __future__ import annotations

import pytest
from fakes import ToyCodec, ToyTransport

from voxmeter.client.capture import Utterance
from voxmeter.client.speaking import Patience
from voxmeter.client.target import Target, attempt, new_tag
from voxmeter.client.transport import TransportSettings
from voxmeter.client.websocket import WebSocketTransport
from voxmeter.endpoints.codec import Address, Settings
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.openai_realtime import Client


def target(url: str = "ws://127.0.0.1:1/v1/realtime", **fields: object) -> Target:
    return Target("mine", "openai-realtime", url, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("url", "query"),
    [
        ("ws://h/p?tag=", "tag=T1"),
        ("ws://h/p?delay_ms=300&tag=&x=1", "delay_ms=300&tag=T1&x=1"),
        ("ws://h/p?tag=mine", "tag=mine"),
        ("ws://h/p?s={session_tag}", "s=T1"),
        ("ws://h/p?s=%7Bsession_tag%7D", "s=T1"),
        ("ws://h/p?empty=&tag=", "empty=&tag=T1"),
        ("ws://h/p?text=a%20b%26c&tag=", "text=a+b%26c&tag=T1"),
    ],
)
def test_the_tag_of_a_session_is_filled_in_its_url(url: str, query: str) -> None:
    one = target(url)
    found = one.address(one.codec("T1"), "T1").url
    assert found.partition("?")[2].startswith(query)


def test_a_url_without_a_place_for_a_tag_is_left_as_it_is() -> None:
    one = target("ws://h:1/v1/realtime?model=a%20b&sig=x%2Fy")
    assert "model=a%20b&sig=x%2Fy" in one.address(one.codec(), "T1").url


def test_the_path_may_hold_the_tag_too() -> None:
    one = target("ws://h/{session_tag}/rt")
    assert one.address(one.codec("T1"), "T1").url.startswith("ws://h/T1/rt")


def test_headers_are_added_to_the_protocols_own_and_go_before_them() -> None:
    one = target(headers={"X-Run": "r-{session_tag}", "X-Plain": "p"}, api_key="sk-1")
    found = one.address(one.codec("T1"), "T1").headers
    assert found["X-Run"] == "r-T1"
    assert found["X-Plain"] == "p"
    assert found["Authorization"] == "Bearer sk-1"


def test_secrets_do_not_show_when_a_target_is_printed() -> None:
    shown = repr(target(headers={"X-Key": "secret-header"}, api_key="sk-secret"))
    assert "secret" not in shown


def test_codec_and_transport_are_those_of_the_kind_with_its_settings() -> None:
    one = target(wire=TransportSettings(max_message_mib=3), settings=Settings(turn_end="commit"))
    codec = one.codec("T1")
    assert isinstance(codec, Client)
    assert codec.traits.turn_end == "commit"
    assert one.traits().turn_end == "commit"
    transport = one.transport()
    assert isinstance(transport, WebSocketTransport)
    assert transport._settings.max_message_mib == 3


def test_every_session_has_a_codec_and_a_transport_of_its_own() -> None:  # ST-10
    one = target()
    assert one.codec() is not one.codec()
    assert one.transport() is not one.transport()


def test_an_unknown_kind_is_one_line() -> None:
    with pytest.raises(UserError, match="openai-realtim"):
        Target("mine", "openai-realtim", "ws://h").codec()


def test_tags_are_unlike_each_other_and_fit_anywhere() -> None:
    tags = {new_tag() for _ in range(1000)}
    assert len(tags) == 1000
    assert all(tag.isalnum() and tag.isascii() for tag in tags)


async def test_an_attempt_asks_with_what_the_target_says(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, Address]] = []

    async def play(peer: ToyTransport) -> None:
        peer.say("ready")
        await peer.until(1, "audio")
        peer.say("started r", "sound " + "0040" * 80, "end")

    class Tagged(Target):
        def codec(self, tag: str = "", asked: object = None, lane: int = 0) -> ToyCodec:
            return ToyCodec()

        def transport(self) -> ToyTransport:
            return ToyTransport(play)

        def address(self, codec: object, tag: str) -> Address:
            asked.append((tag, Address(self.url)))
            return asked[-1][1]

    patience = Patience(first_reply_timeout_s=0.2, reply_limit_s=0.3, drain_ms=0)
    one = Tagged("mine", "toy", "toy://x", patience=patience, pacing="fast")
    capture = await attempt(one, lambda rate: Utterance(bytes(320), rate, 0, 160), text="Which?")
    assert capture.outcome == "ended"
    assert capture.rows[0]["pacing"] == "fast"
    ((tag, _),) = asked
    assert len(tag) == 16
