"""The sound card with real parts: PortAudio on a virtual card, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes.util import find_library
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np
import pytest
from needs import needs_extra
from numpy.typing import NDArray
from virtual_card import FIRST, LIMIT_S, RATE, VirtualCard, jack_card, virtual_card

from voxmeter.client import audio

needs_extra("sounddevice", "live")
if find_library("portaudio") is None and os.environ.get("CI", "").lower() != "true":
    pytest.skip("needs PortAudio: apt-get install -y libportaudio2", allow_module_level=True)

HERE = Path(__file__).parent
QUESTION = sorted((HERE.parent / "suites" / "demo_items").glob("*.ogg"))[0]
TRIES = 5
"""A machine under load makes holes in any sound; a fault of ours makes one every time."""


class Program:
    """`card_program.py`, spoken to by lines."""

    def __init__(self, folder: Path, environment: dict[str, str], *options: str) -> None:
        self.folder = folder
        self.seen: list[dict[str, Any]] = []
        self.process = subprocess.Popen(
            [*FIRST, sys.executable, str(HERE / "card_program.py"), str(folder), *options],
            env={**environment, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Read on until something happens; return it."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event: dict[str, Any] = json.loads(line)
            self.seen.append(event)
            if wanted(event):
                return event
        raise AssertionError((self.seen[-3:], self.complaints()))

    def event(self, name: str, **known: object) -> dict[str, Any]:
        return self.until(lambda e: e["event"] == name and known.items() <= e.items())

    def tell(self, *words: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()

    def play(self, samples: NDArray[np.int16]) -> None:
        path = self.folder / f"play{len(self.seen)}.raw"
        path.write_bytes(samples.tobytes())
        self.tell("play", str(path))

    def played(self, samples: int) -> None:
        """Read on until that many samples have been put out since the beginning."""
        self.until(lambda _: sum(e["n"] for e in self.all("played")) >= samples)

    def all(self, name: str) -> list[dict[str, Any]]:
        return [e for e in self.seen if e["event"] == name]

    def complaints(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read()

    def quit(self) -> None:
        self.tell("quit")
        self.event("over")
        assert self.process.wait(LIMIT_S) == 0
        assert self.complaints() == ""


@contextmanager
def program(
    card: VirtualCard, folder: Path, *options: str, limit_s: float = LIMIT_S
) -> Iterator[Program]:
    folder.mkdir(exist_ok=True)
    running = Program(folder, card.environment, *options)
    limit = Timer(limit_s, running.process.kill)
    limit.start()
    try:
        yield running
    finally:
        limit.cancel()
        running.process.kill()
        running.process.wait(LIMIT_S)
        for stream in (running.process.stdin, running.process.stdout, running.process.stderr):
            assert stream is not None
            stream.close()


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VirtualCard]:
    """One card for the tests that leave it as it was."""
    with virtual_card(tmp_path_factory.mktemp("card") / "pulse") as card:
        yield card


def noise(seconds: float, seed: int = 0) -> NDArray[np.int16]:
    drawn = np.random.default_rng(seed).standard_normal(round(seconds * RATE))
    return (3000 * drawn).astype(np.int16)


def question() -> NDArray[np.int16]:
    """A recorded question with half a second of silence before it, as a user takes."""
    pcm = audio.resample(audio.read(QUESTION), RATE)
    spoken = (32_767 * pcm.samples).round().astype(np.int16)
    return np.concatenate([np.zeros(RATE // 2, np.int16), spoken])


def place(heard: NDArray[np.int16], wanted: NDArray[np.int16]) -> int | None:
    """Return where in what was heard the samples stand, each and every one of them the same."""
    loud = np.flatnonzero(wanted)
    body = wanted[loud[0] : loud[-1] + 1]
    at = heard.tobytes().find(body.tobytes())
    while at > 0 and at % 2 == 1:
        at = heard.tobytes().find(body.tobytes(), at + 1)
    return None if at < 0 else at // 2 - int(loud[0])


class Talk:
    """A question into the microphone, a reply out of the speaker, and what the room heard."""

    def __init__(self, card: VirtualCard, folder: Path) -> None:
        self.said, self.reply = question(), noise(1)
        write(folder / "question.wav", self.said)
        with program(card, folder) as running:
            running.event("listening")
            with card.hear() as room:
                card.say(folder / "question.wav")
                running.play(self.reply)
                running.played(len(self.reply))
                heard = np.frombuffer(room.further(0.3), np.int16).reshape(-1, 2)
            running.quit()
        self.seen = running
        self.room = [np.ascontiguousarray(side) for side in heard.T]
        self.microphone = np.fromfile(folder / "heard.raw", np.int16)

    @property
    def by_stamps_ms(self) -> float:
        """From the question's first sample to the reply's, by the devices' stamps."""
        heard = place(self.microphone, self.said)
        assert heard is not None
        block = self.seen.all("block")[max(heard, 0) // 960]
        taken_ns = block["taken"] + (heard % 960) * 1e9 / RATE
        return float(self.seen.all("played")[0]["heard"] - taken_ns) / 1e6

    @property
    def in_the_room_ms(self) -> float:
        """The same, counted in a recording of both."""
        asked, replied = place(self.room[0], self.said), place(self.room[1], self.reply)
        assert asked is not None
        assert replied is not None
        return 1000 * (replied - asked) / RATE

    @property
    def whole(self) -> bool:
        sides = (self.room[0], self.said), (self.room[1], self.reply), (self.microphone, self.said)
        return all(place(*side) is not None for side in sides)


def write(path: Path, samples: NDArray[np.int16]) -> None:
    import soundfile

    soundfile.write(path, samples, RATE)


@pytest.fixture(scope="module")
def talk(card: VirtualCard, tmp_path_factory: pytest.TempPathFactory) -> Talk:
    for _ in range(TRIES):
        done = Talk(card, tmp_path_factory.mktemp("talk"))
        if done.whole:
            return done
    pytest.fail(f"not one of {TRIES} round trips was exact")


def test_a_question_arrives_and_a_reply_leaves_bit_for_bit(talk: Talk) -> None:
    assert place(talk.microphone, talk.said) is not None
    assert place(talk.room[1], talk.reply) is not None


def test_the_devices_stamps_tell_what_the_room_heard_to_less_than_a_block(talk: Talk) -> None:
    """To 5 ms on a quiet machine, which `benchmarks/live_hop.py` measures; never by a block."""
    assert talk.by_stamps_ms == pytest.approx(talk.in_the_room_ms, abs=15)


def test_every_block_is_20_ms_behind_the_one_before_and_handed_over_after_it_was_taken(
    talk: Talk,
) -> None:
    blocks = talk.seen.all("block")
    assert {block["n"] for block in blocks} == {1920}
    assert all(block["came"] > block["taken"] for block in blocks)
    taken = [block["taken"] for block in blocks]
    assert taken == sorted(taken)
    assert len(talk.microphone) == 960 * len(blocks)


def test_what_was_played_is_told_once_in_order_and_without_a_hole(talk: Talk) -> None:
    played = talk.seen.all("played")
    ends = [event["at"] + event["n"] for event in played]
    assert [event["at"] for event in played] == [0, *ends[:-1]]
    assert ends[-1] == len(talk.reply)


def test_a_cleared_reply_stops_and_every_sample_of_it_is_played_or_counted(
    card: VirtualCard, tmp_path: Path
) -> None:
    with program(card, tmp_path) as running:
        running.event("listening")
        running.play(noise(5))
        running.event("played")
        running.tell("clear")
        cleared = running.event("cleared")["samples"]
        running.play(noise(0.5, 1))
        running.until(lambda e: e["event"] == "played" and e["at"] + e["n"] == round(5.5 * RATE))
        played = sum(event["n"] for event in running.all("played"))
        assert cleared > 2 * RATE
        assert played + cleared == round(5.5 * RATE)
        running.quit()


def test_a_reply_that_runs_dry_is_told_of(card: VirtualCard, tmp_path: Path) -> None:
    with program(card, tmp_path) as running:
        running.event("listening")
        running.play(noise(0.1))
        running.played(round(0.1 * RATE))
        for _ in range(5):
            running.event("block")
        running.play(noise(0.1))
        trouble = running.event("trouble", kind="starved")
        assert trouble["count"] > 0
        running.quit()


def test_a_card_that_is_pulled_out_is_missed_and_taken_up_again(tmp_path: Path) -> None:
    with virtual_card(tmp_path / "pulse") as own, program(own, tmp_path) as running:
        running.event("listening")
        own.kill()
        lost = running.event("trouble", kind="lost")
        assert "plug it in again" in lost["text"]
        running.play(noise(0.5))  # into nothing: never played, but counted
        own.start()
        running.event("trouble", kind="back")
        running.event("block")
        running.play(noise(0.1, 1))
        assert running.event("played")["at"] == round(0.5 * RATE)
        running.quit()


def test_a_sound_server_that_hangs_is_missed_and_taken_up_again(tmp_path: Path) -> None:
    with virtual_card(tmp_path / "pulse") as own, program(own, tmp_path) as running:
        running.event("listening")
        own.signal(signal.SIGSTOP)
        running.event("trouble", kind="lost")
        own.signal(signal.SIGCONT)
        running.event("trouble", kind="back")
        running.event("block")
        running.quit()


def test_a_session_ends_though_its_sound_server_hangs(tmp_path: Path) -> None:
    with virtual_card(tmp_path / "pulse") as own, program(own, tmp_path) as running:
        running.event("listening")
        own.signal(signal.SIGSTOP)
        running.quit()
        own.signal(signal.SIGCONT)


def test_the_table_names_the_devices_and_which_are_the_defaults(card: VirtualCard) -> None:
    code = "from voxmeter.client.live.devices import list_devices; print(list_devices())"
    table = child(code, card.environment).stdout
    assert table.splitlines()[0].split()[:3] == ["no.", "name", "system"]
    assert "microphone speaker" in next(x for x in table.splitlines() if " default " in x)


@pytest.mark.parametrize("wanted", ["pulse", "0", "pulse, alsa"])
def test_a_device_is_chosen_by_name_or_number(
    card: VirtualCard, tmp_path: Path, wanted: str
) -> None:
    with program(card, tmp_path, wanted, wanted) as running:
        assert running.event("open")["microphone"] == "pulse"
        running.quit()


def test_an_echo_canceller_is_noted_beside_the_figures(card: VirtualCard, tmp_path: Path) -> None:
    needs_extra("pywebrtc_audio", "echo")
    with program(card, tmp_path, "", "", "echo") as running:
        assert any("echo canceller" in note for note in running.event("open")["notes"])
        running.event("block")
        running.quit()


def likeness(heard: NDArray[np.int16], wanted: NDArray[np.int16]) -> float:
    """Return the correlation of samples with the place in what was heard that is most like them."""
    from scipy.signal import correlate

    far, near = heard.astype(float), wanted.astype(float)
    at = int(np.argmax(correlate(far, near, "valid", "fft")))
    return float(np.corrcoef(far[at : at + len(near)], near)[0, 1])


@pytest.mark.parametrize("rate", [44_100, 16_000])
def test_a_card_of_one_channel_and_one_other_rate_is_heard_and_played(
    tmp_path: Path, rate: int
) -> None:
    """Its speaker is led into its own microphone; both ways are resampled."""
    with jack_card(tmp_path / "jack", rate) as card:
        for attempt in range(TRIES):
            with program(card, tmp_path / f"{attempt}", "system", "system") as running:
                opened = running.event("open")
                running.event("listening")
                card.run("jack_connect", "PortAudio:out_0", "PortAudio:in_0").wait(LIMIT_S)
                running.play(question())
                running.played(len(question()))
                for _ in range(15):
                    running.event("block")
                running.quit()
            heard = np.fromfile(tmp_path / f"{attempt}" / "heard.raw", np.int16)
            if likeness(heard, question()) > 0.99:
                break
        else:
            pytest.fail(f"not one of {TRIES} tries came through")
    assert (opened["rate"], opened["host"]) == (RATE, "JACK Audio Connection Kit")
    assert [note.split(" samples")[0] for note in opened["notes"]] == [
        f"the microphone runs at {rate}",
        f"the speaker runs at {rate}",
    ]


def child(code: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**environment, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def refusal(tmp_path: Path, before: str = "", **environment: str) -> str:
    """Return what a user is told whose card is asked for its devices."""
    code = f"""
{before}
from voxmeter.client.live.devices import list_devices
from voxmeter.endpoints.errors import UserError
try:
    print("no error", list_devices())
except UserError as error:
    print(error)
"""
    surroundings = {**os.environ, "HOME": str(tmp_path), "PULSE_SERVER": f"unix:{tmp_path}/none"}
    done = child(code, {**surroundings, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_machine_without_a_device_says_what_to_do(tmp_path: Path) -> None:
    told = refusal(tmp_path)
    assert told.startswith("sound: this machine has no sound device; plug in a headset")


def test_a_broken_setting_of_alsa_is_named(tmp_path: Path) -> None:
    (tmp_path / ".asoundrc").write_text('hint { show on description "x" }\npcm.x {\n')
    told = refusal(tmp_path)
    assert "PortAudio does not start" in told
    assert "-9999" in told
    assert f"mistake in {tmp_path}/.asoundrc: `aplay -L` names the line" in told


def test_a_configuration_of_alsa_that_is_not_there_is_named(tmp_path: Path) -> None:
    told = refusal(tmp_path, ALSA_CONFIG_PATH=f"{tmp_path}/none.conf")
    assert told.startswith(f"sound: ALSA_CONFIG_PATH: no such file: {tmp_path}/none.conf; unset it")


def test_portaudio_that_is_missing_is_to_be_installed(tmp_path: Path) -> None:
    told = refusal(tmp_path, "import ctypes.util; ctypes.util.find_library = lambda name: None")
    assert told.startswith("sound: the PortAudio library is not installed; install it: apt-get")


def test_sounddevice_that_is_missing_is_to_be_installed(tmp_path: Path) -> None:
    told = refusal(tmp_path, "import sys; sys.modules['sounddevice'] = None")
    assert told == "voxmeter live: needs sounddevice; pip install 'voxmeter[live]'"
