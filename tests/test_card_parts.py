"""The parts of the sound card by themselves: clock, stamps, buffers, rates, signals, choice."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from threading import Event
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from needs import needs_extra
from numpy.typing import NDArray

from voxmeter.client.live import portaudio
from voxmeter.client.live.card_opening import QUEUE_BLOCKS, Opening
from voxmeter.client.live.device_clock import AGAIN_NS, DeviceClock
from voxmeter.client.live.device_rate import BLOCK, RATE, Incoming, Outgoing
from voxmeter.client.live.devices import Device, choose
from voxmeter.client.live.echo import EchoCanceller
from voxmeter.client.live.even_stamps import EvenStamps
from voxmeter.client.live.playout_buffer import PlayoutBuffer, Stretch
from voxmeter.client.live.signals import Found, Tally, Watch
from voxmeter.client.live.sound import Block, Played
from voxmeter.endpoints.errors import UserError

MS = 1_000_000
BLOCK_NS = 20 * MS


class Hands:
    """The session's clock, moved by hand, with a device's clock beside it."""

    def __init__(self, device_s: float = 1_800_000_000.0) -> None:
        self.now_ns = 5_000_000_000
        self.ahead_s = device_s - 5.0

    def now(self) -> int:
        return self.now_ns

    async def sleep_until(self, t_ns: int) -> None:
        raise NotImplementedError

    def device(self) -> float:
        return self.now_ns / 1e9 + self.ahead_s


def test_a_moment_of_the_device_is_one_of_the_session() -> None:
    hands = Hands()
    clock = DeviceClock(hands.device, hands)
    found = clock.ns(hands.device() - 0.04, hands.device(), hands.now())
    assert found == pytest.approx(hands.now() - 40 * MS, abs=1_000)


def test_a_drift_is_followed_and_is_no_step() -> None:
    hands = Hands()
    clock = DeviceClock(hands.device, hands)
    for _ in range(5):
        hands.now_ns += AGAIN_NS
        hands.ahead_s += 0.0015
        assert clock.check(hands.device(), hands.now()) == 0
    found = clock.ns(hands.device(), hands.device(), hands.now())
    assert found == pytest.approx(hands.now(), abs=1_000)


@pytest.mark.parametrize("step_s", [3600.0, 0.05, -0.05, -3600.0])
def test_a_clock_that_is_set_is_told_and_stamps_of_both_sides_stay_right(step_s: float) -> None:
    hands = Hands()
    clock = DeviceClock(hands.device, hands)
    old_s, old_ns = hands.device(), hands.now()
    hands.now_ns += BLOCK_NS
    hands.ahead_s += step_s
    assert clock.check(hands.device(), hands.now()) == pytest.approx(step_s * 1e9, abs=1_000)
    assert clock.ns(old_s, old_s, old_ns) == pytest.approx(old_ns, abs=1_000)
    now = clock.ns(hands.device(), hands.device(), hands.now())
    assert now == pytest.approx(hands.now(), abs=1_000)


def test_a_late_callback_is_no_step_of_the_clock() -> None:
    hands = Hands()
    clock = DeviceClock(hands.device, hands)
    current_s = hands.device()
    hands.now_ns += 400 * MS
    assert clock.check(current_s, hands.now()) == 0


def test_stamps_that_wander_give_moments_that_go_on_evenly() -> None:
    even = EvenStamps(RATE)
    wander = [0, 3, -3, 5, -5, 2, -2, 1, -1, 0] * 40
    found = [even.even(BLOCK, n * BLOCK_NS + w * MS) for n, w in enumerate(wander)]
    off = [abs(moment - n * BLOCK_NS) for n, moment in enumerate(found)][100:]
    assert max(off) <= MS


def test_a_gap_in_the_stamps_begins_anew() -> None:
    even = EvenStamps(RATE)
    for n in range(50):
        even.even(BLOCK, n * BLOCK_NS)
    assert even.even(BLOCK, 50 * BLOCK_NS + 300 * MS) == 50 * BLOCK_NS + 300 * MS


def drain(buffer: PlayoutBuffer, frames: int) -> tuple[bytes, list[Stretch]]:
    data = bytearray(b"\xff" * 2 * frames)
    taken = buffer.fill(memoryview(data))
    return bytes(data), taken


def test_an_empty_buffer_plays_silence() -> None:
    data, taken = drain(PlayoutBuffer(2), 100)
    assert data == bytes(200)
    assert taken == []


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.integers(1, 2_000)),
            st.tuples(st.just("fill"), st.integers(1, 1_000)),
            st.tuples(st.just("clear"), st.just(0)),
        ),
        max_size=30,
    )
)
def test_every_frame_is_played_in_order_or_counted_as_thrown_away(
    steps: list[tuple[str, int]],
) -> None:
    buffer = PlayoutBuffer(2)
    played: list[int] = []
    thrown = 0
    for verb, count in [*steps, ("fill", 100_000)]:
        if verb == "put":
            first = buffer.put_frames
            samples = (np.arange(first, first + count) % 30_000 + 1).astype(np.int16)
            buffer.put(samples.tobytes())
        elif verb == "clear":
            thrown += buffer.clear()
        else:
            data, taken = drain(buffer, count)
            samples = np.frombuffer(data, np.int16)
            for one in taken:
                positions = np.arange(one.position, one.position + one.frames)
                inside = samples[one.at : one.at + one.frames]
                assert np.array_equal(inside, positions % 30_000 + 1)
                played += positions.tolist()
    assert played == sorted(set(played))
    assert len(played) + thrown == buffer.put_frames


def tone(rate: int, seconds: float) -> NDArray[np.int16]:
    t = np.arange(round(rate * seconds)) / rate
    return (8_000 * np.sin(2 * np.pi * 440 * t) * (t > 0.5)).astype(np.int16)


@pytest.mark.parametrize("rate", [16_000, 44_100, 8_000])
def test_a_microphone_of_another_rate_keeps_its_moments(rate: int) -> None:
    incoming = Incoming(rate, 1)
    size = rate // 50
    samples = tone(rate, 1)
    blocks = []
    for n in range(len(samples) // size):
        data = samples[n * size : (n + 1) * size].tobytes()
        blocks += incoming.push(data, n * BLOCK_NS, n * BLOCK_NS + 40 * MS)
    assert {len(pcm) for pcm, _, _ in blocks} == {2 * BLOCK}
    for n, (_, taken_ns, _) in enumerate(blocks):
        assert taken_ns == pytest.approx(n * BLOCK_NS, abs=100_000)
    heard = np.frombuffer(b"".join(pcm for pcm, _, _ in blocks), np.int16)
    onset = int(np.flatnonzero(np.abs(heard.astype(int)) > 500)[0])
    assert onset / RATE == pytest.approx(0.5, abs=0.002)


def test_a_microphone_with_two_channels_is_their_mean() -> None:
    incoming = Incoming(RATE, 2)
    both = np.stack([np.full(BLOCK, 100), np.full(BLOCK, 300)], 1).astype(np.int16)
    [(pcm, _, _)] = incoming.push(both.tobytes(), 0, 0)
    assert set(np.frombuffer(pcm, np.int16)) == {200}


def test_a_speaker_with_two_channels_plays_the_same_on_both() -> None:
    outgoing = Outgoing(RATE, 2)
    outgoing.put(np.array([1, 2, 3], np.int16).tobytes())
    data = bytearray(12)
    assert outgoing.buffer.fill(memoryview(data)) == [Stretch(0, 0, 3)]
    assert list(np.frombuffer(data, np.int16)) == [1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("more", [0, 1, 7, 13])
@pytest.mark.parametrize("rate", [16_000, 44_100])
def test_a_speaker_of_another_rate_plays_all_and_tells_it_in_samples_of_the_session(
    rate: int, more: int
) -> None:
    outgoing = Outgoing(rate, 1)
    outgoing.put(bytes(2 * more))
    for start in range(0, RATE, BLOCK):
        outgoing.put(tone(RATE, 1)[start : start + BLOCK].tobytes())
    heard, told = b"", []
    size = rate // 50
    for _ in range(60):
        outgoing.flush()
        data, taken = drain(outgoing.buffer, size)
        heard += data
        told += [outgoing.played(stretch) for stretch in taken]
    ends = [position + samples for position, samples in told]
    assert [position for position, _ in told] == [0, *ends[:-1]]
    assert ends[-1] == RATE + more
    samples = np.frombuffer(heard, np.int16)
    onset = int(np.flatnonzero(np.abs(samples.astype(int)) > 500)[0])
    assert onset / rate == pytest.approx(0.5, abs=0.002)


def test_what_is_cleared_at_another_rate_is_counted_in_samples_of_the_session() -> None:
    outgoing = Outgoing(16_000, 1)
    outgoing.put(tone(RATE, 1).tobytes())
    _, [stretch] = drain(outgoing.buffer, 4_800)
    position, played = outgoing.played(stretch)
    cleared = outgoing.clear()
    assert (position, played) == (0, 14_400)
    assert played + cleared == pytest.approx(RATE, abs=3 * 240)
    outgoing.put(tone(RATE, 1).tobytes())
    _, taken = drain(outgoing.buffer, 4_800)
    assert outgoing.played(taken[-1])[0] == RATE


def found(watch: Watch, stamps_ns: list[int], late_ns: int = 10 * MS) -> list[Found]:
    out: list[Found] = []
    for stamp_ns in stamps_ns:
        came_ns = stamp_ns + BLOCK_NS + late_ns
        out += watch.look(BLOCK, stamp_ns, came_ns, flagged=False)
    return out


def test_even_stamps_are_no_trouble() -> None:
    assert found(Watch("input", RATE, 40), [n * BLOCK_NS for n in range(50)]) == []


def test_a_hole_without_a_flag_is_seen_by_the_stamps() -> None:
    stamps = [0, BLOCK_NS, 2 * BLOCK_NS + 500 * MS]
    assert found(Watch("input", RATE, 40), stamps) == [Found("time-step", 500)]


def test_a_block_that_comes_late_is_seen_without_a_flag() -> None:
    assert found(Watch("input", RATE, 40), [0], 300 * MS) == [Found("late-callback", 300)]
    assert found(Watch("input", RATE, 40), [0], 80 * MS) == []


@pytest.mark.parametrize(
    ("side", "problem"), [("input", "input-overflow"), ("output", "output-underflow")]
)
def test_a_flag_is_told(side: str, problem: str) -> None:
    seen = [*Watch(side, RATE, 40).look(BLOCK, 0, 0, flagged=True)]
    assert [one.problem for one in seen] == [problem]


def test_trouble_of_one_kind_is_told_once_a_second_with_all_that_happened() -> None:
    tally = Tally()
    tally.add([Found("dropped", 2)])
    assert [trouble.count for trouble in tally.take(10**9)] == [2]
    tally.add([Found("dropped", 3), Found("late-callback", 90)])
    tally.add([Found("dropped", 4), Found("late-callback", 60)])
    assert [(x.problem, x.count) for x in tally.take(10**9 + 1)] == [("late-callback", 90)]
    assert [(x.problem, x.count) for x in tally.take(2 * 10**9)] == [("dropped", 7)]
    assert tally.take(10**10) == []


class NoSuchFormError(Exception):
    """Stands for PortAudio's error: a text, a code, what the system below says."""


