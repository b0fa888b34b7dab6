"""From an item's recipe to a clip: what is spoken to the endpoint, and where its speech ends.

Rendering reads files, speaks texts (kept on disk, so that a text is spoken once) and finds the
bounds of speech once, on the clean source. All of it blocks: call it in a worker thread.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from voxmeter.client import audio
from voxmeter.client.audio import Pcm
from voxmeter.client.capture import Utterance
from voxmeter.client.model_files import user_cache
from voxmeter.endpoints.codec import Json
from voxmeter.endpoints.errors import ClipError, UserError, VoxmeterError
from voxmeter.suites.suite import Gap, Item, Part, Recording, Spoken

if TYPE_CHECKING:
    from voxmeter.client.speakers import Speaker
    from voxmeter.scoring.speech import Bounds

SpeakerFor = Callable[[str], "Speaker"]
"""Returns the voice of a name, loaded; called by one thread at a time."""

_RATES_KEPT = 2
_speaking = threading.Lock()  # a voice is not for two threads at once


@dataclass(frozen=True, eq=False, slots=True)
class Clip:
    """One clip at its source's own rate, clean or altered by a condition.

    Attributes:
        pcm: The audio and the warnings of reading it.
        bounds: Where its speech begins and ends.
        sha256: Hash of the decoded audio (`audio.sha256`).
        params: What was drawn to make it from the clean clip, by name; empty for a clean one.
    """

    pcm: Pcm
    bounds: Bounds
    sha256: str
    params: Mapping[str, Json] = field(default_factory=dict)
    _made: OrderedDict[int, Utterance] = field(default_factory=OrderedDict, repr=False)

    @property
    def ms(self) -> float:
        """Length in milliseconds."""
        return self.pcm.ms

    @property
    def onset_ms(self) -> float:
        """Where the speech begins, ms from the clip's start."""
        return self.bounds.onset_ms

    @property
    def speech_end_ms(self) -> float:
        """Where the speech ends, likewise: one past the last voiced sample."""
        return self.bounds.end_ms

    @property
    def end_kind(self) -> Literal["speech", "audible"]:
        """Whether the end is that of speech, or of the last audible sample of other sound."""
        return self.bounds.kind

    def row(self) -> dict[str, object]:
        """Return the clip's fields of `trials.jsonl`."""
        return {
            "sha256": self.sha256,
            "ms": round(self.ms, 3),
            "speech_end_ms": round(self.speech_end_ms, 3),
            "end_kind": self.end_kind,
        }

    def at(self, rate: int) -> Pcm:
        """Return the audio resampled to `rate` (samples a second)."""
        return audio.resample(self.pcm, rate)

    def utterance(self, rate: int) -> Utterance:
        """Return the clip as it is sent at `rate`, with its bounds mapped to that rate's samples.

        The last rates asked for are kept, so that further trials cost nothing.
        """
        kept = self._made.get(rate)
        if kept is not None:
            return kept
        made = utterance(self.at(rate), self.bounds, self.pcm.rate)
        self._made[rate] = made
        while len(self._made) > _RATES_KEPT:
            self._made.popitem(last=False)
        return made


def utterance(pcm: Pcm, bounds: Bounds, source_rate: int) -> Utterance:
    """Return audio as it is sent, with bounds that were found at another rate.

    Args:
        pcm: The audio at the rate of the wire, of the same length in time as its source.
        bounds: Bounds on the source.
        source_rate: The source's rate, samples a second.

    Returns:
        Bounds to the nearest sample, inside the audio, at least one sample apart.
    """
    count = len(pcm.samples)
    end = audio.resampled_length(bounds.end_sample, source_rate, pcm.rate)
    end = min(max(end, 1), count)
    onset = audio.resampled_length(bounds.onset_sample, source_rate, pcm.rate)
    return Utterance(audio.to_pcm16(pcm.samples), pcm.rate, min(onset, end - 1), end, bounds.kind)


def render(item: Item, speaker_for: SpeakerFor, cache: Path | None = None) -> Clip:
    """Return the clip of an item.

    Args:
        item: Its examples and its recipe are rendered part by part; files of different rates are
            brought to the highest of them.
        speaker_for: Gives the voice for a text that is not in the cache.
        cache: Folder of spoken texts; `speech_cache()` by default.

    Raises:
        ClipError: If a file cannot be read, a text gives no speech, or nothing in the clip is
            audible; the trial is `bad_clip`.
        UserError: If a voice is unknown or not installed, or the disk is full.
    """
    place = f"{item.suite}/{item.item}"
    folder = cache or speech_cache()
    pieces = [
        _part(part, place, speaker_for, folder) if not isinstance(part, Gap) else part
        for part in _whole(item)
    ]
    pcm = _joined(pieces, place)
    if item.keep_last_ms is not None and item.shots_via == "clip":
        kept = max(1, round(item.keep_last_ms * pcm.rate / 1000))
        pcm = replace(pcm, samples=pcm.samples[-kept:])
    question = sum(_length(piece, pcm.rate) for piece in pieces[-len(item.recipe) :])
    return clip(pcm, place, max(0, len(pcm.samples) - question))


