"""Logs of attempts made up for `test_second_opinion.py`, named by what happens in them.

Every sound is noise that stands out from its first sample to its last, so that its edges are
known to the sample; a log's times are whatever its script says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float32]
INPUT_RATE, OUTPUT_RATE, FRAME_MS = 16_000, 8_000, 20
_MS = 1_000_000
_START = 5_000_000_000


def sound(ms: float, seed: int = 1) -> Samples:
    """Return noise with no sample near zero."""
    rng = np.random.default_rng(seed)
    count = round(ms * OUTPUT_RATE / 1000)
    signs = rng.choice([-1.0, 1.0], count)
    return (signs * rng.uniform(0.1, 0.3, count)).astype(np.float32)


def silence(ms: float) -> Samples:
    """Return digital silence."""
    return np.zeros(round(ms * OUTPUT_RATE / 1000), dtype=np.float32)


@dataclass(slots=True)
class Script:
    """One attempt as it is written down; times are ms from the start of the outgoing stream.

    Attributes:
        kind: The header's `latency_kind`.
        onset_ms: Start of the user's speech in the outgoing stream.
        speech_end_ms: Its end, likewise.
        clip_end_ms: End of the clip; with a commit it is cut at `speech_end_ms`.
        late_ms: How late frame k leaves.
        commit_after_ms: Wait before the commit or the request.
    """

    kind: str = "server-vad"
    onset_ms: float = 200.0
    speech_end_ms: float = 1234.5
    clip_end_ms: float = 1500.0
    late_ms: Callable[[int], float] = lambda _: 0.3
    commit_after_ms: int = 0
    rows: list[dict[str, Any]] = field(default_factory=list)
    pieces: list[Samples] = field(default_factory=list)

    def say(self, at_ms: float, kind: str, **fields: Any) -> Script:
        """Add one row of the other side."""
        row = {"t_ns": _START + round(at_ms * _MS), "dir": "in", "kind": kind, "bytes": 0}
        self.rows.append(row | fields)
        return self

    def piece(self, at_ms: float, samples: Samples, reply: str = "a") -> Script:
        """Add one piece of reply audio."""
        self.pieces.append(samples)
        audio = {"samples": len(samples), "encoding": "pcm16", "rate": OUTPUT_RATE}
        return self.say(at_ms, "reply_audio", reply=reply, **audio)

    def flow(
        self,
        at_ms: float,
        samples: Samples,
        chunk_ms: float = 40.0,
        pace: float = 1.0,
        reply: str = "a",
        late_ms: Callable[[int], float] = lambda _: 0.0,
    ) -> Script:
        """Add audio in chunks, each `pace` times its length after the one before."""
        size = round(chunk_ms * OUTPUT_RATE / 1000)
        for number, begin in enumerate(range(0, len(samples), size)):
            at = at_ms + number * chunk_ms * pace + late_ms(number)
            self.piece(at, samples[begin : begin + size], reply)
        return self

    def last_ms(self) -> float:
        """Return when the last row of the other side came."""
        return float(max(row["t_ns"] for row in self.rows) - _START) / _MS

    def log(self) -> tuple[list[dict[str, Any]], Samples]:
        """Return the rows, in order of time as a session would note them, and the stream."""
        header = {
            "t_ns": _START,
            "dir": "out",
            "kind": "start",
            "bytes": 0,
            "input_rate": INPUT_RATE,
            "output_rate": OUTPUT_RATE,
            "frame_ms": FRAME_MS,
            "lead_in_samples": 0,
            "clip_samples": _samples(self.clip_end_ms),
            "onset_sample": _samples(self.onset_ms),
            "speech_end_sample": _samples(self.speech_end_ms),
            "end_kind": "speech",
            "latency_kind": self.kind,
            "commit_after_ms": self.commit_after_ms,
            "pacing": "real-time",
        }
        rows = [*self._sent(), *self.rows]
        stream = np.concatenate([*self.pieces, silence(0)])
        return [header, *rows], stream

    def _sent(self) -> Iterator[dict[str, Any]]:
        if any(row["kind"] == "request" for row in self.rows):
            return
        commit = self.kind == "commit"
        end = _samples(self.speech_end_ms if commit else self.clip_end_ms + 4000)
        frame = _samples(FRAME_MS)
        for number, begin in enumerate(range(0, end, frame)):
            size = min(frame, end - begin)
            due = _START + round((begin + size) / INPUT_RATE * 1e9)
            sent = due + round(self.late_ms(number) * _MS)
            audio = {"due_ns": due, "samples": size, "bytes": 2 * size}
            yield {"t_ns": sent, "dir": "out", "kind": "audio"} | audio
        if commit:
            due = sent + self.commit_after_ms * _MS
            yield {"t_ns": due + 90_000, "dir": "out", "kind": "commit", "due_ns": due, "bytes": 30}


def _samples(ms: float) -> int:
    return round(ms * INPUT_RATE / 1000)


def burst() -> Script:
    """A whole reply at once."""
    script = Script().say(1500, "speech_stopped", audio_ms=1234)
    script.say(1700, "reply_started", reply="a").flow(1734.5, sound(900), pace=0.0)
    return script.say(1735, "reply_ended", reason="completed", reply="a", detail="")


def real_time() -> Script:
    """As fast as it plays, each piece a little off."""
    lates = (0, 3, -2, 7, 1, 0, 4, -5)
    script = Script(late_ms=lambda k: (k % 5) * 0.7).say(1300, "speech_stopped", audio_ms=1234)
    script.say(1480, "reply_text", text=" ", reply="a").say(
        1490, "reply_text", text="Ye", reply="a"
    )
    script.flow(1500, sound(1200), late_ms=lambda k: lates[k % 8])
    return script.say(2800, "reply_ended", reason="completed", reply="a", detail="")


def stalls() -> Script:
    """Two waits inside the reply, one of them under 10 ms, and one inside its silence."""
    script = Script()
    script.flow(1400, sound(200)).flow(1609, sound(200, 2)).flow(1900, sound(120, 3))
    script.flow(2020, silence(200)).flow(2400, sound(200, 4), reply="a")
    return script.say(2700, "reply_ended", reason="completed", reply="a", detail="")


def leading_silence() -> Script:
    """Silence is sent first, then sound; silence at the end is no part of the reply."""
    audio = np.concatenate([silence(333), sound(700), silence(400)])
    return Script().flow(1300, audio, chunk_ms=30)


def early_cancelled() -> Script:
    """A reply begins in a pause of the user, is taken back, and the answer follows."""
    script = Script(speech_end_ms=2400, clip_end_ms=2500)
    script.say(900, "speech_stopped", audio_ms=800).say(950, "reply_started", reply="a")
    script.flow(1000, sound(3000), pace=0.1).say(1350, "speech_started", audio_ms=1250)
    script.say(1352, "reply_ended", reason="cancelled", reply="a", detail="turn_detected")
    script.say(2600, "speech_stopped", audio_ms=2400).say(2650, "reply_started", reply="b")
    script.flow(2700, sound(500, 2), reply="b")
    return script.say(3300, "reply_ended", reason="completed", reply="b", detail="")


def cancelled_in_the_middle() -> Script:
    """The answer itself is cut off with much of it still queued."""
    script = Script().flow(1500, sound(2000), pace=0.2)
    return script.say(2222.2, "reply_ended", reason="cancelled", reply="a", detail="")


def interrupted() -> Script:
    """The endpoint stops its reply without a name; a second one follows."""
    script = Script().flow(1500, sound(1500), pace=0.0, reply="")
    script.say(2000, "interrupted")
    return script.flow(2500, sound(300, 2), reply="")


def taken_back_unheard() -> Script:
    """A reply is opened and cancelled after t0 with nothing in it; the next is the answer."""
    script = Script().say(1400, "reply_started", reply="a")
    script.say(1450, "reply_ended", reason="cancelled", reply="a", detail="")
    script.say(1500, "reply_started", reply="b").flow(1600, sound(600), reply="b")
    return script.say(2300, "reply_ended", reason="completed", reply="b", detail="")


def taken_back_with_words() -> Script:
    """A reply has words, and is cancelled before it sounds; the next is the answer."""
    script = Script().say(1400, "reply_started", reply="a")
    script.say(1410, "reply_text", text="Well", reply="a").say(1450, "interrupted")
    script.say(1451, "reply_ended", reason="cancelled", reply="a", detail="")
    script.say(1500, "reply_started", reply="b").say(1550, "reply_text", text="Six", reply="b")
    script.flow(1600, sound(600), reply="b")
    return script.say(2300, "reply_ended", reason="completed", reply="b", detail="")


def talk_over() -> Script:
    """The reply begins while the user still speaks."""
    script = Script().flow(1000, np.concatenate([silence(50), sound(900)]))
    return script.say(2100, "reply_ended", reason="completed", reply="a", detail="")


def commit() -> Script:
    """The clip is cut after its last voiced sample; its last frame is short."""
    script = Script("commit", late_ms=lambda k: 0.2 + (k % 3))
    return script.flow(1300, np.concatenate([silence(20), sound(500)]), pace=0.5)


def commit_later() -> Script:
    """As before, with a wait before the commit."""
    script = Script("commit", speech_end_ms=1240.0, commit_after_ms=150)
    return script.flow(1500, sound(500), chunk_ms=100)


def request() -> Script:
    """The whole clip at once, the reply as one stream."""
    script = Script("request", commit_after_ms=250).say(7.5, "request", dir="out")
    return script.flow(600, sound(800), chunk_ms=90, pace=0.3)


def text_only() -> Script:
    """Words and no audio."""
    script = Script("text").say(1400, "reply_text", text="\n", reply="a")
    script.say(1466.25, "reply_text", text="Paris", reply="a")
    return script.say(1500, "reply_ended", reason="completed", reply="a", detail="")


def no_reply() -> Script:
    """Nothing but the server's word that the user stopped."""
    return Script().say(1400, "speech_stopped", audio_ms=1234)


