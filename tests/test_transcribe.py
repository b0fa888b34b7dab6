"""The pool of transcribing processes: real Whisper, real deaths."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from voxmeter.client.audio import Pcm, write_flac
from voxmeter.client.speakers import speaker
from voxmeter.client.transcribe import TranscriberPool
from voxmeter.client.transcript_cache import TranscriptCache
from voxmeter.endpoints.errors import UserError
from voxmeter.scoring.asr import AsrSettings, Transcript
from voxmeter.scoring.types import Unscored

FAST = AsrSettings(beam_size=1)
LIMIT_S = 120


@pytest.fixture(scope="module")
def spoken() -> dict[str, Pcm]:
    voice = speaker("hibari")
    return {
        answer: Pcm(np.concatenate([*voice.speak(answer)]), voice.rate)
        for answer in ("The correct answer is B.", "The capital of France is Paris.")
    }


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TranscriberPool]:
    """One process with the model loaded; `normal`, because a busy machine starves idle ones."""
    cache = tmp_path_factory.mktemp("cache")
    with TranscriberPool("tiny.en", FAST, workers=1, cache=cache, priority="normal") as pool:
        yield pool


def _asked(pool: TranscriberPool) -> int:
    return int(pool.state().result(LIMIT_S)["asked"])


def _text(outcome: Transcript | Unscored) -> str:
    assert isinstance(outcome, Transcript), outcome
    return outcome.text


def test_as_16_concurrent_replies_come_back_each_with_its_own_text(
    shared: TranscriberPool, spoken: dict[str, Pcm]
) -> None:
    async def both() -> list[Transcript | Unscored]:
        jobs = [shared.submit(pcm, answer) for answer, pcm in spoken.items()]
        return await asyncio.gather(*(asyncio.wrap_future(job) for job in jobs))

    assert [_text(outcome) for outcome in asyncio.run(both())] == list(spoken)


def test_the_same_audio_is_read_once_whatever_file_it_is_in(
    shared: TranscriberPool, spoken: dict[str, Pcm], tmp_path: Path
) -> None:
    answer, pcm = next(iter(spoken.items()))
    first = shared.submit(pcm).result(LIMIT_S)
    asked = _asked(shared)
    write_flac(tmp_path / "reply.flac", pcm.samples, pcm.rate)
    again = shared.submit(tmp_path / "reply.flac").result(LIMIT_S)
    assert _text(again) == answer
    assert again == first
    assert _asked(shared) == asked


def test_silence_is_gated_and_a_broken_file_is_unscored(
    shared: TranscriberPool, tmp_path: Path
) -> None:
    silent = shared.submit(Pcm(np.zeros(48_000, np.float32), 24_000)).result(LIMIT_S)
    assert isinstance(silent, Transcript)
    assert (silent.text, silent.gated) == ("", True)
    (tmp_path / "broken.flac").write_bytes(b"fLaC, or so it says")
    broken = shared.submit(tmp_path / "broken.flac", key="cascade/demo/one").result(LIMIT_S)
    assert isinstance(broken, Unscored)
    assert "cannot be read" in broken.reason
    assert "broken.flac" in str(broken.detail["problem"])


def test_samples_that_are_no_numbers_do_not_stop_a_worker(shared: TranscriberPool) -> None:
    broken = Pcm(np.full(24_000, np.nan, np.float32), 24_000)
    assert isinstance(shared.submit(broken).result(LIMIT_S), Transcript)


def test_a_language_the_model_lacks_is_the_users_mistake(
    shared: TranscriberPool, spoken: dict[str, Pcm]
) -> None:
    pcm = next(iter(spoken.values()))
    with pytest.raises(UserError, match="hears English only"):
        shared.submit(pcm, language="de").result(LIMIT_S)


def test_a_worker_that_is_killed_is_replaced_and_its_reply_read(
    spoken: dict[str, Pcm], tmp_path: Path
) -> None:
    answer, pcm = next(iter(spoken.items()))
    with TranscriberPool("tiny.en", FAST, workers=1, cache=tmp_path, priority="normal") as pool:
        before = pool.state().result(LIMIT_S)
        os.kill(int(before["pid"]), signal.SIGKILL)
        assert _text(pool.submit(pcm).result(LIMIT_S)) == answer
        assert pool.state().result(LIMIT_S)["pid"] != before["pid"]


def test_a_reply_that_kills_two_workers_is_unscored_and_the_next_one_is_served(
    spoken: dict[str, Pcm], tmp_path: Path
) -> None:
    settings = {"workers": 1, "cache": tmp_path, "priority": "normal"}
    pool = TranscriberPool("tiny.en", FAST, **settings, item_limit_s=0.0)  # type: ignore[arg-type]
    with pool:
        lost = pool.submit(next(iter(spoken.values())), key="cascade/demo/one").result(LIMIT_S)
        assert isinstance(lost, Unscored)
        assert lost.reason == "the transcribing process died twice"
        assert lost.detail["key"] == "cascade/demo/one"
        assert "exit status" in str(lost.detail["problem"])
        pool._item_limit_s = float(LIMIT_S)
        assert pool.state().result(LIMIT_S)["pid"]


def files_of(spoken: dict[str, Pcm], folder: Path) -> list[Path]:
    paths = []
    for number, pcm in enumerate([*spoken.values()] * 3):
        noise = np.random.default_rng(number).normal(0, 1e-3, len(pcm.samples))
        paths.append(folder / f"{number}.flac")
        write_flac(paths[-1], (pcm.samples + noise).astype(np.float32), pcm.rate)
    return paths


def test_one_process_reads_several_replies_side_by_side_each_with_its_own_text(
    spoken: dict[str, Pcm], tmp_path: Path
) -> None:
    paths = files_of(spoken, tmp_path)
    (tmp_path / "broken.flac").write_bytes(b"fLaC, or so it says")
    cache = tmp_path / "cache"
    pool = TranscriberPool("tiny.en", FAST, workers=1, lanes=2, cache=cache, priority="normal")
    with pool:
        jobs = [pool.submit(path) for path in [*paths, tmp_path / "broken.flac"]]
        found = [job.result(LIMIT_S) for job in jobs]
        assert _asked(pool) == 6
    assert [_text(one) for one in found[:-1]] == [*spoken] * 3
    assert isinstance(found[-1], Unscored)


def test_a_process_that_dies_of_several_replies_costs_none_of_them(
    spoken: dict[str, Pcm], tmp_path: Path
) -> None:
    paths = files_of(spoken, tmp_path)
    cache = tmp_path / "cache"
    pool = TranscriberPool("tiny.en", FAST, workers=1, lanes=2, cache=cache, priority="normal")
    with pool:
        pid = int(pool.state().result(LIMIT_S)["pid"])
        jobs = [pool.submit(path) for path in paths]
        os.kill(pid, signal.SIGKILL)
        assert [_text(job.result(LIMIT_S)) for job in jobs] == [*spoken] * 3
        assert pool.state().result(LIMIT_S)["pid"] != pid


def test_workers_run_only_when_nothing_else_wants_to(tmp_path: Path) -> None:
    with TranscriberPool("tiny.en", FAST, workers=1, cache=tmp_path) as pool:
        state = pool.state().result(LIMIT_S)
    assert state["nice"] == 19
    assert state["idle"] == (sys.platform == "linux")


def test_closing_at_once_ends_processes_and_leaves_no_future_open(
    spoken: dict[str, Pcm], tmp_path: Path
) -> None:
    pool = TranscriberPool("tiny.en", FAST, workers=1, cache=tmp_path, priority="normal")
    pid = int(pool.state().result(LIMIT_S)["pid"])
    jobs = [pool.submit(pcm) for pcm in spoken.values()]
    pool.close()
    assert all(job.done() for job in jobs)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(RuntimeError, match="closed"):
        pool.submit(next(iter(spoken.values())))


def test_an_exception_in_the_block_does_not_wait_for_what_is_queued(tmp_path: Path) -> None:
    pool = TranscriberPool("tiny.en", FAST, workers=1, cache=tmp_path, priority="normal")
    with pytest.raises(KeyboardInterrupt), pool:  # noqa: PT012 - the block itself is tested
        jobs = [pool.submit(Pcm(np.zeros(1000, np.float32), 16_000)) for _ in range(50)]
        raise KeyboardInterrupt
    assert all(job.done() for job in jobs)


def test_threads_and_workers_fit_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voxmeter.client.transcribe.cores", lambda: 6)
    sizes = {workers: TranscriberPool("tiny.en", workers=workers) for workers in (None, 2, 4, 16)}
    assert sizes[None].workers == 6
    assert [pool.settings.cpu_threads for pool in sizes.values()] == [1, 3, 1, 1]
    on_gpu = TranscriberPool("tiny.en", AsrSettings(device="cuda"))
    assert (on_gpu.workers, on_gpu.lanes) == (1, 4)
    monkeypatch.setattr("voxmeter.client.transcribe._GPU_DEVICES", ("/dev/null",))
    monkeypatch.setattr("voxmeter.client.transcribe.placement", lambda _: ("cuda", "float16"))
    seen = TranscriberPool("tiny.en")
    assert (seen.workers, seen.lanes) == (1, 4)
    monkeypatch.setattr("voxmeter.client.transcribe.placement", lambda _: ("cpu", "int8"))
    assert TranscriberPool("tiny.en").workers == 6


def test_a_users_script_without_a_main_guard_is_not_run_again(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(f"""
            print("once")
            from pathlib import Path
            from voxmeter.client.transcribe import TranscriberPool
            pool = TranscriberPool("tiny.en", workers=1, cache=Path({str(tmp_path)!r}))
            print(pool.state().result({LIMIT_S})["asked"])
        """)
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["once", "0"]
    assert done.stderr == ""


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", '{"form": 1}', '{"form": 1, "transcript": {"text": 3}}', "\x00" * 50]
)
def test_a_damaged_cache_entry_is_ignored_and_written_anew(damage: str, tmp_path: Path) -> None:
    cache = TranscriptCache(tmp_path, "model", {"beam_size": 1})
    kept = Transcript("The answer is B.", "en", detail={"device": "cpu"})
    cache.put("audio", "en", kept)
    (entry,) = tmp_path.rglob("*.json")
    entry.write_text(damage)
    assert cache.get("audio", "en") is None
    cache.put("audio", "en", kept)
    assert cache.get("audio", "en") == kept


def test_another_model_setting_audio_or_language_has_another_entry(tmp_path: Path) -> None:
    cache = TranscriptCache(tmp_path, "model", {"beam_size": 1})
    cache.put("audio", "en", Transcript("B.", "en"))
    assert cache.get("audio", "de") is None
    assert cache.get("other", "en") is None
    assert TranscriptCache(tmp_path, "other", {"beam_size": 1}).get("audio", "en") is None
    assert TranscriptCache(tmp_path, "model", {"beam_size": 5}).get("audio", "en") is None
    assert TranscriptCache(tmp_path, "model", {"beam_size": 1}).get("audio", "en") is not None


def test_a_pool_says_what_a_transcripts_record_needs(shared: TranscriberPool) -> None:
    record = shared.record()
    assert record["model"] == "tiny.en"
    assert len(str(record["model_hash"])) == 64
    assert json.loads(json.dumps(record)) == record
