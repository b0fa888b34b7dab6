"""The assistant starts to answer as soon as it did when the baseline was written."""

from __future__ import annotations

from typing import Any


def test_the_answer_begins_as_soon_as_before(voxmeter: Any, assistant: Any, trials: int) -> None:
    """Later is: by more than chance, by more than 10 %, and by more than 30 ms."""
    result = voxmeter.converse(assistant, "clips/hamlet.flac", trials, transcribe=None)
    assert {trial["status"] for trial in result.trials} == {"ok"}
    voxmeter.assert_no_regression(
        result,
        "baselines/hamlet.json",
        metric="first_audible_ms",
        relative=0.1,
        absolute_ms=30,
    )
