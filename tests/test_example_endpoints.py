"""The programs of examples/endpoints against stand-ins that behave as the genuine ones do.

A stand-in prints the same prompts, or has the same functions with the same arguments; it has no
weights. What it says shows what it was given.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from interpreters import old_python

from voxmeter.client import config
from voxmeter.client.audio import Pcm
from voxmeter.client.clips import clip
from voxmeter.client.rehearsal import Rehearsal, rehearse
from voxmeter.client.targets import target
from voxmeter.suites.suite import Item

EXAMPLES = Path(__file__).parent.parent / "examples" / "endpoints"
OLD = old_python()
TONE = (0.3 * np.sin(2 * np.pi * 200 * np.arange(16_000) / 16_000)).astype(np.float32)

SALMONN = """
import sys, wave
if sys.argv[1:] != ["--cfg-path", "decode.yaml"]:
    sys.exit(f"not the arguments: {sys.argv}")
print("loading ...")
while True:
    print("=====================================")
    wav_path = input("Your Wav Path:\\n")
    prompt = input("Your Prompt:\\n")
    with wave.open(wav_path) as file:
        rate = file.getframerate()
    if prompt == "fall over":
        raise SystemExit(3)
    print("Output:")
    print(f"Heard {rate}.\\n{prompt}")
"""
SPEECHGPT = """
import os, wave
prompt = str(input("Please talk with SpeechGPT:\\n"))
number = 0
while prompt != "quit":
    if os.path.isfile(prompt.strip()):
        os.makedirs("output/wav", exist_ok=True)
        with wave.open(prompt) as old, wave.open(f"output/wav/answer_{number}.wav", "wb") as new:
            new.setparams((1, 2, 16000, 0, "NONE", ""))
            new.writeframes(old.readframes(8000))
        print("Transcript:  what is this?")
        print("Text response:  It is a tone,\\nof 200 Hz.")
        print(f"Speech repsonse is saved in output/wav/answer_{number}.wav")
        print("Response json is saved in output/responses.json")
        number += 1
    elif "is input:" in prompt:
        print("Response:\\n", "  a tone")
        print("Response json is saved in output/responses.json")
    else:
        print("CUDA out of memory")
    prompt = str(input("Please input prompts for SpeechGPT:\\n"))
