"""SPIRIT-LM (facebookresearch/spiritlm) as an endpoint: speech goes on as speech, or as words.

Copy this file into the repository, and see docs/endpoints.md for the lines of bench.toml. It has no
dialogue in it: the model continues what it hears. Settings come from the environment:

    SPIRITLM_MODEL    spirit-lm-base-7b (default) or spirit-lm-expressive-7b
    SPIRITLM_OUTPUT   SPEECH (default) or TEXT
    SPIRITLM_TOKENS   most tokens of a reply (default 200)

Not run with genuine weights: the calls are those of the repository's own README.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from spiritlm.model.spiritlm_model import Spiritlm
from transformers import GenerationConfig

RATE = 16000  # of the question, which voxmeter sends so, and of the model's vocoder
MODEL = Spiritlm(os.environ.get("SPIRITLM_MODEL", "spirit-lm-base-7b"))
OUTPUT = os.environ.get("SPIRITLM_OUTPUT", "SPEECH")
TOKENS = int(os.environ.get("SPIRITLM_TOKENS", "200"))


def e2e_evaluation(
    question: tuple[Any, int], sample_rate: int, text: str = "", temperature: float | None = None
) -> Iterator[Any]:
    """Yield what the model goes on with; a question in writing follows the sound."""
    waveform, rate = question
    if rate != RATE:
        raise ValueError(f"SPIRIT-LM hears {RATE} samples a second, not {rate}: set input_rate")
    heard = [("SPEECH", waveform), *([("TEXT", text)] if text else [])]
    config = GenerationConfig(
        temperature=0.9 if temperature is None else temperature,
        top_p=0.95,
        max_new_tokens=TOKENS,
        do_sample=temperature != 0,
    )
    replies = MODEL.generate(
        interleaved_inputs=heard, output_modality=OUTPUT, generation_config=config
    )
    for one in replies:
        yield one.content if isinstance(one.content, str) else (one.content, RATE)
