"""Reading, resampling, converting and writing audio."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile
import wav_bytes
from hypothesis import given
from hypothesis import strategies as st
from wav_bytes import EXTENSIBLE, FLOAT, PCM, chunk, form, tone, wav

from voxmeter.client import audio
from voxmeter.client.audio import Pcm, StreamResampler
from voxmeter.client.estimate import clip_length
from voxmeter.endpoints.errors import ClipError, UserError
from voxmeter.scoring.speech import speech_bounds
from voxmeter.suites.suite import Item, Recording, Suite

RATE = wav_bytes.RATE
SECOND = tone(1.0)


def encoded(kind: str, subtype: str, rate: int = RATE, channels: int = 1) -> bytes:
    buffer = io.BytesIO()
    samples = np.repeat(tone(1.0, rate)[:, None], channels, axis=1)
    soundfile.write(buffer, samples, rate, format=kind, subtype=subtype)
    return buffer.getvalue()


def floats(*samples: float) -> bytes:
    return np.array(samples, dtype="<f4").tobytes()


USED = wav_bytes.pcm(SECOND, 16)
TORN_24 = wav_bytes.pcm(SECOND, 24)[:-1]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda folder: folder / "absent.wav", "no such file"),
        (lambda folder: folder, "cannot be read"),
        (lambda folder: f"{folder}/nul\0.wav", "cannot be read"),
        (lambda _: "/dev/zero", "not a regular file"),
    ],
)
def test_a_path_that_is_no_file_is_one_clear_line(
    make: Callable[[Path], Path | str], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ClipError, match=said):
        audio.read(make(tmp_path))


def test_a_named_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "clip.wav")
    with pytest.raises(ClipError, match="not a regular file"):
        audio.read(tmp_path / "clip.wav")
    item = Item("mine", "q", "open", (Recording(tmp_path / "clip.wav"),))
    assert len(Suite("mine", "jsonl", (item,)).sha256()) == 64
    assert clip_length(item) == 0


def test_a_file_over_the_size_limit_is_not_even_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.wav"
    with path.open("wb") as file:
        file.truncate(audio.LIMIT_BYTES + 1)  # a hole: it takes no room
    with pytest.raises(ClipError, match="audio files over 256 MiB are not opened"):
        audio.read(path)


@pytest.mark.parametrize(("old", "new"), [(44_100, 16_000), (44_100, 24_000), (22_050, 24_000)])
def test_resampling_keeps_the_duration_to_a_sample(old: int, new: int) -> None:
    pcm = audio.resample(Pcm(tone(1.2345, old).astype(np.float32), old), new)
    assert pcm.rate == new
    assert len(pcm.samples) == round(round(1.2345 * old) * new / old)
    expected = tone(1.2345, new)[: len(pcm.samples)]
    assert np.abs(pcm.samples[500:-500] - expected[500:-500]).max() < 1e-3


def test_the_same_rate_is_no_work() -> None:
    pcm = Pcm(np.zeros(5, dtype=np.float32), RATE)
    assert audio.resample(pcm, RATE) is pcm


@pytest.mark.parametrize(("old", "new"), [(48_000, 16_000), (24_000, 48_000), (22_050, 24_000)])
def test_a_stream_in_pieces_equals_one_shot_and_has_no_seams(old: int, new: int) -> None:
    whole = tone(1.0, old, pitch_hz=1000.0).astype(np.float32)
    stream = StreamResampler(old, new)
    step = old // 100
    pieces = [stream.push(whole[at : at + step]) for at in range(0, len(whole), step)]
    joined = np.concatenate([*pieces, stream.finish()])
    one_shot = audio.resample(Pcm(whole, old), new).samples
    assert joined.shape == one_shot.shape
    assert np.abs(joined - one_shot).max() < 1e-3


def test_a_gap_in_mid_word_loses_no_sample() -> None:
    stream = StreamResampler(24_000, 16_000)
    word = tone(0.4, 24_000).astype(np.float32)
    got = [stream.push(word), stream.push(word[:0])]  # 300 ms pass and nothing comes
    got += [stream.push(word), stream.finish()]
    joined = np.concatenate(got)
    expected = audio.resample(Pcm(np.concatenate([word, word]), 24_000), 16_000).samples
    assert len(joined) == 12_800
    assert np.abs(joined - expected).max() < 1e-3


@given(st.lists(st.integers(0, 700), max_size=20), st.sampled_from([8_000, 16_000, 44_100]))
def test_a_stream_gives_exactly_as_many_samples_as_it_should(sizes: list[int], new: int) -> None:
    stream = StreamResampler(24_000, new)
    count = sum(len(stream.push(np.zeros(size, dtype=np.float32))) for size in sizes)
    count += len(stream.finish())
    assert count == audio.resampled_length(sum(sizes), 24_000, new)


def test_a_finished_stream_takes_no_more() -> None:
    stream = StreamResampler(24_000, 24_000)
    stream.finish()
    with pytest.raises(ValueError, match="finished"):
        stream.push(np.zeros(1, dtype=np.float32))


def test_sixteen_bits_are_rounded_and_clipped_never_wrapped() -> None:
    samples = np.array([0.0, 1.0, -1.0, 2.0, -2.0, 1.6 / 32768, -1.6 / 32768], dtype=np.float32)
    whole = np.frombuffer(audio.to_pcm16(samples), dtype="<i2").tolist()
    assert whole == [0, 32767, -32768, 32767, -32768, 2, -2]


@given(st.binary(max_size=400).filter(lambda data: len(data) % 2 == 0))
def test_sixteen_bits_come_back_as_they_were(data: bytes) -> None:
    assert audio.to_pcm16(audio.from_pcm16(data)) == data


def test_half_a_sample_and_samples_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match="3 bytes"):
        audio.from_pcm16(b"abc")
    with pytest.raises(ValueError, match="not finite"):
        audio.to_pcm16(np.array([np.nan]))


def test_the_hash_is_of_the_sound_not_of_the_file() -> None:
    as_wav = audio.decode(wav(form(PCM, 16), USED), "clip")
    as_flac = audio.decode(encoded("FLAC", "PCM_16"), "clip")
    tagged = audio.decode(wav(form(PCM, 16), USED, behind=chunk(b"LIST", b"INFO")), "clip")
    assert audio.sha256(as_wav) == audio.sha256(tagged)
    assert audio.sha256(as_wav) != audio.sha256(Pcm(as_wav.samples, 8_000))
    assert len(audio.sha256(as_flac)) == 64


@pytest.mark.parametrize("shape", [(1000,), (1000, 2)])
def test_flac_comes_back_as_it_was_written(shape: tuple[int, ...], tmp_path: Path) -> None:
    samples = np.random.default_rng(1).uniform(-1, 1, shape).astype(np.float32)
    path = tmp_path / "reply.flac"
    audio.write_flac(path, samples, 24_000)
    back, rate = soundfile.read(path, dtype="int16")
    assert rate == 24_000
    assert back.tobytes() == audio.to_pcm16(samples)
    assert [file.name for file in tmp_path.iterdir()] == ["reply.flac"]


FULL_DISK = """
import resource, sys
import numpy as np
from pathlib import Path
from voxmeter.client import audio
from voxmeter.endpoints.errors import UserError
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
try:
    audio.write_flac(Path(sys.argv[1]), np.random.default_rng(1).uniform(-1, 1, 9000), 24_000)