def _whole(item: Item) -> Iterator[Part]:
    """Yield what a clip is made of: each example and its answer, then the question."""
    gap = Gap(item.shot_gap_ms)
    for shot in item.shots if item.shots_via == "clip" else ():
        yield from (*shot.question, gap, *shot.answer, gap)
    yield from item.recipe


def clip(pcm: Pcm, place: str, start: int = 0) -> Clip:
    """Return audio as a clip, with the bounds of its speech.

    Args:
        pcm: The audio.
        place: What to call it in errors.
        start: Sample at which the question begins, behind worked examples: bounds are its own.

    Raises:
        ClipError: If it is empty or nothing in it is audible.
    """
    from voxmeter.scoring.speech import speech_bounds

    if not len(pcm.samples):
        raise ClipError(place, "holds no samples")
    question = pcm.samples[start:]
    bounds = speech_bounds(question, pcm.rate)
    if bounds is None:
        peak = float(np.abs(question).max())
        level = f"its peak is {20 * np.log10(peak):.0f} dBFS" if peak else "all samples are 0"
        seconds = len(question) / pcm.rate
        raise ClipError(place, f"nothing audible in {seconds:.2f} s ({level})")
    return Clip(pcm, _moved(bounds, start, pcm.rate), audio.sha256(pcm))


def _moved(bounds: Bounds, start: int, rate: int) -> Bounds:
    """Return bounds that were found in what begins at `start`, as places of the whole."""
    ms = start * 1000 / rate
    return replace(
        bounds,
        onset_ms=bounds.onset_ms + ms,
        end_ms=bounds.end_ms + ms,
        onset_sample=bounds.onset_sample + start,
        end_sample=bounds.end_sample + start,
    )


def speech_cache() -> Path:
    """Return the folder of spoken texts in the user's cache."""
    return user_cache() / "speech"


def missing(item: Item) -> tuple[Path, ...]:
    """Return the audio files of an item that are not there; reads no audio."""
    return tuple(path for path in item.files() if not path.is_file())


def speakers_of(items: Iterable[Item]) -> tuple[str, ...]:
    """Return the names of the voices that the items' recipes need, each once, sorted."""
    return tuple(
        sorted(
            {part.speaker for item in items for part in item.parts() if isinstance(part, Spoken)}
        )
    )


def _part(part: Recording | Spoken, place: str, speaker_for: SpeakerFor, folder: Path) -> Pcm:
    if isinstance(part, Recording):
        return audio.read(part.path)
    path = folder / f"{_text_key(part)}.flac"
    if (kept := _kept(path)) is not None:
        return kept
    with _speaking:
        return _kept(path) or _spoken(part, place, speaker_for(part.speaker), path)


def _kept(path: Path) -> Pcm | None:
    try:
        return audio.read(path)
    except ClipError:  # not spoken yet, or damaged: speak it (again)
        return None


def _spoken(part: Spoken, place: str, voice: Speaker, path: Path) -> Pcm:
    try:
        pieces = [np.asarray(piece, dtype=np.float32) for piece in voice.speak(part.text)]
    except VoxmeterError:
        raise
    except Exception as error:  # a synthesiser is foreign code, and this is one text of many
        found = f"voice {part.speaker!r} cannot say {part.text!r:.60}"
        raise ClipError(place, f"{found} ({type(error).__name__}: {error})") from error
    if not sum(len(piece) for piece in pieces):
        raise ClipError(place, f"voice {part.speaker!r} has nothing to say for {part.text!r:.60}")
    # as the cache keeps it, so that the first trial hears the same as all later ones
    pcm = Pcm(audio.from_pcm16(audio.to_pcm16(np.concatenate(pieces))), voice.rate)
    _keep(path, pcm)
    return pcm


def _keep(path: Path, pcm: Pcm) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            str(path.parent), f"cannot be made ({error.strerror})", "set XDG_CACHE_HOME"
        ) from error
    audio.write_flac(path, pcm.samples, pcm.rate)


def _text_key(part: Spoken) -> str:
    return hashlib.sha256(f"1\n{part.speaker}\n{part.text}".encode()).hexdigest()


def _length(piece: Pcm | Gap, rate: int) -> int:
    """Return how many samples a piece has at a rate."""
    if isinstance(piece, Gap):
        return round(piece.ms * rate / 1000)
    return audio.resampled_length(len(piece.samples), piece.rate, rate)


def _joined(pieces: Sequence[Pcm | Gap], place: str) -> Pcm:
    sounds = [piece for piece in pieces if isinstance(piece, Pcm)]
    if not sounds:
        raise ClipError(place, "the recipe has no audio")
    rate = max(piece.rate for piece in sounds)
    samples = [
        audio.resample(piece, rate).samples
        if isinstance(piece, Pcm)
        else np.zeros(_length(piece, rate), dtype=np.float32)
        for piece in pieces
    ]
    warnings = tuple(dict.fromkeys(text for piece in sounds for text in piece.warnings))
    return Pcm(samples[0] if len(samples) == 1 else np.concatenate(samples), rate, warnings)
