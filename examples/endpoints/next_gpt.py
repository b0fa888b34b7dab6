"""NExT-GPT (NExT-GPT/NExT-GPT) as an endpoint: sound and words to words.

Copy this file into `code/`, beside `demo_app.py`. Pictures, films and sounds that the model makes
are left out; its words are the reply. As with PandaGPT, the question matters more in writing.

    NEXTGPT_CKPT      folder with `pytorch_model.pt` (needed)

Not run with genuine weights: the calls and the settings are those of `demo_app.py`.
"""

from __future__ import annotations

import os
import tempfile
import wave
from array import array
from typing import Any

import torch
from config import load_config
from model.anyToImageVideoAudio import NextGPTModel

CKPT = os.environ["NEXTGPT_CKPT"]
ARGUMENTS = {
    "model": "nextgpt",
    "nextgpt_ckpt_path": CKPT,
    "stage": 3,
    "modality": ["image", "video", "audio", "text"],
}
ARGUMENTS.update(load_config(ARGUMENTS))
MODEL = NextGPTModel(**ARGUMENTS)
WEIGHTS = torch.load(os.path.join(CKPT, "pytorch_model.pt"), map_location=torch.device("cpu"))
MODEL.load_state_dict(WEIGHTS, strict=False)
MODEL = MODEL.eval().half().cuda()
MAKING = {  # how pictures, films and sounds are made
    "filter_value": -float("inf"),
    "min_word_tokens": 10,
    "gen_scale_factor": 4.0,
    "max_num_imgs": 1,
    "stops_id": [[835], [2277, 29937]],
    "load_sd": True,
    "generator": torch.Generator(device="cuda").manual_seed(1337),
    "guidance_scale_for_img": 7.5,
    "num_inference_steps_for_img": 50,
    "guidance_scale_for_vid": 7.5,
    "num_inference_steps_for_vid": 50,
    "max_num_vids": 1,
    "height": 320,
    "width": 576,
    "num_frames": 24,
    "guidance_scale_for_aud": 7.5,
    "num_inference_steps_for_aud": 50,
    "max_num_auds": 1,
    "audio_length_in_s": 9,
    "ENCOUNTERS": 1,
}


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
        asked = {
            "prompt": f"### Human: <Audio>{path}</Audio>  {text or instructions or ''}",
            "image_paths": [],
            "audio_paths": [path],
            "video_paths": [],
            "top_p": 0.01,
            "temperature": 1.0 if temperature is None else temperature,
            "max_tgt_len": 246,
            "modality_embeds": [],
        }
        return words(MODEL.generate({**asked, **MAKING}))


def words(pieces: list[Any]) -> str:
    """Return the words among what the model made."""
    found = []
    for piece in pieces:
        inside = [piece] if isinstance(piece, str) else [m for made in piece.values() for m in made]
        found += [one for one in inside if isinstance(one, str)]
    return " ".join(" ".join(found).replace("\n###", "").split())


def write(path: str, samples: list[float], rate: int) -> None:
    """Write samples from -1 to 1 as a WAV file."""
    whole = array("h", (max(-32768, min(32767, round(one * 32768))) for one in samples))
    with wave.open(path, "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes(whole.tobytes())