"""
SALMONN_ASKS = [
    *("--ask", "Your Wav Path:", "{audio}", "--ask", "Your Prompt:", "{text}"),
    *("--text", r"Output:\n(.*?)\n=+\s*$"),
]
SPEECHGPT_ASKS = [
    *("--ask", "Please (?:talk with|input prompts for) SpeechGPT:", "{audio}"),
    *("--text", r"Text response:(.*?)\nSpeech repsonse is saved in"),
    *("--audio", r"Speech repsonse is saved in (\S+)"),
]


def answered(folder: Path, command: list[str], **keys: Any) -> Rehearsal:
    """Ask one question, a tone of a second; two where the first must have worked."""
    written = keys.pop("written", "")
    table = {"name": "a", "kind": "exec", "command": command, "folder": str(folder), **keys}
    bench = config.parse({"endpoint": [table], "suite": [{"kind": "demo"}]}, "bench.toml")
    via: dict[str, Any] = {"question_via": "text"} if written else {}
    item = Item("s", "q", "open", (), question=written, **via)
    with ExitStack() as stack:
        ready = target(bench, bench.endpoints[0], stack)
        for _ in range(2):
            found = rehearse(ready, item, clip(Pcm(TONE, 16_000), "tone"))
        return found


def looped(folder: Path, source: str, asks: list[str], *more: str, **keys: Any) -> Rehearsal:
    (folder / "program.py").write_text(source)
    python = str(keys.pop("python", sys.executable))
    driver = [python, "-I", str(EXAMPLES / "stdin_loop.py"), *asks, "--"]
    return answered(folder, [*driver, sys.executable, "-I", "program.py", *more], **keys)


TEXT = {"options": {"output_modalities": "text"}}


def test_salmonn_is_asked_path_and_prompt_and_answers_in_writing(tmp_path: Path) -> None:
    asked = {"written": "Who\nspeaks?", **TEXT}
    found = looped(tmp_path, SALMONN, SALMONN_ASKS, "--cfg-path", "decode.yaml", **asked)
    assert (found.row["status"], found.row["fault"]) == ("ok", None)
    assert found.row["reply_text"] == "Heard 16000.\nWho speaks?"
    assert found.note == "decode.yaml"


def test_instructions_are_the_prompt_where_nothing_is_asked_in_writing(tmp_path: Path) -> None:
    asked = {"instructions": "Describe it.", **TEXT}
    found = looped(tmp_path, SALMONN, SALMONN_ASKS, "--cfg-path", "decode.yaml", **asked)
    assert found.row["reply_text"] == "Heard 16000.\nDescribe it."


def test_a_program_that_falls_over_is_told_with_its_last_words(tmp_path: Path) -> None:
    asked = {"instructions": "fall over", **TEXT}
    found = looped(tmp_path, SALMONN, SALMONN_ASKS, "--cfg-path", "decode.yaml", **asked)
    assert found.row["status"] == "disconnected"
    assert "the program ended (status 3)" in found.row["fault"]


def test_speechgpt_in_chain_of_modality_mode_speaks_and_says_what(tmp_path: Path) -> None:
    found = looped(tmp_path, SPEECHGPT, SPEECHGPT_ASKS)
    assert (found.row["status"], found.row["fault"]) == ("ok", None)
    assert found.row["reply_text"] == "It is a tone,\nof 200 Hz."
    assert found.heard == "pcm16 at 16000 Hz"
    assert found.row["latency"]["reply_ms"] == pytest.approx(500, abs=30)
    assert (tmp_path / "output/wav/answer_1.wav").is_file()  # the second question's


def test_speechgpt_with_another_prompt_answers_in_writing(tmp_path: Path) -> None:
    asks = [
        *("--ask", SPEECHGPT_ASKS[1], "{text}, this is input: {audio}"),
        *("--text", r"Response:\n(.*?)\nResponse json"),
    ]
    found = looped(tmp_path, SPEECHGPT, asks, instructions="Recognize this speech", **TEXT)
    assert found.row["reply_text"] == "a tone"


@pytest.mark.skipif(OLD is None, reason="there is no Python 3.8 to 3.10 here")
def test_the_examples_are_programs_of_an_old_python_too(tmp_path: Path) -> None:
    assert OLD is not None
    found = looped(tmp_path, SPEECHGPT, SPEECHGPT_ASKS, python=OLD)
    assert found.row["status"] == "ok"
    for path in EXAMPLES.glob("*.py"):
        reads = "import ast, sys; ast.parse(open(sys.argv[1]).read())"
        subprocess.run([OLD, "-c", reads, path], check=True)


def test_what_the_program_says_instead_of_an_answer_is_its_failure(tmp_path: Path) -> None:
    asks = [*SPEECHGPT_ASKS]
    asks[2] = "nonsense"
    found = looped(tmp_path, SPEECHGPT, asks)
    assert (found.row["status"], found.row["fault"]) == ("refused", "server: CUDA out of memory")


# Functions

SHOWN = "import json, os, wave\n"
WAV = """
def frames(path):
    with wave.open(path) as file:
        return [file.getframerate(), file.getnframes()]
"""
LIKE_TORCH = """
class Tensor:
    def __init__(self, values): self.values = values
    def cuda(self): return self
    def cpu(self): return self
    def unsqueeze(self, place): return Tensor([self.values])
    def __getitem__(self, key):
        if isinstance(key, tuple):
            return Tensor([row[key[1]] for row in self.values])
        return self.values[key]
    @property
    def shape(self): return (len(self.values), len(self.values[0]))
"""
SPIRIT = {
    "spiritlm/__init__.py": "",
    "spiritlm/model/__init__.py": "",
    "spiritlm/model/spiritlm_model.py": """
import numpy
class Output:
    def __init__(self, content): self.content = content
class Spiritlm:
    def __init__(self, name): self.name = name
    def generate(self, interleaved_inputs, output_modality, generation_config):
        kinds = [kind for kind, _ in interleaved_inputs]
        size = len(interleaved_inputs[0][1].squeeze())
        told = f"{self.name} {kinds} {size} {sorted(generation_config.items())}"
        if output_modality == "TEXT":
            return [Output(told)]
        return [Output(0.3 * numpy.sin(numpy.arange(8000) / 10, dtype=numpy.float32))]
""",
    "transformers.py": "GenerationConfig = dict",
}
TWIST = {
    "torch.py": "class cuda:\n    is_available = staticmethod(lambda: False)\n",
    "speech_lm.py": LIKE_TORCH
    + """
def build_speech_lm(name): return name
def generate_with_offset(model, units):
    assert model == "TWIST-1.3B", model
    return Tensor([units.values[0] + [7, 8, 9]])
""",
    "textless/__init__.py": "",
    "textless/data/__init__.py": "",
    "textless/data/speech_encoder.py": """
