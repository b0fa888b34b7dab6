"""TWIST (facebookresearch/textlesslib, examples/twist) as an endpoint: speech goes on as speech.

Copy this file into `examples/twist/`, beside `speech_lm.py`. It has no dialogue in it: the model
continues what it hears, and what it gives back begins with what it heard; that is cut off here.

    TWIST_MODEL       TWIST-350M (default), TWIST-1.3B or TWIST-7B

Not run with genuine weights: encoder, model and vocoder are put together as in
`twist_generation.py`, once instead of for every question.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from speech_lm import build_speech_lm, generate_with_offset
from textless.data.speech_encoder import SpeechEncoder
from textless.vocoders.hifigan.vocoder import CodeHiFiGANVocoder

RATE = 16000  # of the question, which voxmeter sends so, and of the vocoder
UNITS = {
    "dense_model_name": "mhubert-base-25hz",
    "quantizer_model_name": "kmeans",
    "vocab_size": 500,
}
ENCODER = SpeechEncoder.by_name(deduplicate=True, need_f0=False, add_bos_eos=False, **UNITS).eval()
VOCODER = CodeHiFiGANVocoder.by_name(**UNITS).eval()
if torch.cuda.is_available():
    ENCODER, VOCODER = ENCODER.cuda(), VOCODER.cuda()
MODEL = build_speech_lm(os.environ.get("TWIST_MODEL", "TWIST-350M"))


def e2e_evaluation(question: tuple[Any, int], sample_rate: int) -> tuple[Any, int] | None:
    """Return the speech that the model goes on with; None if it has nothing to add."""
    waveform, rate = question
    if rate != RATE:
        raise ValueError(f"TWIST hears {RATE} samples a second, not {rate}: set input_rate")
    units = ENCODER(waveform.mean(0))["units"].unsqueeze(0)
    whole = generate_with_offset(MODEL, units)
    reply = whole[:, units.shape[-1] :]
    return (VOCODER(reply, dur_prediction=True), RATE) if reply.shape[-1] else None