except UserError as error:
    sys.exit(str(error))
"""


def test_a_full_disk_is_the_users_one_line_and_the_old_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "reply.flac"
    path.write_bytes(b"old")
    # In a process of its own, of which no file may grow over 100 bytes.
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "no space left on the disk" in done.stderr
    assert done.stderr.count("\n") == 1
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["reply.flac"]  # noqa: PTH208


def test_a_missing_folder_is_the_users_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="absent"):
        audio.write_flac(tmp_path / "absent" / "reply.flac", np.zeros(10, dtype=np.float32), RATE)


def speech(rate: int) -> np.ndarray:
    """Return something like two words with quiet around them."""
    quiet = np.zeros(rate // 4)
    return np.concatenate([quiet, tone(0.4, rate), quiet[: rate // 20], tone(0.3, rate), quiet])


def end_of_speech_ms(pcm: Pcm) -> float:
    bounds = speech_bounds(pcm.samples, pcm.rate)
    assert bounds is not None
    return bounds.end_ms


REPORTS = [
    json.loads(line)
    for line in (Path(__file__).parent / "cases" / "audio_reports.jsonl").read_text().splitlines()
]


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: str(report["id"]))
def test_reported_faults_of_other_programs_are_not_ours(report: dict[str, str]) -> None:
    CHECKS[report["id"]]()


def _extensible_is_read() -> None:
    for tag, bits, channels in ((EXTENSIBLE, 24, 2), (FLOAT, 32, 1)):
        data = SECOND.astype("<f4").tobytes() if tag == FLOAT else wav_bytes.pcm(SECOND, bits)
        assert audio.decode(wav(form(tag, bits, channels=channels), data), "clip").rate == RATE


def _the_data_count_not_the_header() -> None:
    claimed = 29 * len(USED)  # 67 minutes for 138 seconds, scaled down
    pcm = audio.decode(wav(form(PCM, 16), USED, declared=claimed), "clip")
    assert pcm.ms == pytest.approx(1000)
    assert pcm.warnings


def _mp3_moves_no_end_of_speech() -> None:
    rate = 24_000
    ends = []
    for kind, subtype in (("WAV", "PCM_16"), ("MP3", "MPEG_LAYER_III")):
        buffer = io.BytesIO()
        soundfile.write(buffer, speech(rate), rate, format=kind, subtype=subtype)
        ends.append(end_of_speech_ms(audio.decode(buffer.getvalue(), "clip")))
    assert abs(ends[0] - ends[1]) < 10


def _a_real_resampler_for_44100() -> None:
    old = Pcm(speech(44_100).astype(np.float32), 44_100)
    new = audio.resample(old, 16_000)
    assert new.ms == pytest.approx(old.ms, abs=1)
    assert end_of_speech_ms(new) == pytest.approx(end_of_speech_ms(old), abs=5)


def _zeros_are_samples_and_nan_is_not() -> None:
    assert not audio.decode(wav(form(PCM, 16), bytes(3200)), "clip").samples.any()
    for bad in ([float("nan")] * 10, [0.0, float("inf")]):
        with pytest.raises(ClipError, match="not finite"):
            audio.decode(wav(form(FLOAT, 32), floats(*bad)), "clip")


def _spare_bytes_are_cut() -> None:
    pcm = audio.decode(wav(form(PCM, 24), TORN_24, declared=len(TORN_24)), "clip")
    assert len(pcm.samples) == RATE - 1
    for nothing in (wav(form(PCM, 24), b""), wav(form(PCM, 16), b"")):
        with pytest.raises(ClipError, match="no samples"):
            audio.decode(nothing, "clip")


def _each_piece_of_a_stream_may_be_a_whole_file() -> None:
    pieces = [wav(form(PCM, 16), USED[at : at + 3200]) for at in (0, 3200, 6400)]
    joined = np.concatenate([audio.decode(piece, "piece").samples for piece in pieces])
    assert audio.to_pcm16(joined) == USED[:9600]


CHECKS: dict[str, Callable[[], None]] = {
    "AF-01": _extensible_is_read,
    "AF-03": _the_data_count_not_the_header,
    "AF-05": _mp3_moves_no_end_of_speech,
    "AF-06": lambda: test_a_stream_in_pieces_equals_one_shot_and_has_no_seams(48_000, 16_000),
    "AF-08": _a_real_resampler_for_44100,
    "AF-09": _zeros_are_samples_and_nan_is_not,
    "AF-11": _spare_bytes_are_cut,
    "PR-15": lambda: test_resampling_keeps_the_duration_to_a_sample(44_100, 24_000),
    "PR-27": test_a_gap_in_mid_word_loses_no_sample,
    "PR-28": _each_piece_of_a_stream_may_be_a_whole_file,
}
