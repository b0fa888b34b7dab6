"""What a `[transcribe]` says of how replies are read, as the recogniser takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from voxmeter.scoring.asr import AsrSettings

if TYPE_CHECKING:
    from voxmeter.client.bench import Transcribe


def asr_settings(table: Transcribe) -> AsrSettings:
    """Return the settings of a `[transcribe]`; they are recorded with every transcript."""
    return AsrSettings(
        language=table.language or "en",
        beam_size=table.beam_size,
        device=table.device,
        compute_type=table.compute_type,
    )
