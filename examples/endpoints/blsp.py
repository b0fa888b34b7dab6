"""BLSP (cwang621/blsp) as an endpoint: speech, and an instruction if there is one, to words.

Copy this file into `blsp/`, beside `generate.py`. Each question is a turn of its own; the
repository's Gradio demo keeps one history for everybody and is no endpoint.

    BLSP_MODEL        folder of the model (needed)
    BLSP_TOKENS       most tokens of a reply (default 128)

Not run with genuine weights: the calls are those of `generate.py`.
"""

from __future__ import annotations

import os
from typing import Any

from src.modeling_blsp import BlspModel
from transformers import GenerationConfig, LlamaTokenizer, WhisperFeatureExtractor

FOLDER = os.environ["BLSP_MODEL"]
TOKENIZER = LlamaTokenizer.from_pretrained(FOLDER)
EXTRACTOR = WhisperFeatureExtractor.from_pretrained(FOLDER)
MODEL = BlspModel.from_pretrained(FOLDER).cuda()
MODEL.eval()


def e2e_evaluation(
    question: tuple[Any, int],
    sample_rate: int,
    text: str = "",
    instructions: str = "",
    temperature: float | None = None,
) -> str:
    """Return the model's words."""
    waveform, rate = question
    if rate != EXTRACTOR.sampling_rate:
        raise ValueError(f"BLSP hears {EXTRACTOR.sampling_rate} samples a second: set input_rate")
    heard = EXTRACTOR(
        waveform[0].tolist(), sampling_rate=rate, return_attention_mask=True, return_tensors="pt"
    )
    asked = text or instructions or ""
    output = MODEL.generate(
        input_ids=TOKENIZER(f"###[Human]:{asked}", return_tensors="pt").input_ids.cuda(),
        suffix_input_ids=_without_bos("\n\n\n###[Assistant]:"),
        speech_values=heard.input_features.cuda(),
        speech_attention_mask=heard.attention_mask.cuda(),
        generation_config=GenerationConfig(
            max_new_tokens=int(os.environ.get("BLSP_TOKENS", "128")),
            min_new_tokens=1,
            do_sample=bool(temperature),
            temperature=temperature or 0.1,
            top_p=0.75,
            num_beams=1,
            num_return_sequences=1,
            pad_token_id=TOKENIZER.pad_token_id,
            bos_token_id=TOKENIZER.bos_token_id,
            eos_token_id=TOKENIZER.eos_token_id,
        ),
    )
    words: str = TOKENIZER.decode(output[0], skip_special_tokens=True)
    return words


def _without_bos(words: str) -> Any:
    return TOKENIZER(words, return_tensors="pt").input_ids[:, 1:].cuda()
