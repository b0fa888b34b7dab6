"""Secrets come from the environment and never reach a file."""

from __future__ import annotations

import json
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.client.dialing import connect_error
from voxmeter.client.redaction import MARK, Redactor, expand, references, secret
from voxmeter.endpoints.codec import Json
from voxmeter.endpoints.errors import UserError

KEY = 'sk-ab"c\\d/é+12345'


def test_a_secret_is_found_in_every_string_and_key_of_nested_json() -> None:
    value: Json = {"a": [KEY, {"b": f"Bearer {KEY}!"}], KEY: 1, "n": None, "x": 1.5}
    assert Redactor([KEY]).json(value) == {
        "a": [MARK, {"b": f"Bearer {MARK}!"}],
        MARK: 1,
        "n": None,
        "x": 1.5,
    }


@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_secret_is_found_in_text_that_is_json_already(ascii_only: bool) -> None:
    text = json.dumps({"header": KEY}, ensure_ascii=ascii_only)
    assert json.loads(Redactor([KEY]).text(text)) == {"header": MARK}


@pytest.mark.parametrize(
    "spelled",
    [
        r"sk-ab\"c\\d\/\u00E9+12345",
        r"sk-ab\u0022c\u005cd\u002f\u00e9\u002b12345",
        "".join(f"\\u{ord(letter):04x}" for letter in KEY),
    ],
)
def test_a_secret_is_found_however_a_server_escapes_it_in_its_json(spelled: str) -> None:
    assert json.loads(f'"{spelled}"') == KEY
    raw = f'{{"error": "the key {spelled} is wrong"}}'
    assert Redactor([KEY]).text(raw) == f'{{"error": "the key {MARK} is wrong"}}'
    line = json.dumps({"data": raw})
    assert json.loads(Redactor([KEY]).text(line)) == {"data": Redactor([KEY]).text(raw)}


def test_a_letter_beyond_the_first_plane_is_found_as_its_two_halves() -> None:
    assert Redactor(["pass😀word"]).text(r"is pass\uD83D\ude00word") == f"is {MARK}"


@pytest.mark.parametrize(
    "text",
    ["wss://host/?key=sk-ab%22c%5Cd%2F%C3%A9%2B12345", "sk-ab%22c%5Cd/%C3%A9%2B12345"],
)
def test_a_secret_is_found_in_a_url(text: str) -> None:
    assert "12345" not in Redactor([KEY]).text(text)


def test_a_secret_is_found_in_the_name_of_a_host_which_is_in_lower_case() -> None:
    url = "wss://TenantOfMine42.example/v1"
    said = str(connect_error(socket.gaierror(-2, "unknown"), url))
    assert "tenantofmine42" in said
    assert Redactor(["TenantOfMine42"]).text(said) == said.replace("tenantofmine42", MARK)
    assert Redactor(["Sesame1"]).text("sesame1 is a word") == "sesame1 is a word"


@pytest.mark.parametrize(
    ("value", "text", "redacted"),
    [
        ("hunter2", "it is hunter2, not hunter22", f"it is {MARK}, not hunter22"),
        ("none", "none of these", "none of these"),
        ("EMPTY", "EMPTY", "EMPTY"),
        ("abc", "abc", "abc"),
        ("", "text", "text"),
        ("longenough", "xlongenoughx", f"x{MARK}x"),
    ],
)
def test_short_values_and_placeholders_do_not_damage_replies(
    value: str, text: str, redacted: str
) -> None:
    assert Redactor([value]).text(text) == redacted


def test_of_two_secrets_the_longer_goes_first() -> None:
    assert Redactor(["abcdefgh", "abcdefghijkl"]).text("abcdefghijkl") == MARK


@given(
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=8, max_size=20).filter(
        lambda text: text not in MARK
    ),
    st.text(max_size=20),
)
def test_no_text_keeps_a_secret_of_eight_characters(value: str, around: str) -> None:
    assert Redactor([value]).json(around + value + around) != around + value + around


@pytest.mark.parametrize(
    ("environment", "name", "line"),
    [
        ({}, "MY_KEY", "bench.toml: environment variable MY_KEY is not set; export MY_KEY=..."),
        ({"K": " "}, "K", "bench.toml: environment variable K is empty; export K=..."),
        (
            {},
            "sk-live-1234",
            "bench.toml: this is not a name of an environment variable; write the variable's name "
            "here and put the secret into the variable",
        ),
    ],
)
def test_a_missing_secret_is_one_line_that_repeats_no_key(
    environment: dict[str, str], name: str, line: str
) -> None:
    with pytest.raises(UserError) as caught:
        secret(name, "bench.toml", environment)
    assert str(caught.value) == line


def test_references_to_variables_are_filled_in() -> None:
    environment = {"TEAM": "blue", "KEY": "k"}
    assert references("{env:TEAM}/{env:KEY}") == ["TEAM", "KEY"]
    assert expand("{env:TEAM}-{env:KEY}", "place", environment) == "blue-k"
    with pytest.raises(UserError, match="NONE is not set"):
        expand("{env:NONE}", "place", environment)


def test_a_secret_in_a_query_is_found_in_either_spelling_of_its_space() -> None:
    redactor = Redactor(["open sesame/9"])
    for spelled in ("open+sesame%2F9", "open%20sesame%2F9", "open%20sesame/9"):
        assert redactor.text(f"ws://host/?key={spelled}&x=1") == f"ws://host/?key={MARK}&x=1"
