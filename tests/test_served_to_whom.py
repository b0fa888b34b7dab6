"""Who may reach a server of ours: this machine alone, or whoever shows the token."""

from __future__ import annotations

import inspect
import socket
from typing import Any

import pytest

from voxmeter.client.cli import main
from voxmeter.client.servers.brain import RefusedError
from voxmeter.client.servers.door import Door, HostSettings
from voxmeter.client.servers.echo import Echo
from voxmeter.endpoints import catalog
from voxmeter.endpoints.errors import UserError

ELSEWHERE = ("0.0.0.0", "::", "", "*", "192.0.2.7", "example.org", "::ffff:0.0.0.0", "0", "127.1.x")  # noqa: S104
"""Hosts that others may reach, or that nobody can say."""


@pytest.mark.parametrize("protocol", catalog.served())
def test_every_protocol_is_served_to_this_machine_alone_unless_there_is_a_token(
    protocol: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for host in ELSEWHERE:
        words = ["serve", "echo", "--protocol", protocol, "--host", host]
        assert main(words) == 2
        assert "there is no token; set --token-env" in capsys.readouterr().err


def test_a_broker_of_ours_which_lets_everybody_in_is_for_this_machine_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVED_TOKEN", "a-token-of-the-server")
    words = ["serve", "echo", "--protocol", "hermes", "--host", "0.0.0.0"]  # noqa: S104
    assert main([*words, "--token-env", "SERVED_TOKEN"]) == 2
    assert "our own broker lets everybody in; name a broker" in capsys.readouterr().err


def test_without_a_word_a_server_listens_on_loopback() -> None:
    assert HostSettings().host == "127.0.0.1"


def resolving(address: str) -> Any:
    def getaddrinfo(*_: object, **__: object) -> list[tuple[object, ...]]:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return [(family, socket.SOCK_STREAM, 6, "", (address, 0))]

    return getaddrinfo


@pytest.mark.parametrize(
    ("address", "alone"), [("127.0.0.1", True), ("::1", True), ("192.0.2.7", False)]
)
def test_localhost_counts_as_what_it_stands_for_and_no_other_name_does(
    monkeypatch: pytest.MonkeyPatch, address: str, alone: bool
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", resolving(address))
    for name in ("localhost", "my-machine"):
        if alone and name == "localhost":
            assert Door(Echo(), HostSettings(name)).inside == 0
        else:
            with pytest.raises(UserError, match="set --token-env"):
                Door(Echo(), HostSettings(name))


WRONG = ("", "secre", "secret2", "sécret", "\udcff", "s\x00ecret", "SECRET")


@pytest.mark.parametrize("shown", WRONG)
def test_no_other_token_lets_anybody_in(shown: str) -> None:
    settings = HostSettings("0.0.0.0", token="secret", key_names=("x-key",))  # noqa: S104, S106
    for headers in ({"authorization": f"Bearer {shown}"}, {"x-key": shown}):
        with pytest.raises(RefusedError) as refused:
            Door(Echo(), settings).admit("/", headers)
        assert refused.value.status == 401
    assert Door(Echo(), settings).admit("/?token=secret", {}).query == {}


def test_tokens_are_compared_in_constant_time() -> None:
    source = inspect.getsource(Door._check)
    assert "hmac.compare_digest(" in source
    assert "==" not in source
