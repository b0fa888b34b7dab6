"""Programs as endpoints: asked again and again, started anew, killed, never left behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from programs import toy

from voxmeter.client.capture import Capture, Utterance
from voxmeter.client.clock import SystemClock
from voxmeter.client.guard import Guard
from voxmeter.client.probe import knock
from voxmeter.client.program import NICENESS, Program
from voxmeter.client.speaking import Patience
from voxmeter.client.subprocess_transport import Programs, SubprocessTransport
from voxmeter.client.target import Target, attempt
from voxmeter.client.transport import Arrival, Launch, TransportSettings
from voxmeter.endpoints.codec import Address, Ended, Published, Settings, Text
from voxmeter.endpoints.errors import ConnectError, ConnectionLostError, ProtocolError, UserError

PATIENCE = Patience(connect_timeout_s=20, first_reply_timeout_s=20, reply_limit_s=20)
SHORT = replace(PATIENCE, first_reply_timeout_s=0.3, reply_limit_s=0.6)


def question(rate: int) -> Utterance:
    return Utterance(b"\1\2" * rate, rate, 10, rate - 10)


@dataclass(frozen=True)
class Toy:
    """The toy program as an endpoint."""

    programs: Programs
    target: Target

    async def ask(self, how: str = "hum", patience: Patience = PATIENCE) -> Capture:
        settings = Settings(instructions=how)
        return await attempt(replace(self.target, settings=settings, patience=patience), question)


@contextmanager
def started(folder: Path, *arguments: str, **launch: Any) -> Iterator[Toy]:
    launch.setdefault("connect_timeout_s", 20.0)
    made = Programs(Launch("bench.toml", folder, toy(folder, *arguments), **launch))
    with made as carrier:
        yield Toy(made, Target("toy", "exec", "", carrier=carrier))


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Toy]:
    with started(tmp_path) as made:
        yield made


def outcome(capture: Capture) -> tuple[str, str]:
    return capture.outcome, capture.fault or ""


def running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # gone before it was opened, or read
        return False
    return state != "Z"


async def until_gone(*processes: int) -> None:
    async with asyncio.timeout(20):
        while any(map(running, processes)):  # noqa: ASYNC110 - nobody tells when others end
            await asyncio.sleep(0.01)


async def test_a_program_is_started_once_and_asked_again(program: Toy) -> None:
    first = await program.ask()
    second = await program.ask()
    assert [first.outcome, second.outcome] == ["ended", "ended"]
    assert first.reply_text == second.reply_text != ""  # its process id
    assert len(second.audio) == 1
    (ready,) = (row for row in second.rows if row["kind"] == "ready")
    assert ready["note"] == "toy"


async def test_sessions_side_by_side_have_a_program_each_and_no_more(program: Toy) -> None:
    captures = await asyncio.gather(*(program.ask() for _ in range(2)))
    again = await asyncio.gather(*(program.ask() for _ in range(2)))
    ids = {capture.reply_text for capture in (*captures, *again)}
    assert len(ids) == 2


@pytest.mark.parametrize("how", ["forever", "echo"])
async def test_one_that_speaks_faster_than_memory_allows_is_stopped(
    program: Toy, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("voxmeter.client.subprocess_transport._MOST_BYTES", 2_000)
    kind, fault = outcome(await program.ask(how))
    assert kind == "protocol_error"
    assert fault.startswith("exec: more than 0 MiB in one reply")


async def test_it_runs_in_its_folder_with_our_environment_and_reads_the_question(
    program: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOXMETER_TEST", "seen")
    capture = await program.ask("environment")
    folder, variable, told = json.loads(capture.reply_text)
    assert (folder, variable) == (str(tmp_path), "seen")
    assert told["audio"].startswith("/")
    assert told["sample_rate"] == 16_000
    assert not os.path.exists(told["audio"])  # noqa: ASYNC240, PTH110 - removed behind the reply


async def test_it_gives_way_to_the_client(program: Toy) -> None:
    process = int((await program.ask()).reply_text)
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, process) == max(ours, NICENESS)


async def test_the_sound_of_a_file_is_that_of_the_file(program: Toy) -> None:
    capture = await program.ask("echo")
    assert outcome(capture) == ("ended", "")
    ((index, data),) = capture.audio
    assert data == question(16_000).pcm
    assert capture.rows[index]["rate"] == 16_000


async def test_a_program_that_dies_is_named_with_its_status_and_started_anew(
    program: Toy,
) -> None:
    before = (await program.ask()).reply_text
    capture = await program.ask("exit")
    assert outcome(capture) == (
        "disconnected",
        "closed with code 3: the program ended with exit status 3: ValueError: boom",
    )
    after = await program.ask()
    assert after.outcome == "ended"
    assert after.reply_text != before


async def test_a_signal_has_its_name(program: Toy) -> None:
    capture = await program.ask("abort")
    assert "the program was ended by SIGABRT: started" in outcome(capture)[1]
    unnamed = await program.ask(f"signal {signal.SIGRTMIN + 3}")
    assert f"the program was ended by signal {signal.SIGRTMIN + 3}" in outcome(unnamed)[1]


async def test_a_path_that_is_no_sound_is_not_opened(program: Toy) -> None:
    capture = await program.ask("odd")
    assert (outcome(capture), capture.reply_text) == (("ended", ""), '"path"')


async def test_one_that_talks_to_nobody_is_stopped(tmp_path: Path) -> None:
    guard = Guard()
    talk = "while True: print('x' * 1000)"
    command = [sys.executable, "-I", "-S", "-c", talk]
    program = Program(command, tmp_path, 10_000, SystemClock(), guard)
    assert await asyncio.to_thread(program.gone, 20)
    guard.close()
    letters: list[Arrival] = []

    async def read_all() -> None:
        while True:
            letters.append(await program.box.take())

    with pytest.raises(ProtocolError, match="more than anybody could read, unasked"):
        await read_all()
    assert 40 <= len(letters) <= 120
    assert isinstance((await program.box.take()).message, Ended)
    guard.watch(0)  # a guard that was closed watches nothing


@pytest.mark.parametrize("how", ["leave", "hum"])
async def test_a_program_that_answers_once_is_started_for_each_question(
    tmp_path: Path, how: str
) -> None:
    with started(tmp_path, options={"once": True}) as program:
        captures = [await program.ask(how) for _ in range(3)]
    assert [capture.outcome for capture in captures] == ["ended"] * 3
    assert len({capture.reply_text for capture in captures}) == (3 if how == "hum" else 1)


def test_an_option_of_the_wrong_type_is_the_users_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"options\.once: is 'yes'; write true or false"):
        Programs(Launch("bench.toml", tmp_path, toy(tmp_path), options={"once": "yes"}))


@pytest.mark.parametrize(
    ("how", "wanted"),
    [
        ("print", "exec: not JSON: 'Loading \\x1b[31mcheckpoint'; standard output is for repl"),
        ("whisper", "exec: not UTF-8"),
        ("other", "exec: answers 'another', but"),
        ("path nowhere.wav", "nowhere.wav: no such file or directory"),
        ("path .", "not a regular file"),
        ("path /dev/zero", "/dev/zero: not a regular file"),
        ("path pipe", "not a regular file"),
        ("path toy.py", "toy.py: "),
        ("broken", "not JSON: '{\"path\"'"),
        ("number", "path is of type int"),
    ],
)
async def test_what_no_program_may_say_is_a_protocol_error_and_the_next_is_fresh(
    program: Toy, tmp_path: Path, how: str, wanted: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    capture = await program.ask(how)
    assert capture.outcome == "protocol_error"
    assert wanted in (capture.fault or "")
    assert (await program.ask()).outcome == "ended"


async def test_a_word_too_much_spoils_one_question_and_no_more(program: Toy) -> None:
    outcomes = [(await program.ask(how)).outcome for how in ("chat", "hum", "hum")]
    assert sorted(outcomes) == ["ended", "ended", "protocol_error"]
    assert outcomes[-1] == "ended"  # whichever of the first two was under way


async def test_an_error_leaves_the_program_as_it_is(program: Toy) -> None:
    before = (await program.ask()).reply_text
    assert outcome(await program.ask("error")) == ("refused", "server: no memory")
    assert (await program.ask()).reply_text == before


async def test_one_that_hangs_is_killed_with_its_children(program: Toy, tmp_path: Path) -> None:
    capture = await program.ask(f"babysit {tmp_path / 'pids'}", SHORT)
    assert capture.outcome == "timeout"
    await until_gone(*map(int, (tmp_path / "pids").read_text().split()))
    assert (await program.ask()).outcome == "ended"


async def test_one_that_does_not_end_is_truncated_and_killed(program: Toy) -> None:
    capture = await program.ask("forever", SHORT)
    assert capture.outcome == "truncated"
    assert len(capture.audio) > 1
    assert (await program.ask()).outcome == "ended"


async def test_one_that_closes_its_output_is_ended(program: Toy) -> None:
    capture = await program.ask("close")
    assert capture.outcome == "disconnected"
    assert "SIGKILL" in (capture.fault or "")


async def test_a_line_without_an_end_is_cut_short(tmp_path: Path) -> None:
    with started(tmp_path, wire=TransportSettings(max_message_mib=1)) as program:
        capture = await program.ask(f"long {3 << 20}")
        assert capture.outcome == "protocol_error"
        assert "a line longer than max_message_mib allows" in (capture.fault or "")
        assert len(capture.fault or "") < 200
        assert (await program.ask()).outcome == "ended"


@pytest.mark.parametrize(
    ("start", "wanted"),
    [
        ("fail", "before it was ready, the program ended with exit status 7: no GPU"),
        ("long", "a line longer than max_message_mib"),
    ],
)
async def test_one_that_does_not_start_is_disconnected(
    tmp_path: Path, start: str, wanted: str
) -> None:
    with started(tmp_path, start, wire=TransportSettings(max_message_mib=1)) as program:
        capture = await program.ask()
        assert capture.outcome == "disconnected"
        assert wanted in (capture.fault or "")


async def test_one_that_is_never_ready_is_disconnected_and_says_what_it_wrote(
    tmp_path: Path,
) -> None:
    with started(tmp_path, "hang", connect_timeout_s=0.5) as program:
        capture = await program.ask()
        assert capture.outcome == "disconnected"
        wanted = "the program was not ready within 0.5 s (connect_timeout_s)"
        assert (capture.fault or "").startswith(wanted)


async def test_a_banner_is_a_protocol_error(tmp_path: Path) -> None:
    with started(tmp_path, "banner") as program:
        for _ in range(2):
            capture = await program.ask()
            assert capture.outcome == "protocol_error"
            assert "not JSON: 'Welcome!'" in (capture.fault or "")


async def test_a_command_that_is_no_program_is_disconnected(tmp_path: Path) -> None:
    (tmp_path / "script").write_bytes(b"\0\0\0\0")
    (tmp_path / "script").chmod(0o755)
    with Programs(Launch("bench.toml", tmp_path, ("./script",))) as carrier:
        target = Target("toy", "exec", "", carrier=carrier)
        capture = await attempt(target, question)
    assert capture.outcome == "disconnected"
    assert "script does not start: " in (capture.fault or "")


async def test_a_knock_starts_it_and_asks_nothing(program: Toy) -> None:
    target = program.target
    found = await knock(target.codec(), target.transport(), Address(""), 20)
    assert (found.note, found.rtt_ms) == ("toy", None)


async def test_a_session_that_is_cut_off_while_it_starts_leaves_nothing(tmp_path: Path) -> None:
    with started(tmp_path, "hang") as program:
        session = asyncio.create_task(program.ask())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        session.cancel()
        with pytest.raises(asyncio.CancelledError):
            await session
    await asyncio.get_running_loop().shutdown_default_executor()  # where it was being started
    assert not children_named("toy.py hang")


def children_named(words: str) -> list[str]:
    command = ["ps", "-ax", "-o", "ppid=,args="]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    mine = (row.split(None, 1) for row in done.stdout.splitlines())
    return [args for parent, args in mine if int(parent) == os.getpid() and words in args]


async def test_all_of_them_end_with_the_endpoint(tmp_path: Path) -> None:
    with started(tmp_path) as program:
        ids = [int(one.reply_text) for one in await asyncio.gather(program.ask(), program.ask())]
        assert all(map(running, ids))
    assert not any(map(running, ids))


def test_a_pool_that_never_started_anything_ends_at_once(tmp_path: Path) -> None:
    with started(tmp_path):
        pass


_RUN = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_subprocess_transport import started
async def main():
    with started(Path(sys.argv[2])) as program:
        await program.ask("babysit " + sys.argv[2] + "/pids")
asyncio.run(main())
"""


