"""Files of every kind to samples; every broken file is built by hand."""

from __future__ import annotations

import io
import pickle
from pathlib import Path

import numpy as np
import pytest
import soundfile
import wav_bytes
from hypothesis import given, settings
from hypothesis import strategies as st
from wav_bytes import EXTENSIBLE, FLOAT, PCM, chunk, form, tone, wav

from voxmeter.client import audio
from voxmeter.client.audio import Pcm
from voxmeter.endpoints.errors import ClipError

RATE = wav_bytes.RATE
SECOND = tone(1.0)


def encoded(kind: str, subtype: str, rate: int = RATE, channels: int = 1) -> bytes:
    buffer = io.BytesIO()
    samples = np.repeat(tone(1.0, rate)[:, None], channels, axis=1)
    soundfile.write(buffer, samples, rate, format=kind, subtype=subtype)
    return buffer.getvalue()


def floats(*samples: float) -> bytes:
    return np.array(samples, dtype="<f4").tobytes()


@pytest.mark.parametrize(
    ("data", "tolerance"),
    [
        pytest.param(wav(form(PCM, 8), wav_bytes.pcm(SECOND, 8)), 1e-2, id="8 bit"),
        pytest.param(wav(form(PCM, 16), wav_bytes.pcm(SECOND, 16)), 1e-4, id="16 bit"),
        pytest.param(wav(form(PCM, 24), wav_bytes.pcm(SECOND, 24)), 1e-6, id="24 bit"),
        pytest.param(wav(form(PCM, 32), wav_bytes.pcm(SECOND, 32)), 1e-6, id="32 bit"),
        pytest.param(wav(form(EXTENSIBLE, 24), wav_bytes.pcm(SECOND, 24)), 1e-6, id="extensible"),
        pytest.param(wav(form(FLOAT, 32), SECOND.astype("<f4").tobytes()), 1e-7, id="float"),
        pytest.param(wav(form(FLOAT, 64), SECOND.astype("<f8").tobytes()), 1e-7, id="double"),
        pytest.param(encoded("FLAC", "PCM_16"), 1e-4, id="FLAC"),
        pytest.param(encoded("OGG", "OPUS"), 0.15, id="Opus"),
        pytest.param(encoded("OGG", "VORBIS"), 0.1, id="Vorbis"),
        pytest.param(encoded("MP3", "MPEG_LAYER_III"), 0.1, id="MP3"),
    ],
)
def test_common_files_are_read_at_their_own_rate(data: bytes, tolerance: float) -> None:
    pcm = audio.decode(data, "clip")
    assert (pcm.rate, len(pcm.samples), pcm.samples.dtype.name) == (RATE, RATE, "float32")
    assert np.abs(pcm.samples - SECOND)[2000:-2000].max() < tolerance
    assert pcm.warnings == ()
    assert pcm.ms == pytest.approx(1000)


def test_channels_are_mixed_by_their_mean_and_that_is_said() -> None:
    both = np.stack([SECOND, np.zeros(RATE)], axis=1).reshape(-1)
    pcm = audio.decode(wav(form(EXTENSIBLE, 24, channels=2), wav_bytes.pcm(both, 24)), "clip")
    assert np.abs(pcm.samples - SECOND / 2).max() < 1e-6
    assert pcm.warnings == ("2 channels mixed down to one",)


def test_a_stereo_mp3_at_44100_hz_is_read_with_its_rate() -> None:
    pcm = audio.decode(encoded("MP3", "MPEG_LAYER_III", 44_100, channels=2), "clip")
    assert pcm.rate == 44_100
    assert pcm.ms == pytest.approx(1000, abs=60)
    assert pcm.warnings == ("2 channels mixed down to one",)