from speech_lm import Tensor
class SpeechEncoder:
    @classmethod
    def by_name(cls, dense_model_name, quantizer_model_name, vocab_size, deduplicate, need_f0,
                add_bos_eos):
        assert (dense_model_name, vocab_size, deduplicate) == ("mhubert-base-25hz", 500, True)
        return cls()
    def eval(self): return self
    def __call__(self, sound):
        assert sound.shape == (16000,)
        return {"units": Tensor([1, 2, 3, 4])}
""",
    "textless/vocoders/__init__.py": "",
    "textless/vocoders/hifigan/__init__.py": "",
    "textless/vocoders/hifigan/vocoder.py": """
import numpy
class CodeHiFiGANVocoder:
    @classmethod
    def by_name(cls, dense_model_name, quantizer_model_name, vocab_size): return cls()
    def eval(self): return self
    def __call__(self, units, dur_prediction):
        assert dur_prediction
        assert units.values == [[7, 8, 9]], units.values
        return 0.3 * numpy.sin(numpy.arange(3200 * units.shape[1]) / 10)
""",
}
BLSP = {
    "src/__init__.py": "",
    "src/modeling_blsp.py": """
class BlspModel:
    @classmethod
    def from_pretrained(cls, folder): return cls()
    def cuda(self): return self
    def eval(self): return self
    def generate(self, input_ids, suffix_input_ids, speech_values, speech_attention_mask,
                 generation_config):
        return [[*input_ids.values[0], f"<{speech_values.values[0]}>", *suffix_input_ids.values[0],
                 str(generation_config["do_sample"])]]
""",
    "transformers.py": LIKE_TORCH
    + """
class Made:
    def __init__(self, **fields): self.__dict__.update(fields)
class LlamaTokenizer:
    pad_token_id, bos_token_id, eos_token_id = 0, 1, 2
    @classmethod
    def from_pretrained(cls, folder):
        assert folder == "weights"
        return cls()
    def __call__(self, words, return_tensors):
        return Made(input_ids=Tensor([["<s>", words]]))
    def decode(self, ids, skip_special_tokens): return " ".join(ids)
class WhisperFeatureExtractor(LlamaTokenizer):
    sampling_rate = 16000
    def __call__(self, sound, sampling_rate, return_attention_mask, return_tensors):
        return Made(input_features=Tensor([len(sound)]), attention_mask=Tensor([1]))
GenerationConfig = dict
""",
}
QWEN = {
    "transformers.py": LIKE_TORCH
    + SHOWN
    + WAV
    + """
class Inputs(dict):
    def to(self, device): return self
class AutoTokenizer:
    @classmethod
    def from_pretrained(cls, name, trust_remote_code): return cls()
    def from_list_format(self, parts): return parts
    def process_audio(self, query):
        return frames(query.split("<audio>")[1].split("</audio>")[0])
    def __call__(self, query, return_tensors, audio_info): return Inputs(query=query)
    def decode(self, ids, skip_special_tokens, audio_info):
        return f"{ids}{audio_info}<|endoftext|>"
class AutoModelForCausalLM:
    device = "cpu"
    @classmethod
    def from_pretrained(cls, name, device_map, trust_remote_code): return cls()
    def eval(self): return self
    def chat(self, tokenizer, query, history):
        assert history is None
        return json.dumps([frames(query[0]["audio"]), *query[1:]]), []
    def generate(self, query, audio_info): return Tensor([query])
""",
}
PANDA = {
    "torch.py": """
def device(name): return name
def load(path, map_location): return path
class Generator:
    def __init__(self, device): pass
    def manual_seed(self, seed): return self
""",
    "model/__init__.py": "",
    "model/openllama.py": SHOWN
    + WAV
    + """
class OpenLLAMAPEFTModel:
    def __init__(self, **arguments): self.arguments = arguments
    def load_state_dict(self, weights, strict): assert weights.endswith("pytorch_model.pt")
    def cuda(self): return self
    def half(self): return self
    def eval(self): return self
    def generate(self, asked):
        return json.dumps([self.arguments["vicuna_ckpt_path"], asked["prompt"],
                           frames(asked["audio_paths"][0]), asked["temperature"]])
