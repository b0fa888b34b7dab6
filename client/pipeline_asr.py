"""The recogniser of a pipeline: Whisper in processes of its own, which remembers no answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from voxmeter.client.audio import Pcm, from_pcm16
from voxmeter.client.clock import Clock
from voxmeter.client.pipeline_stage import beside, failed, stamped
from voxmeter.client.transcribe import TranscriberPool
from voxmeter.endpoints.pipeline_options import AsrOptions
from voxmeter.scoring.asr import AsrSettings
from voxmeter.scoring.types import Unscored

WHOSE = "Whisper"


class Recogniser:
    """One Whisper for all sessions of a pipeline.

    Args:
        options: Which one.
        folder: Where relative paths start.
        clock: Stamps what it read.

    Raises:
        UserError: If the model is not there or not the pinned one.
    """

    def __init__(self, options: AsrOptions, folder: Path, clock: Clock) -> None:
        self.name = f"Whisper {options.model}"
        self._clock = clock
        self._pool = TranscriberPool(
            beside(folder, options.model),
            AsrSettings(
                language=options.language,
                beam_size=options.beam_size,
                device=options.device,
                compute_type=options.compute_type,
            ),
            workers=options.workers,
            use_cache=False,  # a question that was asked before would be heard in no time
            priority="nice",
            allow_downloads=options.downloads,
        )

    def load(self) -> Future[Mapping[str, Any]]:
        """Load the model; the future raises `UserError` if it cannot be."""
        return self._pool.warm()

    async def hear(self, pcm: bytes, rate: int, limit_s: float) -> tuple[int, str]:
        """Return when a question had been read, and what is said in it; "" for no speech.

        Args:
            pcm: 16-bit little-endian mono samples.
            rate: Samples a second.
            limit_s: How long it may take, seconds.

        Raises:
            StageError: If Whisper fails, or takes longer.
        """
        future = self._pool.submit(Pcm(from_pcm16(pcm), rate))
        try:
            async with asyncio.timeout(limit_s):
                t_ns, found = await stamped(future, self._clock)
        except TimeoutError:
            raise failed(WHOSE, f"was not done after {limit_s:g} s") from None
        if isinstance(found, Unscored):
            problem = str(found.detail.get("problem") or "")
            raise failed(WHOSE, f"{found.reason}; {problem}" if problem else found.reason)
        return t_ns, found.text

    def close(self) -> None:
        """End its processes."""
        self._pool.close()