USED = wav_bytes.pcm(SECOND, 16)
TORN_24 = wav_bytes.pcm(SECOND, 24)[:-1]
REPAIRABLE = {
    "bogus length": (wav(form(PCM, 16), USED, declared=0x7FFFFFFF), RATE, "32000 are there"),
    "streamed length": (wav(form(PCM, 16), USED, declared=0xFFFFFFFF, riff=0xFFFFFFFF), RATE, "no"),
    "zero length": (wav(form(PCM, 16), USED, declared=0, riff=0), RATE, "gives no length"),
    "header too short": (wav(form(PCM, 16), USED, declared=8000), RATE, "32000 are there"),
    "truncated": (wav(form(PCM, 16), USED)[:-16_000], RATE // 2, "is the file cut off?"),
    "odd byte": (wav(form(PCM, 16), USED + b"\1", declared=32_001), RATE, "not whole frames"),
    "a byte short": (wav(form(PCM, 24), TORN_24, declared=48_000), RATE - 1, "not whole frames"),
    "over full scale": (wav(form(FLOAT, 32), floats(0.5, 1.5, -2.0)), 3, "2 samples over full"),
}


@pytest.mark.parametrize("name", REPAIRABLE)
def test_a_header_that_does_not_fit_loses_nothing_and_is_told(name: str) -> None:
    data, samples, said = REPAIRABLE[name]
    pcm = audio.decode(data, "clip")
    assert len(pcm.samples) == samples
    assert said in "; ".join(pcm.warnings)
    assert np.abs(pcm.samples).max() <= 1


def test_a_cut_off_flac_keeps_what_decodes() -> None:
    pcm = audio.decode(encoded("FLAC", "PCM_16")[:6000], "clip")
    assert 0 < len(pcm.samples) < RATE
    assert "damaged or cut off" in "; ".join(pcm.warnings)
    assert np.abs(pcm.samples - SECOND[: len(pcm.samples)]).max() < 1e-4


HOPELESS = {
    "empty file": (b"", "empty file (0 bytes)"),
    "44-byte header": (wav(form(PCM, 16), b""), "no samples behind it"),
    "text": (b"hello, I am not audio at all", "not an audio file"),
    "binary": (bytes(range(128, 255)), "not an audio file"),
    "NaN": (wav(form(FLOAT, 32), floats(0.1, float("nan"), 0.2)), "1 of 3 samples are not finite"),
    "infinite": (wav(form(FLOAT, 32), floats(0.1, float("inf"))), "the first at 0.000 s"),
    "all NaN": (wav(form(FLOAT, 32), floats(*[float("nan")] * 10)), "10 of 10 samples"),
    "not scaled": (wav(form(FLOAT, 32), floats(100.0, -32768.0)), "float samples reach 32768"),
    "no rate": (wav(form(PCM, 16, rate=0), USED), ""),
    "absurd rate": (wav(form(PCM, 16, rate=2_000_000_000), USED), "a rate of 2000000000 Hz"),
    "many channels": (wav(form(PCM, 16, channels=500), bytes(1000)), "500 channels"),
    "damaged Ogg": (encoded("OGG", "VORBIS")[:2000], "damaged or cut-off Ogg file"),
    "damaged FLAC": (encoded("FLAC", "PCM_16")[:30], "damaged or cut-off FLAC file"),
    "only a header": (encoded("FLAC", "PCM_16")[:200], "holds no samples"),
}


@pytest.mark.parametrize("name", HOPELESS)
def test_what_cannot_be_spoken_is_one_clear_line(name: str, tmp_path: Path) -> None:
    data, said = HOPELESS[name]
    path = tmp_path / "clip.wav"
    path.write_bytes(data)
    with pytest.raises(ClipError) as caught:
        audio.read(path)
    assert said in caught.value.problem
    assert caught.value.path == str(path)
    assert "\n" not in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301


def test_a_small_file_that_unpacks_to_hours_is_refused_without_unpacking_it() -> None:
    buffer = io.BytesIO()
    with soundfile.SoundFile(
        buffer, "w", RATE, 1, format="FLAC", subtype="PCM_16"
    ) as file:  # 20 minutes of silence in some 30 kB
        for _ in range(20):
            file.write(np.zeros(60 * RATE, dtype=np.int16))
    assert len(buffer.getvalue()) < 200_000
    with pytest.raises(ClipError, match="longer than 900 s"):
        audio.decode(buffer.getvalue(), "bomb")


CASES = [
    wav(form(EXTENSIBLE, 24, channels=2), wav_bytes.pcm(tone(0.05), 24)),
    wav(form(FLOAT, 32), tone(0.02).astype("<f4").tobytes(), behind=chunk(b"LIST", b"INFO")),
    encoded("FLAC", "PCM_16")[:3000],
    encoded("OGG", "OPUS"),
]


def assert_samples_or_one_line(data: bytes) -> None:
    pcm: Pcm | None = None
    problem = ""
    try:
        pcm = audio.decode(data, "clip", limit_s=60)
    except ClipError as error:
        problem = error.problem
    if pcm is None:
        assert problem
        assert "\n" not in problem
        return
    assert np.isfinite(pcm.samples).all()
    assert 0 < len(pcm.samples) <= 60 * pcm.rate


@settings(max_examples=250, deadline=None)
@given(
    case=st.sampled_from(CASES),
    changes=st.lists(st.tuples(st.integers(0, 120), st.integers(0, 255)), max_size=6),
    cut=st.integers(0, 200),
)
def test_mutated_files_give_samples_or_one_line_and_nothing_else(
    case: bytes, changes: list[tuple[int, int]], cut: int
) -> None:
    data = bytearray(case)
    for place, value in changes:
        data[place] = value
    assert_samples_or_one_line(bytes(data[: len(data) - cut]))


@given(st.binary(max_size=200))
def test_any_bytes_give_samples_or_one_line(data: bytes) -> None:
    for start in (b"", b"RIFF\0\0\0\0WAVE", b"fLaC", b"OggS"):
        assert_samples_or_one_line(start + data)


def test_mp3_blocks_are_decoded_as_one_stream() -> None:
    """Between blocks soundfile seeks, which loses bits that MP3 frames borrow from earlier ones."""
    data = encoded("MP3", "MPEG_LAYER_III", 24_000)
    whole, _ = soundfile.read(io.BytesIO(data), dtype="float32")
    assert np.abs(audio.decode(data, "clip").samples - whole).max() < 1e-5