""",
}
BASE = PANDA["model/openllama.py"].partition("    def generate")[0]
NEXT = {
    "torch.py": PANDA["torch.py"],
    "config/__init__.py": "def load_config(arguments): return {'num_gen_img_tokens': 4}\n",
    "model/__init__.py": "",
    "model/anyToImageVideoAudio.py": BASE.replace("OpenLLAMAPEFTModel", "NextGPTModel")
    + """
    def generate(self, asked):
        assert self.arguments["num_gen_img_tokens"] == 4
        said = asked["prompt"].split("</Audio>")[1].strip()
        return [f"You asked {said}", {"aud": ["of", [0.0, 0.1]]},
                {"img": [str(frames(asked["audio_paths"][0])[1]), [object()]]}, "samples.\\n###"]
""",
}  # fmt: skip


def served(
    folder: Path, example: str, files: Mapping[str, str], env: Mapping[str, str], **keys: Any
) -> Rehearsal:
    """Ask the function of an example, copied into a repository of stand-ins."""
    for name, source in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(source)
    shutil.copy(EXAMPLES / example, folder)
    names = [f"{name}={value}" for name, value in env.items()]
    command = ["env", *names, sys.executable, "{serve_callable}", example, "--waveform", "numpy"]
    found = answered(folder, command, **keys)
    assert (found.row["status"], found.row["fault"]) == ("ok", None)
    return found


def test_spirit_lm_goes_on_in_speech(tmp_path: Path) -> None:
    found = served(tmp_path, "spirit_lm.py", SPIRIT, {})
    assert found.heard == "pcm16 at 16000 Hz"
    assert found.row["latency"]["reply_ms"] == pytest.approx(500, abs=30)


def test_spirit_lm_goes_on_in_writing(tmp_path: Path) -> None:
    env = {"SPIRITLM_OUTPUT": "TEXT", "SPIRITLM_MODEL": "spirit-lm-expressive-7b"}
    found = served(tmp_path, "spirit_lm.py", SPIRIT, env, written="Then?", temperature=0.0, **TEXT)
    said = found.row["reply_text"]
    assert said.startswith("spirit-lm-expressive-7b ['SPEECH', 'TEXT'] 16000 [('do_sample', False)")


def test_twist_says_what_it_adds_and_not_what_it_heard(tmp_path: Path) -> None:
    found = served(tmp_path, "twist.py", TWIST, {"TWIST_MODEL": "TWIST-1.3B"})
    assert found.heard == "pcm16 at 16000 Hz"
    assert found.row["latency"]["reply_ms"] == pytest.approx(600, abs=30)


def test_blsp_hears_and_reads_and_answers_in_writing(tmp_path: Path) -> None:
    found = served(tmp_path, "blsp.py", BLSP, {"BLSP_MODEL": "weights"}, written="Why?", **TEXT)
    assert found.row["reply_text"] == "<s> ###[Human]:Why? <16000> \n\n\n###[Assistant]: False"


def test_qwen_audio_chat_gets_sound_and_words_as_one_query(tmp_path: Path) -> None:
    found = served(tmp_path, "qwen_audio.py", QWEN, {}, written="What is it?", **TEXT)
    assert json.loads(found.row["reply_text"]) == [[16000, 16000], {"text": "What is it?"}]


def test_qwen_audio_without_chat_is_asked_with_its_tags(tmp_path: Path) -> None:
    env = {"QWEN_AUDIO_MODEL": "Qwen/Qwen-Audio", "QWEN_AUDIO_DEVICE": "cpu"}
    found = served(tmp_path, "qwen_audio.py", QWEN, env, instructions="Which?", **TEXT)
    assert found.row["reply_text"] == "[16000, 16000]"


def test_pandagpt_gets_a_file_and_a_prompt(tmp_path: Path) -> None:
    env = {"PANDAGPT_CKPT": "ckpt", "PANDAGPT_SIZE": "13b"}
    found = served(tmp_path, "pandagpt.py", PANDA, env, written="What is it?", **TEXT)
    told = ["ckpt/vicuna_ckpt/13b_v0", "What is it?", [16000, 16000], 0.8]
    assert json.loads(found.row["reply_text"]) == told


def test_next_gpt_answers_with_its_words_alone(tmp_path: Path) -> None:
    found = served(tmp_path, "next_gpt.py", NEXT, {"NEXTGPT_CKPT": "x"}, written="why", **TEXT)
    assert found.row["reply_text"] == "You asked why of 16000 samples."


def test_every_example_is_tested_and_says_what_it_is_known_by() -> None:
    here = Path(__file__).read_text()
    for path in EXAMPLES.glob("*.py"):
        assert f'"{path.name}"' in here
        text = path.read_text()
        assert path.name == "stdin_loop.py" or "Not run with genuine weights" in text
        compile(text, path.name, "exec")