def silent_reply() -> Script:
    """Audio without a sound."""
    return Script().flow(1500, silence(900))


def ended_before_its_audio() -> Script:
    """Odd order: the end comes before the last pieces, words before the reply begins."""
    script = Script().say(1390, "reply_text", text="No", reply="a")
    script.say(1400, "reply_started", reply="a").flow(1450, sound(300))
    script.say(1500, "reply_ended", reason="completed", reply="a", detail="")
    return script.flow(1900, sound(300, 2))


def untold() -> Script:
    """Nothing but audio and words: 1.5 s of quiet part what came before the question."""
    script = Script(onset_ms=2500, speech_end_ms=3400, clip_end_ms=3500)
    script.say(90, "reply_text", text="Hello", reply="").flow(100, sound(600), pace=0.0, reply="")
    script.say(3700, "reply_text", text="Yes", reply="")
    return script.flow(3800, sound(500, 2), reply="")


def untold_and_unanswered() -> Script:
    """A greeting of which nothing was told, and nothing after it."""
    script = Script(onset_ms=2500, speech_end_ms=3400, clip_end_ms=3500)
    return script.flow(100, sound(600), pace=0.0, reply="")


def cut_off() -> Script:
    """The server ends the turn in a pause and never corrects itself."""
    script = Script().say(300, "speech_started", audio_ms=200)
    script.say(1100, "speech_stopped", audio_ms=900)
    return script.flow(1200, sound(800), chunk_ms=20)