async def test_they_die_with_a_run_that_is_killed(tmp_path: Path) -> None:
    run = subprocess.Popen(  # noqa: ASYNC220 - it is to be killed, nothing else
        [sys.executable, "-c", _RUN, str(Path(__file__).parent), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    pids = tmp_path / "pids"
    try:
        async with asyncio.timeout(60):
            while not (pids.exists() and len(pids.read_text().split()) == 2):
                assert run.poll() is None
                await asyncio.sleep(0.01)
    finally:
        run.send_signal(signal.SIGKILL)
        run.wait()
    await until_gone(*map(int, pids.read_text().split()))


async def test_what_cannot_be_sent_is_our_own_mistake(program: Toy) -> None:
    transport = program.target.transport()
    with pytest.raises(ConnectionLostError, match="not connected"):
        await transport.send(Text('{"id": "1", "audio": null, "history": []}'))
    with pytest.raises(TypeError, match="Published"):
        await transport.send(Published("topic", b""))
    await transport.close()


async def test_a_dead_program_takes_no_question(program: Toy) -> None:
    transport = SubprocessTransport(program.programs)
    await transport.connect(Address(""))
    leave = '{"id": "1", "audio": null, "history": [], "instructions": "exit"}'
    await transport.send(Text(leave))
    last = [arrival.message async for arrival in transport.receive()][-1]
    assert isinstance(last, Ended)
    with pytest.raises(ConnectionLostError, match="the program has ended"):
        await transport.send(Text(leave))
    await transport.close()


async def test_a_question_larger_than_the_pipe_is_written_whole(program: Toy) -> None:
    how = "environment " + "x" * 300_000
    capture = await program.ask(how)
    assert json.loads(capture.reply_text)[2]["instructions"] == how


@pytest.mark.parametrize(
    ("command", "folder", "wanted"),
    [
        (("no-such-program-here",), ".", "command: there is no program no-such-program-here; ins"),
        (("./nowhere",), ".", "command: there is no file ./nowhere; paths start from"),
        (("./plain",), ".", "command: ./plain is not executable; put its interpreter before it"),
        (("python3",), "nowhere", "folder: .*nowhere is not a folder; give the folder"),
    ],
)
def test_a_command_that_is_not_there_is_the_users_one_line(
    tmp_path: Path, command: tuple[str, ...], folder: str, wanted: str
) -> None:
    (tmp_path / "plain").write_text("")
    with pytest.raises(UserError, match=wanted):
        Programs(Launch("bench.toml", tmp_path / folder, command))


def test_a_transport_is_made_for_each_session(program: Toy) -> None:
    one, other = program.target.transport(), program.target.transport()
    assert isinstance(one, SubprocessTransport)
    assert one is not other


async def test_a_program_that_cannot_be_started_in_time_is_a_connect_error(tmp_path: Path) -> None:
    with started(tmp_path, "hang", connect_timeout_s=0.1) as program:
        with pytest.raises(ConnectError) as caught:
            await program.target.transport().connect(Address(""))
        assert caught.value.failure == "timeout"