class Card:
    """A device that takes some rates and numbers of channels; its streams are moved by hand."""

    def __init__(self, rates: set[int], channels: set[int], hands: Hands) -> None:
        self.rates, self.channels, self.hands = rates, channels, hands
        self.streams: list[Any] = []
        self.closed = 0

    def open(self, **settings: Any) -> Any:
        if settings["channels"] not in self.channels:
            raise NoSuchFormError("Error opening stream: Invalid number of channels", -9998)
        if settings["samplerate"] not in self.rates:
            raise NoSuchFormError("Error opening stream: Invalid sample rate", -9997)
        stream = SimpleNamespace(
            **settings, start=lambda: None, abort=lambda: None, close=self.close, time=0.0
        )
        stream.time, stream.latency = self.hands.device(), 0.04
        self.streams.append(stream)
        return stream

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    fake = ModuleType("sounddevice")
    vars(fake)["PortAudioError"] = NoSuchFormError
    monkeypatch.setattr(portaudio, "load", lambda: fake)
    return fake


def device(**changed: Any) -> Device:
    known: dict[str, Any] = {
        "number": 0,
        "name": "Headset",
        "host": "ALSA",
        "inputs": 2,
        "outputs": 2,
        "rate": 44_100,
        "input_ms": 10.0,
        "output_ms": 10.0,
    }
    return Device(**{**known, **changed})


