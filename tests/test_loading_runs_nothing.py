"""A run folder is data: whoever reads one runs nothing of it, whatever lies in it."""

from __future__ import annotations

import ast
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sample_run import build, item, score, trial

import voxmeter
from voxmeter.client.audio import write_flac

SOURCE = Path(voxmeter.__file__).parents[1]
PLANTED = (
    *("conftest.py", "sitecustomize.py", "usercustomize.py", "__init__.py", "__main__.py"),
    *("voxmeter.py", "json.py", "numpy.py", "soundfile.py", "wave.py", "pydantic.py", "rich.py"),
    *("bot.py", "mine.py", "bench.py", "setup.py", "faster_whisper.py", "ctranslate2.py"),
)
START = "import sys; from voxmeter.client.cli import main; sys.exit(main(sys.argv[1:]))"
OPEN = "import sys, voxmeter; print(voxmeter.open_run(sys.argv[1]).path)"


class Payload:
    """What a pickle runs when it is read."""

    def __init__(self, proof: Path) -> None:
        self.proof = proof

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.proof),)


def run_folder(parent: Path, proof: Path) -> Path:
    """Return a run folder that would make `proof` if anything of it were run."""
    attack = f"import os\nos.makedirs({str(proof)!r}, exist_ok=True)\n"
    command = [sys.executable, "-c", attack]
    one = trial("q0", reply_text="The answer is B.", first_audible_ms=400.0)
    config = {
        "run": {"name": "x", "trials": 1},
        "endpoint": [
            {"name": "bot", "kind": "exec", "command": command},
            {
                "name": "mine",
                "kind": "python",
                "folder": str(parent),
                "options": {"callable": "mine.py:answer"},
            },
        ],
        "suite": [{"kind": "demo", "limit": 2}],
        "transcribe": {"model": "tiny.en"},
        "gate": [{"metric": "first_audible_ms", "at": "p50", "max": 500}],
    }
    with build(parent, [item("q0")], [one], [score(one)], run={"config": config}) as folder:
        paths = folder.attempt_paths(one)
        paths.reply.parent.mkdir(parents=True)
        write_flac(paths.reply, np.full(16_000, 0.1, np.float32), 16_000)
        path = folder.path
    (parent / "mine.py").write_text(attack)
    for name in PLANTED:
        (path / name).write_text(attack)
    (path / "bench.toml").write_text(
        f'[[endpoint]]\nname = "b"\nkind = "exec"\ncommand = {json.dumps(command)}\n'
        '[[suite]]\nkind = "demo"\n'
    )
    (path / "pytest.ini").write_text("[pytest]\naddopts = -p bot\n")
    (path / "yaml.yaml").write_text(f"!!python/object/apply:os.mkdir ['{proof}']\n")
    for name in ("cache.pkl", "columns.npy", "summary.pickle"):
        (path / name).write_bytes(pickle.dumps(Payload(proof)))
    return path


COMMANDS = [
    ("report", "{run}", "--format", "md,html,csv,json", "-o", "{out}"),
    ("report", "{run}"),
    ("score", "{run}"),
    ("compare", "{run}", "{other}"),
    ("judge", "collect", "{run}", "-o", "{out}/study"),
]


@pytest.mark.parametrize("words", [*COMMANDS, ("open",)], ids=lambda words: " ".join(words[:2]))
def test_reading_a_run_folder_runs_nothing_of_it(words: tuple[str, ...], tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    run = run_folder(tmp_path, proof)
    other = run_folder(tmp_path / "other", proof)
    (tmp_path / "out").mkdir()
    places = {"run": str(run), "other": str(other), "out": str(tmp_path / "out")}
    filled = [word.format(**places) for word in words]
    code, arguments = (OPEN, [str(run)]) if words == ("open",) else (START, filled)
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, *arguments],  # -P: as the installed program starts
        cwd=run,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode in {0, 1, 2, 3}, done.stderr
    assert "Traceback" not in done.stderr
    assert not proof.exists(), done.stdout + done.stderr


def test_the_planted_attack_would_be_seen(tmp_path: Path) -> None:
    run = run_folder(tmp_path, tmp_path / "proof")
    subprocess.run([sys.executable, str(run / "bot.py")], check=True)
    assert (tmp_path / "proof").exists()


def test_to_go_on_with_a_run_says_which_programs_it_starts(tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    run = run_folder(tmp_path, proof)
    done = subprocess.run(
        [sys.executable, "-P", "-c", START, "run", "--resume", str(run), "--quiet"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    told = [line for line in done.stderr.splitlines() if "the run folder's endpoint" in line]
    assert [name for name in ("bot", "mine") if f'"{name}" runs' in "".join(told)] == [
        "bot",
        "mine",
    ]
    assert str(proof) in told[0]


UNSAFE = {
    "pickle": {"client/worker.py"},
    "marshal": set(),
    "shelve": set(),
    "yaml": set(),
    "dill": set(),
    "joblib": set(),
}
"""Modules that run what they read, and the files that may have them: between our own processes."""


def test_nothing_in_the_product_reads_what_could_run() -> None:
    package = Path(voxmeter.__file__).parent
    seen = 0
    for part in ("client", "scoring", "suites", "endpoints"):
        for path in sorted((package / part).rglob("*.py")):
            name = path.relative_to(package).as_posix()
            seen += 1
            for node in ast.walk(ast.parse(path.read_text())):
                match node:
                    case ast.Import(names):
                        modules = [one.name.partition(".")[0] for one in names]
                    case ast.ImportFrom(module=str(module)):
                        modules = [module.partition(".")[0]]
                    case ast.Call(func=ast.Name("eval" | "exec" | "compile" | "__import__")):
                        raise AssertionError(f"{name}:{node.lineno}")
                    case ast.Call(func=ast.Attribute(attr="load"), keywords=keywords) if any(
                        one.arg == "allow_pickle" for one in keywords
                    ):
                        raise AssertionError(f"{name}:{node.lineno}")
                    case ast.Attribute(ast.Name("np" | "numpy"), "load" | "fromregex"):
                        raise AssertionError(f"{name}:{node.lineno}")
                    case _:
                        continue
                for module in modules:
                    assert name in UNSAFE.get(module, {name}), f"{name} imports {module}"
    assert seen > 200
