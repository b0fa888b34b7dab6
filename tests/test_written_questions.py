"""A question in writing beside the audio reaches the endpoint, or the run is refused."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from voxmeter.client import config
from voxmeter.client.bench_rules import refuse_lost_text
from voxmeter.client.cli import main
from voxmeter.client.serve_callable import CallableError, replies
from voxmeter.client.targets import settings
from voxmeter.endpoints import catalog, preset
from voxmeter.endpoints.codec import Binary, Codec, Json, Message, Request, Settings, Text
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.kind import load
from voxmeter.suites.suite import Item

WORDS = "Who-speaks-here?"
MOSHI = 'kind = "moshi"\nurl = "ws://127.0.0.1:1"'
HTTP = 'kind = "http"\nurl = "http://127.0.0.1:1"\n[endpoint.options.json]\na = "{audio_base64}"'
LINE = (
    'bench.toml: [[endpoint]] "a": as it is set up, kind moshi takes no words beside the audio, '
    'and suite "mine" asks its questions in writing; '
    'write question_via = "speech-after" there, or run them apart (--only)'
)


def codec(kind: str, settings: Settings) -> Codec:
    make = load(catalog.find(kind).codec)
    assert callable(make)
    return cast("Codec", make(settings))


def usable(kind: str) -> Codec:
    """A codec without settings, or with those of a preset where the kind needs some."""
    try:
        return codec(kind, Settings())
    except UserError:
        ready = next(one for name in preset.names() if (one := preset.read(name)).kind == kind)
        tables = {**tomllib.loads(ready.block()), "suite": [{"kind": "demo"}]}
        return codec(kind, settings(config.parse(tables, "bench.toml").endpoints[0]))


def sent(message: Message) -> str:
    match message:
        case Text(data):
            return data
        case Binary(data) | Request(data):
            return data.decode("latin-1")
        case _:
            return repr(message)


@pytest.mark.parametrize("kind", catalog.KINDS)
def test_a_kind_takes_text_if_and_only_if_its_codec_sends_it(kind: str) -> None:
    one = usable(kind)
    one.open()
    steps = [one.text(WORDS), one.audio(bytes(6400)), one.end_turn()]
    said = any(WORDS in sent(message) for step in steps for message in step.messages)
    elsewhere = kind == "import"  # nothing is asked: the answers are there already
    assert one.traits.takes_text is (said or elsewhere)


def test_http_takes_text_where_its_template_has_a_place_for_it() -> None:
    template: Json = {"sound": "{audio_base64}", "question": "{text}"}
    one = codec("http", Settings(options={"json": template}))
    assert one.traits.takes_text
    one.text(WORDS)
    (request,) = one.end_turn().messages
    assert json.loads(sent(request))["question"] == WORDS


def refused(endpoint: str, via: str) -> str | None:
    tables = tomllib.loads(f'[[endpoint]]\nname = "a"\n{endpoint}\n[[suite]]\nkind = "demo"')
    bench = config.parse(tables, "bench.toml")
    item = Item("mine", "q", "open", (), question=WORDS)
    items = [item, replace(item, question_via=via)]  # type: ignore[arg-type]
    try:
        refuse_lost_text(bench, ["a"], items)
    except UserError as error:
        return str(error)
    refuse_lost_text(bench, [], items)
    return None


def test_a_run_that_would_lose_its_questions_is_refused_in_one_line() -> None:
    assert refused(MOSHI, "text") == LINE
    assert refused(MOSHI, "speech-after") is None
    assert "kind http takes no words" in (refused(HTTP, "text") or "")
    assert refused(HTTP + '\nq = "{text}"', "text") is None
    assert refused('builtin = "echo"', "text") is None


def test_run_and_check_refuse_it_before_anything_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    item = {"id": "q", "text": "Listen.", "question": WORDS, "kind": "open"}
    (tmp_path / "items.jsonl").write_text(json.dumps(item))
    suite = '[[suite]]\nkind = "jsonl"\nname = "mine"\npath = "items.jsonl"\nquestion_via = "text"'
    bench = tmp_path / "bench.toml"
    bench.write_text(f'[[endpoint]]\nname = "a"\n{MOSHI}\n{suite}\n')
    line = LINE.removeprefix("bench.toml: ")
    assert main(["run", str(bench), "--out", str(tmp_path / "runs")]) == 2
    assert line in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
    assert main(["check", str(bench), "--offline"]) == 2
    found = capsys.readouterr()
    assert line in found.err
    assert found.out.count("takes no words") == 1


def test_a_function_without_a_place_for_the_words_says_so() -> None:
    def deaf(question: object, rate: int) -> str:
        return "Yes."

    def reads(question: object, rate: int, text: str) -> str:
        return text

    request = {"text": WORDS}
    with pytest.raises(CallableError, match="asked in writing"):
        list(replies(deaf, [], 16_000, request))
    assert [getattr(one, "text", "") for one in replies(reads, [], 16_000, request)] == [WORDS]
    assert len(list(replies(deaf, [], 16_000, {"text": None}))) == 1
