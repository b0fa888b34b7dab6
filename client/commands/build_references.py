"""`voxmeter suites build references`: a chat model answers questions that have no reference."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from voxmeter.client.arguments import positive

if TYPE_CHECKING:
    from voxmeter.client.reference_writing import Written


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the download, the model, and the file."""
    parser.add_argument("source", type=Path, metavar="PATH", help="the folder of ADU-Bench")
    parser.add_argument("--model", required=True, metavar="NAME", help="the chat model that writes")
    parser.add_argument(
        "--url", metavar="URL", help="of its OpenAI-compatible service (default: OpenAI's own)"
    )
    parser.add_argument("--key-env", metavar="VAR", help="environment variable with its key")
    parser.add_argument(
        "-o",
        "--out",
        "--output",
        dest="output",
        type=Path,
        metavar="FILE",
        help="default: beside PATH, named by the model",
    )
    parser.add_argument(
        "--all", action="store_true", help="also for questions that have a reference"
    )
    parser.add_argument("--prompt", type=Path, metavar="FILE", help="what the model is told")
    parser.add_argument("--limit", type=positive, metavar="N", help="at most so many now")
    parser.add_argument("--concurrency", type=positive, default=4, metavar="N", help="at once")


def run(args: argparse.Namespace) -> int:
    """Write them; a second call asks only for what is missing.

    Returns:
        3 when not one could be written, else 0.

    Raises:
        UserError: If the download, the model or the file is wrong.
    """
    from pydantic import ValidationError

    from voxmeter.client import reference_writing
    from voxmeter.client.bench import Judge
    from voxmeter.client.cli import DONE, ENDPOINT_FAILED
    from voxmeter.client.redaction import Redactor, secret
    from voxmeter.endpoints.errors import UserError
    from voxmeter.suites import catalog

    suite = catalog.load("adu-bench", "adu-bench", {"path": str(args.source.resolve())}, Path())
    try:
        model = Judge(
            name="references",
            model=args.model,
            base_url=args.url,
            api_key_env=args.key_env,
            concurrency=args.concurrency,
        )
    except ValidationError as error:
        first = error.errors()[0]
        place = f"--{first['loc'][0] if first['loc'] else 'model'}"
        raise UserError(place, str(first["msg"]), "see --help") from None
    if model.base_url is None and model.api_key_env is None:
        raise UserError(
            "--key-env", "is missing, and so is --url", "write --key-env OPENAI_API_KEY"
        )
    secrets = [secret(args.key_env, "--key-env")] if args.key_env else []
    output = args.output or reference_writing.default_output(args.source.resolve(), args.model)
    wanted = reference_writing.Wanted(
        suite,
        model,
        output,
        prompt=_prompt(args.prompt) or reference_writing.PROMPT,
        every=args.all,
        limit=args.limit,
    )
    found = reference_writing.write(wanted, args.source, Redactor(secrets))
    _told(found)
    if output.exists():
        print(output)
    return ENDPOINT_FAILED if found.problems and not found.written else DONE


def _prompt(path: Path | None) -> str:
    from voxmeter.client.jsonlines import disk
    from voxmeter.endpoints.errors import UserError

    if path is None:
        return ""
    try:
        with disk(path):
            text = path.read_text(encoding="utf-8").strip()
    except UnicodeDecodeError:
        raise UserError(str(path), "is not UTF-8 text", "save it as UTF-8") from None
    if not text:
        raise UserError(str(path), "is empty", "write what the model is to be told")
    return text


def _told(found: Written) -> None:
    from voxmeter.client.terminal import printable

    for problem in found.problems:
        print(f"FAIL {printable(problem, 400)}")
    print(f"{found.written} written, {found.known} known from before")
    if found.by_voice:
        print(
            f"{found.by_voice} left out: how they are spoken decides what is meant (pause, "
            "intonation)"
        )
    if found.silent:
        print(f"{found.silent} left out: their words are not written down")
