"""`voxmeter live` from the outside: brokers, signals, pipes, and what cannot be talked to."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest
from mosquitto import mosquitto
from mqtt_reader import reading
from needs import needs_extra
from test_live_command import BENCH, command, rows, until

from voxmeter.client.cli import main
from voxmeter.client.commands import live
from voxmeter.client.mqtt_connection import MqttSettings
from voxmeter.endpoints.errors import UserError

needs_extra("aiomqtt", "mqtt")


def publishing(port: int, more: str = "") -> str:
    return f'{BENCH}[publish.mqtt]\nhost = "127.0.0.1"\nport = {port}\n{more}'


async def ended(process: asyncio.subprocess.Process, number: signal.Signals) -> tuple[int, str]:
    """Send a signal; return the exit status and the rest of what was said."""
    process.send_signal(number)
    assert process.stdout is not None
    assert process.stderr is not None
    rest = (await process.stdout.read()).decode()
    return await process.wait(), rest + (await process.stderr.read()).decode()


async def test_a_talk_is_told_to_the_broker_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    with mosquitto(tmp_path / "broker") as broker:
        settings = MqttSettings("127.0.0.1", broker.port)
        async with (
            reading(settings) as reader,
            command(tmp_path, bench=publishing(broker.port)) as process,
        ):
            await reader.until(lambda seen: any(one.topic.endswith("/event") for one in seen))
            await until(process, "1 ok")
            status, _ = await ended(process, signal.SIGINT)
            assert status == 130
            await reader.status("interrupted")
            seen = reader.seen
    statuses = [one.payload for one in seen if one.topic.endswith("/status")]
    assert statuses[-2:] == ["running", "interrupted"]
    stages = [one.json["stage"] for one in seen if one.topic.endswith("/item/turn-1/event")]
    assert stages[0] == "speech_end"
    assert "answered" in stages
    stats = [one.json for one in seen if one.topic.endswith("/endpoint/metronome/stats")]
    assert stats[-1]["n"] >= 1
    (run,) = (tmp_path / "runs").iterdir()
    (summary,) = [one.json for one in seen if one.topic.endswith("/summary")]
    assert summary["run"] == run.name
    told = json.loads((run / "publish.json").read_text())["mqtt"]
    assert told["undelivered"] == 0
    assert told["delivered"] == len(seen)


async def test_a_broker_that_refuses_the_password_is_told_of_and_the_talk_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROKER_PASSWORD", "wrong-and-secret")
    more = 'username_env = "BROKER_USER"\npassword_env = "BROKER_PASSWORD"\n'
    monkeypatch.setenv("BROKER_USER", "ann")
    with mosquitto(tmp_path / "broker", user="ann", password="right") as broker:  # noqa: S106 - of a test
        async with command(tmp_path, bench=publishing(broker.port, more)) as process:
            said = await until(process, "1 ok")
            status, rest = await ended(process, signal.SIGINT)
    assert status == 130
    assert any("MQTT" in line and "it goes on without" in line for line in [*said, rest])
    assert "wrong-and-secret" not in "".join(said) + rest
    assert rows(tmp_path)[0]["status"] == "ok"
    (run,) = (tmp_path / "runs").iterdir()
    assert json.loads((run / "publish.json").read_text())["mqtt"]["undelivered"] > 0


async def test_a_broker_with_a_foreign_certificate_is_told_of_and_the_talk_goes_on(
    tmp_path: Path,
) -> None:
    with mosquitto(tmp_path / "broker", tls=True) as broker:
        bench = publishing(broker.port, "tls = true\n")
        async with command(tmp_path, bench=bench) as process:
            said = await until(process, "1 ok")
            status, rest = await ended(process, signal.SIGINT)
    assert status == 130
    assert any("certificate" in line.lower() for line in [*said, rest])
    assert rows(tmp_path)[0]["status"] == "ok"


@pytest.mark.parametrize(
    "phase", ["connecting", "listening", "you stopped speaking", "first packet", "1 ok"]
)
async def test_ctrl_c_ends_a_talk_at_any_moment_with_all_that_was_said(
    tmp_path: Path, phase: str
) -> None:
    async with command(tmp_path) as process:
        await until(process, phase)
        status, rest = await ended(process, signal.SIGINT)
    assert status == 130
    assert "Traceback" not in rest
    if phase in {"first packet", "1 ok"}:
        assert rows(tmp_path)[0]["item"] == "turn-1"


async def test_a_talk_that_is_terminated_keeps_what_was_said(tmp_path: Path) -> None:
    async with command(tmp_path) as process:
        await until(process, "1 ok")
        status, rest = await ended(process, signal.SIGTERM)
    assert status == 130
    assert "Traceback" not in rest
    assert rows(tmp_path)[0]["status"] == "ok"
    (run,) = (tmp_path / "runs").iterdir()
    assert (run / "report.html").is_file()


async def test_a_talk_that_was_suspended_goes_on(tmp_path: Path) -> None:
    async with command(tmp_path) as process:
        await until(process, "1 ok")
        process.send_signal(signal.SIGSTOP)
        assert await asyncio.to_thread(os.waitid, os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        process.send_signal(signal.SIGCONT)
        await until(process, "2 ok")
        status, _ = await ended(process, signal.SIGINT)
    assert status == 130


async def test_a_talk_whose_lines_nobody_reads_any_more_goes_on_and_is_kept(tmp_path: Path) -> None:
    async with command(tmp_path) as process:
        await until(process, "1 ok")
        assert process.stdout is not None
        process.stdout._transport.close()  # type: ignore[attr-defined]
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert await process.stderr.read() == b""
        assert await process.wait() == 130
    assert rows(tmp_path)[0]["status"] == "ok"
    (run,) = (tmp_path / "runs").iterdir()
    assert (run / "report.html").is_file()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--web", "--microphone", "usb"], "--microphone: --web has a page"),
        (["--web", "--cancel-echo"], "--cancel-echo: --web has a page"),
        (["--port", "80"], "--port: is of the page; add --web"),
        (["--no-open"], "--no-open: is of the page; add --web"),
        (["--limit", "2"], "--limit: is of the questions asked aloud; add --auto"),
        (["--auto", "--cancel-echo"], "an echo canceller has no place in a measurement"),
        (["--jitter-buffer", "5000"], "give ms, 0 to 1000"),
        (["--jitter-buffer", "-1"], "--jitter-buffer"),
        (["--web", "--port", "70000"], "give the number of a port, 0 to 65535"),
    ],
)
def test_options_that_say_nothing_together_are_refused(
    options: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["live", *options]) == 2
    said = capsys.readouterr().err
    assert why in said
    assert said.count("\n") == 1


def missing(microphone: str | None, speaker: str | None, *, echo: bool) -> None:
    raise UserError("sound", "this machine has no sound device", "plug in a headset")


def test_a_missing_device_is_told_before_our_own_server_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bench.toml").write_text(BENCH)
    monkeypatch.setattr(live, "_CHECK", "test_live_whole:missing")
    monkeypatch.setattr("voxmeter.client.targets.target", None)  # would be called to start it
    assert main(["live", str(tmp_path / "bench.toml")]) == 2
    assert "this machine has no sound device" in capsys.readouterr().err


def test_a_port_that_is_taken_is_told_before_our_own_server_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import socket

    (tmp_path / "bench.toml").write_text(BENCH)
    monkeypatch.setattr("voxmeter.client.targets.target", None)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["live", str(tmp_path / "bench.toml"), "--web", "--port", str(port)]) == 2
    assert "choose another --port" in capsys.readouterr().err


@pytest.mark.parametrize("below", ["", "runs"])
def test_a_place_that_is_no_folder_is_told_before_anybody_speaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], below: str
) -> None:
    bench = tmp_path / "bench.toml"
    bench.write_text(BENCH)
    monkeypatch.setattr("voxmeter.client.targets.target", None)
    assert main(["live", str(bench), "-o", str(bench / below)]) == 2
    assert capsys.readouterr().err == f"voxmeter: {bench}: Not a directory; check the path\n"


def test_a_folder_that_may_not_be_written_is_told_before_anybody_speaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bench.toml").write_text(BENCH)
    monkeypatch.setattr("voxmeter.client.targets.target", None)
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anywhere
    assert main(["live", str(tmp_path / "bench.toml"), "-o", str(tmp_path / "runs")]) == 2
    said = f"voxmeter: {tmp_path}: may not be written; choose another folder (-o)"
    assert capsys.readouterr().err.startswith(said)


def test_a_broker_whose_password_is_not_set_is_told_before_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    more = 'username_env = "NO_SUCH_USER"\npassword_env = "NO_SUCH_PASSWORD"\n'
    (tmp_path / "bench.toml").write_text(publishing(1, more))
    monkeypatch.setattr(live, "_CHECK", "test_live_whole:missing")
    assert main(["live", str(tmp_path / "bench.toml")]) == 2
    assert "NO_SUCH_USER" in capsys.readouterr().err


def test_answers_in_a_file_cannot_be_talked_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "answers").mkdir()
    text = '[[endpoint]]\nname = "old"\nkind = "import"\noptions = { path = "answers" }\n'
    (tmp_path / "bench.toml").write_text(text + '[[suite]]\nkind = "demo"\n')
    assert main(["live", str(tmp_path / "bench.toml")]) == 2
    assert 'nobody answers while you speak to kind = "import"' in capsys.readouterr().err


async def test_an_endpoint_that_was_never_there_is_exit_status_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = '[[endpoint]]\nname = "gone"\nkind = "openai-realtime"\nurl = "ws://127.0.0.1:9"\n'
    bench += '[[suite]]\nkind = "demo"\n'
    async with command(tmp_path, bench=bench) as process:
        assert process.stderr is not None
        said = (await process.stderr.read()).decode()
        assert await process.wait() == 3
    assert "gone" in said
    assert "Traceback" not in said
