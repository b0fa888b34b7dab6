"""Whole runs with a broker, a bad one and none: the rows are the same, and what is lost is told."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mosquitto import Broker, mosquitto
from mqtt_reader import Seen, reading
from needs import needs_extra
from test_publish_process import absent, closing, mute

from voxmeter import run_bench
from voxmeter.client import clips
from voxmeter.client.audio import write_flac
from voxmeter.client.cli import main
from voxmeter.client.mqtt_connection import MqttSettings
from voxmeter.client.speakers import speaker
from voxmeter.endpoints.errors import UserError
from voxmeter.suites import catalog

needs_extra("aiomqtt", "mqtt")

USER, PASSWORD = "ann-of-the-lab", "correct horse battery"
Row = dict[str, Any]


@pytest.fixture(autouse=True)
def _own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("BROKER_USERNAME", USER)
    monkeypatch.setenv("BROKER_PASSWORD", PASSWORD)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with mosquitto(tmp_path / "broker", tls=True, user=USER, password=PASSWORD) as broker:
        yield broker


def bench(folder: Path, table: str) -> Path:
    """Write a bench of two very short questions to a metronome and to nobody."""
    questions = folder / "questions.jsonl"
    if not questions.exists():
        lines = []
        for number, item in enumerate(catalog.load("demo", "demo", {}, folder).items[:2]):
            made = clips.render(item, speaker)
            end, rate = made.bounds.end_sample, made.pcm.rate
            write_flac(
                folder / f"{number}.flac", made.pcm.samples[end - rate * 3 // 10 : end], rate
            )
            lines.append({"id": f"q/{number}", "audio": f"{number}.flac", "kind": "open"})
        questions.write_text("".join(json.dumps(line) + "\n" for line in lines))
    written = folder / "bench.toml"
    written.write_text(
        f'[run]\nout = "{folder}/runs"\nwarmup = 0\nretries = 0\n'
        '[[endpoint]]\nname = "my bot"\nbuiltin = "metronome?delay_ms=250&pacing=burst"\n'
        '[[endpoint]]\nname = "nobody"\nurl = "ws://127.0.0.1:9"\n'
        '[[suite]]\nkind = "jsonl"\nname = "mine"\npath = "questions.jsonl"\n' + table
    )
    return written


def table(port: int, **keys: str) -> str:
    more = "".join(f"{name} = {value}\n" for name, value in keys.items())
    return f'[publish.mqtt]\nhost = "127.0.0.1"\nport = {port}\n{more}'


def secure(broker: Broker, **keys: str) -> str:
    given = {"tls": "true", "ca_file": '"broker/ca.pem"'}
    names = {f"{one}_env": f'"BROKER_{one.upper()}"' for one in ("username", "password")}
    return table(broker.port, **given, **names, **keys)


def reader_settings(broker: Broker) -> MqttSettings:
    return MqttSettings(
        "127.0.0.1", broker.port, tls=True, ca_file=broker.ca_file, username=USER, password=PASSWORD
    )


def rows(folder: Path) -> list[Row]:
    return [json.loads(line) for line in (folder / "trials.jsonl").read_text().splitlines()]


def outline(folder: Path) -> list[tuple[Any, ...]]:
    """Return of every row what does not differ from run to run."""
    return [
        (row["key"], row["attempt"], row["status"], row["latency_kind"], sorted(row))
        for row in rows(folder)
    ]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Any, ...]]:
    """The outline of a run without a broker."""
    return outline(run_bench(bench(tmp_path_factory.mktemp("plain"), "")).path)


def test_a_run_says_how_it_goes_and_what_came_of_it(broker: Broker, tmp_path: Path) -> None:
    written = bench(tmp_path, secure(broker, discovery="true"))

    async def watch() -> tuple[list[Seen], Any]:
        async with reading(reader_settings(broker)) as reader:
            run = await asyncio.to_thread(run_bench, written)
            await reader.status("online", "running", "scoring", "done")
            return reader.seen, run

    seen, run = asyncio.run(watch())
    base = f"voxmeter/{run.path.name}"
    assert {one.topic.split("/")[0] for one in seen} == {"voxmeter", "homeassistant"}
    events = [one.json for one in seen if one.topic.endswith("/event")]
    recorded = {row["key"]: row for row in rows(run.path)}
    assert len(events) == len(recorded) == 4
    for event in events:
        row = recorded[
            f"{event['endpoint'].replace(' ', '%20')}/mine/q%2F{event['item'][-1]}/clean/1"
        ]
        assert event["status"] == row["status"]
        for mark, value in event["marks"].items():
            assert value == row["latency"][mark]
    stats = [one.json for one in seen if one.topic.endswith("/stats")]
    assert [one["n"] for one in stats if one["endpoint"] == "nobody"][-1] == 2
    assert stats[-1]["status"] == {"disconnected": 2}
    (summary,) = [one.json for one in seen if one.topic == f"{base}/summary"]
    assert summary["cells"][0]["status"] == run.summary["cells"][0]["status"] == {"ok": 2}
    counted = json.loads((run.path / "publish.json").read_text())["mqtt"]
    assert (counted["undelivered"], counted["delivered"] > 10) == (0, True)
    everything = "".join(one.topic + one.payload for one in seen)
    assert PASSWORD not in everything
    assert USER not in everything


@pytest.mark.parametrize("server", [mute, closing, absent])
def test_rows_are_the_same_with_a_bad_broker_and_the_loss_is_told(
    server: Any,
    plain: list[tuple[Any, ...]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with server() as port:
        status = main(["run", str(bench(tmp_path, table(port)))])
    assert status == 3  # for the endpoint that is not there, as without a broker
    printed = capsys.readouterr()
    folder = Path(printed.out.splitlines()[-1])
    assert outline(folder) == plain
    (line,) = [one for one in printed.err.splitlines() if "not delivered" in one]
    assert line.startswith("voxmeter: warning: MQTT: ")
    sentence = line.removeprefix("voxmeter: warning: ")
    (warning,) = [
        one
        for one in json.loads((folder / "summary.json").read_text())["warnings"]
        if one["code"] == "mqtt-undelivered"
    ]
    assert warning["text"] == sentence
    assert "mqtt-undelivered" in (folder / "report.md").read_text()


def test_a_broker_that_is_killed_and_restarted_in_the_middle_of_a_run_changes_no_row(
    broker: Broker, plain: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    written = bench(tmp_path, secure(broker))

    async def watch() -> tuple[list[Seen], Any]:
        async with asyncio.TaskGroup() as group:
            async with reading(reader_settings(broker)) as reader:
                run = group.create_task(asyncio.to_thread(run_bench, written))
                await reader.until(lambda seen: any(one.topic.endswith("event") for one in seen))
            broker.kill()
            broker.start()
            async with reading(reader_settings(broker)) as again:
                await again.status("done")
                return again.seen, await run

    seen, run = asyncio.run(watch())
    assert outline(run.path) == plain
    assert any(one.topic.endswith("/summary") for one in seen)
    assert json.loads((run.path / "publish.json").read_text())["mqtt"]["undelivered"] == 0


def test_an_interrupted_run_says_so(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("voxmeter.client.score.score_run", interrupt)
    assert main(["run", str(bench(tmp_path, secure(broker))), "--quiet"]) == 130

    async def late() -> None:
        async with reading(reader_settings(broker)) as reader:
            await reader.status("interrupted")

    asyncio.run(late())


@pytest.mark.parametrize("way", ["command", "script"])
def test_a_run_whose_reports_cannot_be_written_is_not_told_as_done(
    way: str, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise UserError("report.md", "the disk is full", "make room")

    written = bench(tmp_path, secure(broker))
    if way == "command":
        monkeypatch.setattr("voxmeter.client.report.write_reports", full)
        assert main(["run", str(written), "--quiet"]) == 2
    else:
        monkeypatch.setattr("voxmeter.client.api.write_reports", full)
        with pytest.raises(UserError, match="disk is full"):
            run_bench(written)

    async def late() -> list[Seen]:
        async with reading(reader_settings(broker)) as reader:
            await reader.status("failed")
            return reader.seen

    assert "done" not in [one.payload for one in asyncio.run(late())]


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"username_env": '"NOT_SET"'}, "username_env: environment variable NOT_SET is not set"),
        ({"tls": "true", "ca_file": '"no.pem"'}, "no.pem: holds no certificates"),
        ({"topic": '"a/#"'}, "topic: 'a/#' has + or #"),
        ({"password_env": '"BROKER_PASSWORD"'}, "has password_env and no username_env"),
        ({"ca_file": '"broker/ca.pem"'}, "has ca_file and no tls = true"),
    ],
)
def test_a_mistake_in_the_table_is_told_before_anything_is_asked(
    keys: dict[str, str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(bench(tmp_path, table(1883, **keys)))]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("host", ["mqtt://h", "h:1883", "[::1]", "u:p@h", "a b"])
def test_a_host_that_is_more_than_a_name_is_refused(
    host: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(bench(tmp_path, f'[publish.mqtt]\nhost = "{host}"\n'))]) == 2
    assert "[publish.mqtt] host: " in capsys.readouterr().err


def test_without_the_extra_the_cure_is_its_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("voxmeter.client.publish_settings.find_spec", lambda _: None)
    assert main(["run", str(bench(tmp_path, table(1883)))]) == 2
    assert "pip install 'voxmeter[mqtt]'" in capsys.readouterr().err


def test_check_says_whether_the_broker_takes_us(
    broker: Broker,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = str(bench(tmp_path, secure(broker)))
    main(["check", written, "--no-question"])
    assert f"ok   mqtt: mqtts://127.0.0.1:{broker.port} takes us, after " in capsys.readouterr().out
    main(["check", written, "--offline"])
    assert "not asked (--offline)" in capsys.readouterr().out
    monkeypatch.setenv("BROKER_PASSWORD", "another one")
    assert main(["check", written, "--no-question"]) == 3
    out = capsys.readouterr().out
    assert "FAIL mqtt: the broker at" in out
    assert "another one" not in out
    assert USER not in out
