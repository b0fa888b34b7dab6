"""PandaGPT (yxuansu/PandaGPT) as an endpoint: sound and words to words.

Copy this file into `code/`, beside `web_demo.py`. ImageBind hears sounds rather than speech, so the
words matter: ask in writing (`question_via = "text"`), or set `instructions`.

    PANDAGPT_CKPT     folder with `imagebind_ckpt`, `vicuna_ckpt` and `pandagpt_ckpt`
                      (default ../pretrained_ckpt)
    PANDAGPT_SIZE     7b (default) or 13b: which `vicuna_ckpt/SIZE_v0`

Not run with genuine weights: the calls and the settings are those of `web_demo.py`.
"""

from __future__ import annotations

import os
import tempfile
import wave
from array import array
from typing import Any

import torch
from model.openllama import OpenLLAMAPEFTModel

CKPT = os.environ.get("PANDAGPT_CKPT", "../pretrained_ckpt")
SIZE = os.environ.get("PANDAGPT_SIZE", "7b")
LONGEST = 128  # tokens of a reply
MODEL = OpenLLAMAPEFTModel(
    model="openllama_peft",
    imagebind_ckpt_path=f"{CKPT}/imagebind_ckpt/",
    vicuna_ckpt_path=f"{CKPT}/vicuna_ckpt/{SIZE}_v0",
    delta_ckpt_path=f"{CKPT}/pandagpt_ckpt/pytorch_model.pt",
    stage=2,
    max_tgt_len=LONGEST,
    lora_r=32,
    lora_alpha=32,
    lora_dropout=0.1,
)
WEIGHTS = torch.load(f"{CKPT}/pandagpt_ckpt/pytorch_model.pt", map_location=torch.device("cpu"))
MODEL.load_state_dict(WEIGHTS, strict=False)
MODEL = MODEL.cuda().eval()


def e2e_evaluation(
    question: tuple[Any, int],
    sample_rate: int,
    text: str = "",
    instructions: str = "",
    temperature: float | None = None,
) -> str:
    """Return the model's words."""
    waveform, rate = question
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "question.wav")
        write(path, waveform[0].tolist(), rate)
        return str(
            MODEL.generate(
                {
                    "prompt": text or instructions or "",
                    "image_paths": [],
                    "audio_paths": [path],
                    "video_paths": [],
                    "thermal_paths": [],
                    "top_p": 0.4,
                    "temperature": 0.8 if temperature is None else temperature,
                    "max_tgt_len": LONGEST,
                    "modality_embeds": [],
                }
            )
        )


def write(path: str, samples: list[float], rate: int) -> None:
    """Write samples from -1 to 1 as a WAV file."""
    whole = array("h", (max(-32768, min(32767, round(one * 32768))) for one in samples))
    with wave.open(path, "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes(whole.tobytes())
