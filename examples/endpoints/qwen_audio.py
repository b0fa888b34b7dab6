"""Qwen-Audio and Qwen-Audio-Chat (QwenLM/Qwen-Audio) as an endpoint: sound and words to words.

Copy this file into the repository.

    QWEN_AUDIO_MODEL  Qwen/Qwen-Audio-Chat (default), Qwen/Qwen-Audio, or a folder
    QWEN_AUDIO_DEVICE cuda (default), auto or cpu

The chat model gets sound and words as one query and no history. The base model has no chat: it is
asked with the tags of the repository's question answering (`eval_audio/evaluate_aqa.py`).

Not run with genuine weights: the calls are those of the repository's README and scripts.
"""

from __future__ import annotations

import os
import tempfile
import wave
from array import array
from typing import Any

from transformers import AutoModelForCausalLM, AutoTokenizer

NAME = os.environ.get("QWEN_AUDIO_MODEL", "Qwen/Qwen-Audio-Chat")
DEVICE = os.environ.get("QWEN_AUDIO_DEVICE", "cuda")
TOKENIZER = AutoTokenizer.from_pretrained(NAME, trust_remote_code=True)
MODEL = AutoModelForCausalLM.from_pretrained(NAME, device_map=DEVICE, trust_remote_code=True).eval()
BASE = NAME.rstrip("/").lower().endswith("qwen-audio")
TAGS = "<audio>{}</audio><|startofanalysis|><|en|><|question|>{}<|answer|>"


def e2e_evaluation(
    question: tuple[Any, int], sample_rate: int, text: str = "", instructions: str = ""
) -> str:
    """Return the model's words."""
    waveform, rate = question
    asked = text or instructions or ""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "question.wav")
        write(path, waveform[0].tolist(), rate)
        return based(path, asked) if BASE else chatted(path, asked)


def chatted(path: str, asked: str) -> str:
    """Ask the chat model."""
    parts = [{"audio": path}, *([{"text": asked}] if asked else [])]
    words, _ = MODEL.chat(TOKENIZER, query=TOKENIZER.from_list_format(parts), history=None)
    return str(words)


def based(path: str, asked: str) -> str:
    """Ask the base model; what it repeats of the question is cut off."""
    query = TAGS.format(path, asked)
    sound = TOKENIZER.process_audio(query)
    inputs = TOKENIZER(query, return_tensors="pt", audio_info=sound).to(MODEL.device)
    output = MODEL.generate(**inputs, audio_info=sound)
    words = TOKENIZER.decode(output.cpu()[0], skip_special_tokens=False, audio_info=sound)
    return str(words).split("<|answer|>", 1)[-1].split("<|endoftext|>", 1)[0].strip()


def write(path: str, samples: list[float], rate: int) -> None:
    """Write samples from -1 to 1 as a WAV file."""
    whole = array("h", (max(-32768, min(32767, round(one * 32768))) for one in samples))
    with wave.open(path, "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes(whole.tobytes())
