"""Where clients connect: URLs of websockets, this machine, keys in headers."""

from __future__ import annotations

import pytest

from voxmeter.endpoints.addresses import checked_key, http_url, is_this_machine, websocket_url
from voxmeter.endpoints.errors import UserError


def test_any_scheme_of_the_web_can_be_written() -> None:
    assert websocket_url("https://h", "/p") == "wss://h/p"
    assert websocket_url("ws://h:1/own?x=1", "/p") == "ws://h:1/own?x=1"
    assert http_url("wss://h/", "/p") == "https://h/p"
    assert http_url("http://h", "/p") == "http://h/p"


@pytest.mark.parametrize(
    "url", ["", "host", "ftp://host", "wss://", "https:///path", "ws://h:99999", "ws://[h"]
)
def test_what_is_not_a_url_is_told_with_its_cure_and_without_its_query(url: str) -> None:
    with pytest.raises(UserError, match="write it like wss://host/p") as raised:
        websocket_url(f"{url}?key=hidden", "/p")
    assert "hidden" not in str(raised.value)


def test_only_loopback_addresses_and_localhost_are_this_machine() -> None:
    assert [is_this_machine(host) for host in ("127.0.0.1", "::1", "localhost")] == [True] * 3
    assert not is_this_machine("192.0.2.1")
    assert not is_this_machine("host.example")


def test_a_key_that_no_header_can_carry_is_not_repeated() -> None:
    assert checked_key("sk-1") == "sk-1"
    for key in ("sk\n1", "schlüssel"):
        with pytest.raises(UserError) as raised:
            checked_key(key)
        assert key not in str(raised.value)