def opening(library: Any, card: Card, woken: Callable[[], None] = lambda: None) -> Opening:
    vars(library).update(RawInputStream=card.open, RawOutputStream=card.open)
    return Opening(library, device(), device(), clock=card.hands, wake=woken)


@pytest.mark.parametrize(
    ("rates", "channels", "noted"),
    [
        ({48_000, 44_100}, {1, 2}, []),
        ({44_100}, {1, 2}, ["44100"]),
        ({16_000}, {1}, ["16000"]),
        ({48_000}, {2}, ["2 channels"]),
        ({44_100}, {2}, ["44100", "2 channels"]),
    ],
)
def test_a_device_that_takes_less_is_opened_as_it_can_be_and_that_is_noted(
    library: Any, rates: set[int], channels: set[int], noted: list[str]
) -> None:
    facts = opening(library, Card(rates, channels, Hands())).facts
    assert facts.rate == RATE
    mine = [note for note in facts.notes if note.startswith("the microphone")]
    assert len(mine) == len(noted)
    assert all(part in note for part, note in zip(noted, mine, strict=True))
    assert len(facts.notes) == 2 * len(noted)


def test_a_device_that_takes_nothing_is_refused_and_nothing_stays_open(library: Any) -> None:
    card = Card(set(), {1}, Hands())
    with pytest.raises(NoSuchFormError):
        opening(library, card)
    half = Card({48_000}, {1}, Hands())
    vars(library).update(RawInputStream=half.open, RawOutputStream=card.open)
    with pytest.raises(NoSuchFormError):
        Opening(library, device(), device(), clock=half.hands, wake=lambda: None)
    assert half.closed == 1


