"""Shows what a protocol's own tests leave out of its files; takes names of protocols, or all.

A branch that a peer's bytes can reach must be covered by the tests of that very protocol, not by
chance through a session of another. Prints each line and branch that is left, and ends with 1.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Own:
    """One protocol.

    Attributes:
        files: Patterns of its modules in `endpoints/`.
        tests: Patterns of its test files.
        without: Modules that the patterns take in and that belong to another.
    """

    files: tuple[str, ...]
    tests: tuple[str, ...]
    without: tuple[str, ...] = ()


PROTOCOLS: Mapping[str, Own] = {
    "openai-realtime": Own(
        ("openai_*",), ("openai_realtime*", "codec_pair"), ("openai_chat*", "openai_chat")
    ),
    "moshi": Own(("moshi*",), ("moshi*",)),
    "gemini-live": Own(("gemini_live*",), ("gemini_live*",)),
    "gpt-live": Own(("gpt_live*",), ("gpt_live",)),
    "elevenlabs": Own(("elevenlabs*",), ("elevenlabs",)),
    "deepgram": Own(("deepgram*",), ("deepgram",)),
    "ultravox": Own(("ultravox*",), ("ultravox",)),
    "pipecat": Own(("pipecat*", "protobuf_wire"), ("pipecat*", "protobuf_wire")),
    "gradio": Own(("gradio*", "hls", "adts"), ("gradio*", "hls", "adts", "glm_4_voice")),
    "glm-4-voice": Own(("glm_4_voice*",), ("glm_4_voice",)),
    "mini-omni": Own(("mini_omni", "mixed_replace"), ("mini_omni", "http_endpoint")),
    "openai-chat": Own(("openai_chat*",), ("openai_chat",)),
    "http": Own(
        ("http_*", "json_path"), ("http_endpoint", "http_served", "http_docs", "mini_omni")
    ),
    "lines": Own(("exec_lines",), ("exec_lines", "python_endpoint", "import_endpoint")),
    "pipeline": Own(("pipeline*",), ("pipeline*",)),
    "hermes": Own(("hermes*",), ("hermes",)),
}


def left_out(own: Own) -> Iterator[str]:
    """Yield `file:line` for each line, and `file:line -> line` for each branch, that is left.

    Raises:
        RuntimeError: If the tests do not pass.
    """
    files = {path for one in own.files for path in (ROOT / "endpoints").glob(f"{one}.py")}
    files -= {path for one in own.without for path in (ROOT / "endpoints").glob(f"{one}.py")}
    tests = sorted({path for one in own.tests for path in (ROOT / "tests").glob(f"test_{one}.py")})
    with tempfile.TemporaryDirectory() as folder:
        data, report = Path(folder, "data"), Path(folder, "report.json")
        coverage = [sys.executable, "-m", "coverage"]
        run = [*coverage, "run", "--branch", f"--data-file={data}", "--source=endpoints"]
        done = subprocess.run(
            [*run, "-m", "pytest", "-q", *map(str, tests)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stdout[-2000:])
        told = [*coverage, "json", "-q", f"--data-file={data}", "-o", str(report)]
        subprocess.run(told, cwd=ROOT, check=True)
        found: dict[str, Any] = json.loads(report.read_text())["files"]
    for path in sorted(files):
        of_file = found.get(str(path.relative_to(ROOT)))
        if of_file is None:
            yield f"{path.relative_to(ROOT)}: not run at all"
            continue
        yield from (f"endpoints/{path.name}:{line}" for line in of_file["missing_lines"])
        for start, end in of_file["missing_branches"]:
            if start not in of_file["missing_lines"]:
                yield f"endpoints/{path.name}:{start} -> {'its end' if end < 0 else end}"


def main(names: list[str]) -> int:
    """Print what is left; return 1 if anything is."""
    status = 0
    for name in names or PROTOCOLS:
        left = list(left_out(PROTOCOLS[name]))
        print(f"{name}: {'whole' if not left else ''}")
        for place in left:
            print(f"  {place}")
        status = status or int(bool(left))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
