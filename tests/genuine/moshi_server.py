"""Moshi's own server over a small model of random weights: it babbles for ever, on one core.

    python moshi_server.py FOLDER LEVEL

The weights go into FOLDER; LEVEL is how loud the babble is, as a share of full scale (0: as it is
made, which nobody hears). All that the protocol is made of is genuine: the server, its lock, its
Opus streams, Mimi's frames, the text tokens.
"""

from __future__ import annotations

import json
import runpy
import socket
import sys
from pathlib import Path

import sentencepiece
import torch
from moshi.models import loaders
from safetensors.torch import save_file

WIDTH, CODEBOOKS, CODES, WORDS = 32, 8, 64, 300


def mimi_config() -> dict[str, object]:
    """Return Mimi's own configuration, narrower; its frames stay 80 ms."""
    size = {"input_dimension": WIDTH, "output_dimension": WIDTH}
    transformer = {"d_model": WIDTH, "num_heads": 2, "num_layers": 1, "dim_feedforward": 64}
    transformer |= {"input_dimension": WIDTH, "output_dimensions": [WIDTH]}
    return {
        **loaders._mimi_config,
        "seanet": {**loaders._seanet_kwargs, "dimension": WIDTH, "n_filters": 2},
        "quantizer": {"dimension": 16, "n_q": CODEBOOKS, "bins": CODES, **size},
        "transformer": {**loaders._transformer_kwargs, **transformer},
    }


def lm_config() -> dict[str, object]:
    """Return the configuration of Moshi 7B with nearly all of its size taken out."""
    main = {"dim": 64, "num_heads": 2, "num_layers": 1, "context": 100}
    depformer = {"dim": 32, "dim_feedforward": 64, "num_heads": 2, "num_layers": 1}
    smaller = main | {f"depformer_{name}": value for name, value in depformer.items()}
    return {**loaders._lm_kwargs, "text_card": WORDS, "card": CODES, **smaller}


def make(folder: Path, level: float) -> None:
    """Write a checkpoint as the server loads one."""
    torch.manual_seed(0)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mimi.json").write_text(json.dumps(mimi_config()))
    names = {"mimi_config_name": f"file://{folder.resolve() / 'mimi.json'}"}
    (folder / "config.json").write_text(json.dumps(lm_config() | names))
    lines = (f"Sentence {n} has the words {n * 7} and {chr(97 + n % 26)}." for n in range(3000))
    (folder / "text.txt").write_text("\n".join(lines))
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "text.txt"),
        model_prefix=str(folder / "text"),
        vocab_size=WORDS,
        byte_fallback=True,
        pad_id=3,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    mimi = loaders.get_mimi(None, mimi_config())
    if level:
        with torch.no_grad():
            codes = torch.randint(0, CODES, (1, CODEBOOKS, 25))
            last = mimi.decoder.model[-1].conv.conv
            last.weight *= level / mimi.decode(codes).std()
            last.bias.zero_()
    _save(mimi, folder / "mimi.safetensors")
    lm = loaders.get_moshi_lm(None, lm_kwargs=lm_config(), device="cpu", dtype=torch.float32)
    _save(lm, folder / "moshi.safetensors")


def _save(model: torch.nn.Module, path: Path) -> None:
    save_file({name: value.contiguous() for name, value in model.state_dict().items()}, path)


def main() -> None:
    """Make the checkpoint, then be the server."""
    folder, level = Path(sys.argv[1]), float(sys.argv[2])
    torch.set_num_threads(1)
    make(folder, level)
    torch.cuda.synchronize = lambda *_: None  # the server calls it on any device
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    weights = {"moshi-weight": "moshi.safetensors", "mimi-weight": "mimi.safetensors"}
    files = weights | {"tokenizer": "text.model", "config-path": "config.json"}
    sys.argv = ["moshi.server", "--device", "cpu", "--static", "none"]
    sys.argv += ["--host", "127.0.0.1", "--port", port]
    for option, name in files.items():
        sys.argv += [f"--{option}", str(folder / name)]
    runpy.run_module("moshi.server", run_name="__main__")


if __name__ == "__main__":
    main()