def call_in(card: Card, hands: Hands) -> None:
    """Have the microphone's callback run, as it does every 20 ms."""
    hands.now_ns += BLOCK_NS
    now_s = hands.device()
    times = SimpleNamespace(inputBufferAdcTime=now_s - 0.02, currentTime=now_s)
    flags = SimpleNamespace(input_overflow=False)
    card.streams[0].time = now_s
    card.streams[0].callback(memoryview(bytes(2 * BLOCK)), BLOCK, times, flags)


def call_out(card: Card, hands: Hands) -> bytes:
    now_s = hands.device()
    times = SimpleNamespace(outputBufferDacTime=now_s + 0.04, currentTime=now_s)
    flags = SimpleNamespace(output_underflow=False)
    data = bytearray(2 * BLOCK)
    card.streams[1].time = now_s
    card.streams[1].callback(memoryview(data), BLOCK, times, flags)
    return bytes(data)


def test_a_loop_that_is_busy_for_two_seconds_loses_nothing_and_what_more_is_lost_is_counted(
    library: Any,
) -> None:
    hands, tally = Hands(), Tally()
    card = Card({48_000}, {1}, hands)
    opened = opening(library, card)
    for _ in range(QUEUE_BLOCKS + 7):
        call_in(card, hands)
    blocks = [event for event in opened.collect(tally) if isinstance(event, Block)]
    assert len(blocks) == QUEUE_BLOCKS
    assert QUEUE_BLOCKS * 20 >= 1_000
    told = {trouble.problem: trouble.count for trouble in tally.take(hands.now())}
    assert told["dropped"] == 7


def test_a_reply_with_a_hole_is_told_and_the_pause_between_two_replies_is_not(library: Any) -> None:
    hands, tally = Hands(), Tally()
    card = Card({48_000}, {1}, hands)
    opened = opening(library, card)
    for silent in (3, 60):
        opened.outgoing.put(bytes(2 * BLOCK))
        for _ in range(silent + 1):
            hands.now_ns += BLOCK_NS
            call_out(card, hands)
    opened.outgoing.put(bytes(2 * BLOCK))
    call_out(card, hands)
    played = [event for event in opened.collect(tally) if isinstance(event, Played)]
    assert [event.position for event in played] == [0, BLOCK, 2 * BLOCK]
    troubles = [x for x in tally.take(hands.now()) if x.problem == "starved"]
    assert [trouble.count for trouble in troubles] == [60]


