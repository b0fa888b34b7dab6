"""A playlist that grows: looked at when there may be news, its segments in order."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import pytest
from gradio_world import playlist
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.endpoints.codec import Fetched, Request
from voxmeter.endpoints.errors import ProtocolError
from voxmeter.endpoints.hls import Follower, Next
from voxmeter.endpoints.hls import playlist as read

PATH = "/s/1/playlist.m3u8"


def follower() -> Follower:
    return Follower("gradio", PATH, "t", {"Cookie": "c"})


def listed(count: int, *, ended: bool = False) -> Fetched:
    return Fetched("t playlist", body=playlist(count, ended=ended))


def segment(number: int) -> Fetched:
    return Fetched(f"t segment {number}", body=b"s%d" % number)


def names(requests: Sequence[Request]) -> list[str]:
    return [one.aside for one in requests]


def test_a_request_says_where_and_carries_the_headers() -> None:
    (asked,) = follower().look()
    assert asked == Request(b"", {"Cookie": "c"}, "GET", PATH, "t playlist")


def test_a_look_that_found_something_is_followed_by_another_and_one_that_did_not_is_not() -> None:
    stream = follower()
    stream.look()
    assert names(stream.take(listed(1)).requests) == ["t playlist", "t segment 0"]
    assert stream.take(listed(1)) == Next([], [])


def test_news_during_a_look_lead_to_another_one_after_it() -> None:
    stream = follower()
    stream.look()
    assert [*stream.look(), *stream.look()] == []
    assert names(stream.take(listed(0)).requests) == ["t playlist"]
    assert stream.take(listed(0)) == Next([], [])


def test_segments_are_given_out_in_their_order_and_a_few_are_fetched_at_a_time() -> None:
    stream = follower()
    stream.look()
    asked = stream.take(listed(5, ended=True)).requests
    assert [one.path for one in asked] == ["/s/1/0.aac", "/s/1/1.aac", "/s/1/2.aac"]
    assert stream.take(segment(1)) == Next(
        [], [Request(b"", {"Cookie": "c"}, "GET", "/s/1/3.aac", "t segment 3")]
    )
    assert stream.take(segment(0)).segments == [b"s0", b"s1"]
    assert not stream.done
    for number in (4, 3):
        assert stream.take(segment(number)).segments == []
    assert stream.take(segment(2)).segments == [b"s2", b"s3", b"s4"]
    assert stream.done
    assert stream.look() == []


def test_a_list_that_was_finished_is_looked_at_until_its_end() -> None:
    stream = follower()
    stream.look()
    assert stream.finish() == []  # the look that goes on was begun before
    assert names(stream.take(listed(0)).requests) == ["t playlist"]
    stream.take(listed(0, ended=True))
    assert stream.done


def test_a_list_that_never_ends_is_over_when_nothing_is_added_after_the_last_news() -> None:
    stream = follower()
    assert names(stream.finish()) == ["t playlist"]
    assert names(stream.take(listed(1)).requests) == ["t playlist", "t segment 0"]
    assert not stream.done
    stream.take(listed(1))
    assert not stream.done
    stream.take(segment(0))
    assert stream.done


def test_only_what_was_asked_for_is_awaited() -> None:
    stream = follower()
    stream.look()
    assert stream.awaits(listed(1))
    assert not stream.awaits(segment(0))
    stream.take(listed(1))
    assert stream.awaits(segment(0))


def test_places_are_those_of_the_same_server_wherever_they_say_they_are() -> None:
    body = b"\xef\xbb\xbf#EXTM3U\r\na.aac?x=1\r\n\r\n../b.aac\r\nhttps://elsewhere.invalid/c.aac\r\n//d/e\r\n"
    found = read("gradio", Fetched("t playlist", body=body), PATH)
    assert found.segments == ["/s/1/a.aac?x=1", "/s/b.aac", "/c.aac", "/e"]
    assert not found.ended


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "not an HLS playlist"),
        (b"<html>", "not an HLS playlist"),
        (b'#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI="k"\na.aac', "#EXT-X-KEY, which is not read"),
        (b'#EXTM3U\n#EXT-X-MAP:URI="init.mp4"\na.m4s', "#EXT-X-MAP, which is not read"),
        (b"#EXTM3U\nhttp://[x/a.aac", "an address that cannot be read"),
    ],
)
def test_what_cannot_be_played_is_told(body: bytes, words: str) -> None:
    with pytest.raises(ProtocolError, match=words):
        read("gradio", Fetched("t playlist", body=body), PATH)


def test_a_playlist_without_end_is_not_followed() -> None:
    stream = follower()
    stream.look()
    with pytest.raises(ProtocolError, match="without end"):
        stream.take(listed(20_001))


@given(st.lists(st.binary(max_size=60), max_size=4))
def test_any_bytes_are_a_playlist_or_a_protocol_error(bodies: list[bytes]) -> None:
    stream = follower()
    for body in bodies:
        stream.look()
        with suppress(ProtocolError):
            stream.take(Fetched("t playlist", body=b"#EXTM3U\n" + body))
    with suppress(ProtocolError):
        read("gradio", Fetched("t playlist", body=bodies[0] if bodies else b""), PATH)
