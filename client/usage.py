"""How the kinds that live on this machine are set up: what `voxmeter endpoints KIND` adds."""

from __future__ import annotations

from pathlib import Path

_EXEC = """\
a program of yours, in any language, started once and asked again and again:

  [[endpoint]]
  name = "my-model"
  kind = "exec"
  command = "python3 my_model.py"    # runs in the folder of the bench.toml
  connect_timeout_s = 600            # time to load the model

it says {"event": "ready"}, then for each line on its standard input
  {"id": "7", "audio": "/tmp/7.wav", "sample_rate": 16000, "text": null, "instructions": "", \
"history": []}
it writes lines, the last of them done or error:
  {"id": "7", "event": "text", "text": "Paris."}
  {"id": "7", "event": "audio", "path": "reply.wav"}
  {"id": "7", "event": "audio", "pcm_b64": "AAA=", "sample_rate": 24000}
  {"id": "7", "event": "done"}
  {"id": "7", "event": "error", "text": "out of memory"}
standard output is for these lines alone; logs go to standard error.

a Python function, in any environment with Python 3.8 or newer, needs no such program:

  command = ["/opt/model/bin/python", "{serve_callable}", "my_model.py:e2e_evaluation"]

it is called as e2e_evaluation((waveform, rate), rate), as VoxEval does.
{serve_callable} stands for SERVE_CALLABLE"""

_PYTHON = """\
a function in this very process, for what is light and well-behaved; "exec" is for the rest:

  [[endpoint]]
  name = "my-function"
  kind = "python"
  [endpoint.options]
  callable = "my_model.py:answer"    # or "package.module:function"

it is called as answer((waveform, rate), rate) and returns a waveform, (waveform, rate), the path of
an audio file, text, {"text": ..., "audio": ..., "sample_rate": ...}, or yields several of them."""

_IMPORT = """\
answers that were made elsewhere, scored as if they had just come; they have no latency:

  [[endpoint]]
  name = "their-model"
  kind = "import"
  [endpoint.options]
  path = "answers"                   # ITEM.wav, SUITE/ITEM.wav or SUITE/CONDITION/ITEM.wav

or a file of JSON lines:

  path = "answers.jsonl"             # {"id": ITEM, "audio": "a.wav", "text": "Paris."}"""

_PIPELINE = """\
Whisper hears, a language model answers, a voice speaks; all you need is the model's URL:

  [[endpoint]]
  name = "whisper-llama"
  kind = "pipeline"
  model = "meta-llama/Meta-Llama-3-8B-Instruct"
  [endpoint.options]
  llm_base_url = "http://127.0.0.1:8000/v1"    # vLLM, llama.cpp, Ollama, OpenAI, ...
  tts = "none"                                 # replies in writing; "piper" speaks them

with nothing but voxmeter[local], no server and no key:

  [[endpoint]]
  name = "whisper-local"
  preset = "whisper-local"

what each stage took is in the run folder: events/CELL/FILE.jsonl, rows of kind "stage"."""


def program() -> str:
    """Return how a program becomes an endpoint."""
    return _EXEC.replace("SERVE_CALLABLE", str(Path(__file__).with_name("serve_callable.py")))


def function() -> str:
    """Return how a Python function becomes an endpoint."""
    return _PYTHON


def answers() -> str:
    """Return how answers made elsewhere are scored."""
    return _IMPORT


def pipeline() -> str:
    """Return how three models become an endpoint."""
    return _PIPELINE