def test_a_device_without_stamps_is_reckoned_by_its_latency(library: Any) -> None:
    hands = Hands()
    card = Card({48_000}, {1}, hands)
    opened = opening(library, card)
    times = SimpleNamespace(inputBufferAdcTime=0.0, currentTime=0.0)
    flags = SimpleNamespace(input_overflow=False)
    card.streams[0].callback(memoryview(bytes(2 * BLOCK)), BLOCK, times, flags)
    [block] = opened.collect(Tally())
    assert isinstance(block, Block)
    assert block.taken_ns == block.came_ns - 40 * MS
    assert any("no stamps" in note for note in opened.facts.notes)


def test_silence_of_a_second_or_the_end_of_a_stream_means_gone(library: Any) -> None:
    hands = Hands()
    card = Card({48_000}, {1}, hands)
    opened = opening(library, card)
    opened.start()
    assert not opened.gone
    hands.now_ns += 1_500 * MS
    call_in(card, hands)
    assert opened.gone  # the speaker has not called
    call_out(card, hands)
    assert not opened.gone
    card.streams[0].finished_callback()
    assert opened.gone


DEVICES = [
    device(number=0, name="HDA Analog", default_for=frozenset({"microphone"})),
    device(number=1, name="USB Headset", inputs=1),
    device(number=2, name="USB Headset Pro"),
    device(number=3, name="HDMI", inputs=0, default_for=frozenset({"speaker"})),
]


@pytest.mark.parametrize(
    ("wanted", "number"),
    [(None, 0), ("1", 1), ("usb headset", 1), ("pro", 2), ("HEADSET PRO, alsa", 2), (" 2 ", 2)],
)
def test_a_device_is_found_by_number_or_part_of_its_name(wanted: str | None, number: int) -> None:
    assert choose(DEVICES, wanted, "microphone").number == number


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (
            "usb",
            "--microphone usb: 2 devices fit: 1 (USB Headset, ALSA), 2 (USB Headset Pro, ALSA)",
        ),
        ("hdmi", "--microphone hdmi: HDMI, ALSA has no input; there is 0 (HDA Analog, ALSA)"),
        ("3", "--microphone 3: HDMI, ALSA has no input"),
        ("9", "--microphone 9: there is no such device; there is 0"),
        ("\x1b[2J", "--microphone \\x1b[2J: there is no such device"),
        ("", "--microphone : there is no such device"),
    ],
)
def test_a_device_that_is_not_to_be_had_is_told_with_those_that_are(wanted: str, told: str) -> None:
    with pytest.raises(UserError) as error:
        choose(DEVICES, wanted, "microphone")
    assert str(error.value).startswith(told)


def test_no_device_and_none_for_this_side_are_told_apart() -> None:
    with pytest.raises(UserError, match="no sound device"):
        choose([], None, "speaker")
    with pytest.raises(UserError, match="there is no microphone; plug one in"):
        choose([device(inputs=0)], None, "microphone")


@pytest.mark.parametrize(
    ("error", "cure"),
    [
        (("Error opening RawInputStream: Device unavailable", -9985), "another program holds it"),
        (
            ("Error: Unanticipated host error", -9999, (0, -16, "Device or resource busy")),
            "holds it",
        ),
        (
            ("Error: Unanticipated host error", -9999, (0, -13, "Permission denied")),
            "group `audio`",
        ),
        (("Error opening RawInputStream: Invalid sample rate", -9997), "none of the usual sample"),
        (("Error: Invalid number of channels", -9998), "neither one channel nor two"),
        (
            ("Error: Unanticipated host error", -9999, (0, -5, "Input/output error")),
            "--list-devices",
        ),
    ],
)
def test_a_device_that_does_not_open_says_why(error: tuple[Any, ...], cure: str) -> None:
    told = str(portaudio.refused(NoSuchFormError(*error), "the microphone (x)", ["ALSA: no \x1b"]))
    assert cure in told
    assert str(error[1]) in told
    assert "ALSA: no" in told
    assert "\x1b" not in told