def rows_without_a_possible_time() -> Script:
    """Rows that cannot be placed in time."""
    script = real_time()
    script.say(1340, "reply_text", text="early", reply="a").rows[-1]["t_ns"] = None
    return script.say(9e6, "speech_stopped", audio_ms=1)


def clicks_and_stops() -> Script:
    """A click long before the answer is no answer; a stop consonant is."""
    audio = [silence(100), sound(5), silence(400), sound(40, 2), silence(80), sound(500, 3)]
    audio += [silence(90), sound(30, 4), silence(500), sound(6, 5), silence(300)]
    return Script().flow(1300, np.concatenate(audio))


def hiss() -> Script:
    """The reply stands in a hiss that is louder than -60 dBFS."""
    audio = np.concatenate([silence(500), sound(700), silence(300)])
    noise = np.random.default_rng(9).normal(0, 0.004, len(audio)).astype(np.float32)
    return Script().flow(1300, np.where(audio == 0, noise, audio).astype(np.float32))


def soft_start_in_hiss() -> Script:
    """The reply begins 14 dB above a hiss: that is audible, too."""
    soft = (0.009 * np.sign(sound(200, 2))).astype(np.float32)
    audio = np.concatenate([silence(500), soft, sound(600), silence(300)])
    noise = np.random.default_rng(9).normal(0, 10 ** (-55 / 20), 8 * 1600)
    return Script().flow(1300, np.where(audio == 0, noise, audio).astype(np.float32))


def before_the_question() -> Script:
    """Words, a first packet and a belief from before the user began answer nothing."""
    script = Script(onset_ms=900).say(300, "speech_stopped", audio_ms=200)
    script.say(700, "reply_text", text="So", reply="a")
    return script.flow(800, np.concatenate([silence(700), sound(300)]))


def before_the_request() -> Script:
    """The same of a request: what comes before it was sent is no answer."""
    script = Script("request", commit_after_ms=300).say(500, "request", dir="out")
    return script.flow(400, sound(50)).flow(700, sound(400, 2))


def duplex() -> Script:
    """A greeting, a backchannel and the answer, in a stream that always flows."""
    audio = np.concatenate(
        [silence(40), sound(500), silence(2000), sound(200, 2), silence(2200), sound(900, 3)]
    )
    script = Script("duplex", onset_ms=1600, speech_end_ms=4300, clip_end_ms=4400)
    script.say(100, "reply_text", text="Hello", reply="").say(
        2700, "reply_text", text="mm", reply=""
    )
    script.say(4999, "reply_text", text="It is", reply="")
    return script.flow(31, np.concatenate([audio, silence(2000)]), chunk_ms=80, reply="")


def duplex_talk_over() -> Script:
    """The answer begins before the user has ended."""
    audio = np.concatenate([silence(3000), sound(1500), silence(2000)])
    script = Script("duplex", onset_ms=600, speech_end_ms=3500, clip_end_ms=3600)
    return script.flow(45, audio, chunk_ms=80, reply="")


def duplex_hiccup() -> Script:
    """The stream pauses 300 ms in its silence; the player is back in step before the answer."""
    audio = np.concatenate([silence(2500), sound(900), silence(2000)])
    script = Script("duplex", onset_ms=300, speech_end_ms=1500, clip_end_ms=1600)
    late = {12: 300.0, 13: 220.0, 14: 140.0, 15: 60.0}
    return script.flow(50, audio, chunk_ms=80, reply="", late_ms=lambda k: late.get(k, 0.0))


def duplex_stall() -> Script:
    """The stream pauses inside the answer; what follows stays late until there is silence."""
    audio = np.concatenate([silence(2000), sound(900), silence(300), sound(400, 2), silence(2000)])
    script = Script("duplex", onset_ms=300, speech_end_ms=1500, clip_end_ms=1600)
    late = {28: 130.0, 29: 50.0}
    return script.flow(50, audio, chunk_ms=80, reply="", late_ms=lambda k: late.get(k, 0.0))


MADE_UP: tuple[Callable[[], Script], ...] = (
    burst,
    real_time,
    stalls,
    leading_silence,
    early_cancelled,
    cancelled_in_the_middle,
    interrupted,
    taken_back_unheard,
    taken_back_with_words,
    talk_over,
    commit,
    commit_later,
    request,
    text_only,
    no_reply,
    silent_reply,
    ended_before_its_audio,
    untold,
    untold_and_unanswered,
    cut_off,
    rows_without_a_possible_time,
    clicks_and_stops,
    hiss,
    soft_start_in_hiss,
    before_the_question,
    before_the_request,
    duplex,
    duplex_talk_over,
    duplex_hiccup,
    duplex_stall,
)