def test_what_libraries_in_c_print_stays_off_the_screen_and_python_goes_on_printing() -> None:
    code = """
import os, sys
from voxmeter.client.live.portaudio import complaints_kept
with complaints_kept() as kept:
    os.write(2, b"ALSA lib pcm.c: underrun occurred\\n")
    print("to the screen", file=sys.stderr)
    print("to the terminal", file=sys.__stderr__)
    print(kept.take(), kept.take())
os.write(2, b"after\\n")
print("python after", file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "['ALSA lib pcm.c: underrun occurred'] []\n"
    lines = done.stderr.splitlines()
    assert lines == ["to the screen", "to the terminal", "after", "python after"]


class Starts:
    """PortAudio's count of its starts, as sounddevice keeps it; some fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *failing: int) -> None:
        self.done: list[str] = []
        self.failing = failing
        self.fake = ModuleType("sounddevice")
        self.state = vars(self.fake)
        self.state.update(
            PortAudioError=NoSuchFormError,
            _initialized=1,
            _initialize=self.initialize,
            _terminate=self.terminate,
        )
        monkeypatch.setattr(portaudio, "load", lambda: self.fake)

    def initialize(self) -> None:
        self.done.append("start")
        if self.done.count("start") in self.failing:
            raise NoSuchFormError("Error initializing PortAudio", -9999)
        self.state["_initialized"] += 1

    def terminate(self) -> None:
        self.done.append("end")
        if not self.state["_initialized"]:
            raise NoSuchFormError("PortAudio not initialized", -10000)
        self.state["_initialized"] -= 1


def test_looking_again_goes_on_after_a_start_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    starts = Starts(monkeypatch, 1)
    with pytest.raises(UserError, match="PortAudio does not start"):
        portaudio.look_again()
    assert portaudio.look_again() is starts.fake
    assert starts.done == ["end", "start", "start"]


def test_a_call_that_hangs_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    starts = Starts(monkeypatch)
    let_go = Event()
    with pytest.raises(TimeoutError):
        portaudio.within(let_go.wait, 0.01)
    assert starts.state["_initialized"] == 0  # the program's end does not wait for it
    assert portaudio.look_again() is starts.fake
    assert starts.done == []  # nothing can be ended that a call is still in
    let_go.set()
    for thread in portaudio._stuck:
        thread.join()
    portaudio.look_again()
    assert starts.done == ["end", "start"]


def test_what_a_call_raises_comes_out_of_it() -> None:
    assert portaudio.within(lambda: 3, 10) == 3
    with pytest.raises(ZeroDivisionError):
        portaudio.within(lambda: 1 // 0, 10)


def level(samples: NDArray[np.int16]) -> float:
    return float(10 * np.log10(np.mean(samples.astype(float) ** 2) + 1e-9))


def test_the_reply_is_taken_out_of_the_microphone() -> None:
    """Its echo is 60 ms late and half as loud, as in a room; after 3 s it is 20 dB lower."""
    needs_extra("pywebrtc_audio", "echo")
    rng = np.random.default_rng(3)
    reply = (6_000 * rng.standard_normal(6 * RATE)).clip(-32_768, 32_767).astype(np.int16)
    late = RATE * 60 // 1000
    echo = np.concatenate([np.zeros(late, np.int16), reply[:-late] // 2])
    canceller = EchoCanceller()
    start_ns = 7_000_000_000
    out = []
    for n in range(len(reply) // BLOCK):
        part = slice(n * BLOCK, (n + 1) * BLOCK)
        wander_ns = (-1) ** n * 2 * MS  # a sound server's stamps wander
        canceller.given(reply[part].tobytes())
        canceller.played(n * BLOCK, BLOCK, start_ns + n * BLOCK_NS + wander_ns)
        out.append(canceller.clean(echo[part].tobytes(), start_ns + n * BLOCK_NS - wander_ns))
    clean = np.frombuffer(b"".join(out), np.int16)
    assert len(clean) == len(echo)
    assert level(echo[3 * RATE :]) - level(clean[3 * RATE :]) > 20


def test_without_a_reply_the_canceller_leaves_the_user_in() -> None:
    needs_extra("pywebrtc_audio", "echo")
    user = (3_000 * np.random.default_rng(4).standard_normal(2 * RATE)).astype(np.int16)
    canceller = EchoCanceller()
    parts = [
        canceller.clean(user[n * BLOCK : (n + 1) * BLOCK].tobytes(), n * BLOCK_NS)
        for n in range(len(user) // BLOCK)
    ]
    heard = np.frombuffer(b"".join(parts), np.int16)
    assert abs(level(user[RATE:]) - level(heard[RATE:])) < 6
