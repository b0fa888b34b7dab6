"""`voxmeter suites build speech`: speaks a file of questions."""

from __future__ import annotations

import argparse
from pathlib import Path

from voxmeter.client.arguments import positive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what is spoken, by whom, how, and where it is kept."""
    parser.add_argument(
        "source", type=Path, metavar="SOURCE", help="questions: .csv as MMLU has them, or .jsonl"
    )
    parser.add_argument(
        "-o",
        "--out",
        "--output",
        dest="output",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="where the suite goes",
    )
    _add_who(parser)
    _add_how(parser)
    _add_text(parser)
    _add_kept(parser)


def run(args: argparse.Namespace) -> int:
    """Build the suite; what was spoken before is not spoken again.

    Raises:
        UserError: If the source, a voice or an option is wrong.
    """
    from voxmeter.client import speech_build
    from voxmeter.client.cli import DONE
    from voxmeter.client.speech_wanted import wanted

    chosen = wanted(vars(args))
    if args.show:
        speech_build.show(chosen)
    else:
        speech_build.build(chosen)
    return DONE


def _add_who(parser: argparse.ArgumentParser) -> None:
    who = parser.add_argument_group("who speaks (several make as many items of each question)")
    who.add_argument(
        "--speaker",
        type=_names,
        default=(),
        metavar="NAME[,NAME]",
        help="hibari (the usual one for English), piper, espeak-ng, espeak-ng:en+f3, "
        "espeak-ng:{language}, openai:<voice>, or adu: eight voices",
    )
    who.add_argument("--tts-url", metavar="URL", help="of an OpenAI-compatible speech service")
    who.add_argument("--tts-model", metavar="NAME", help="its model (default: gpt-4o-mini-tts)")
    who.add_argument("--tts-key-env", metavar="VAR", help="environment variable with its key")


def _add_how(parser: argparse.ArgumentParser) -> None:
    how = parser.add_argument_group("how (lists multiply, unless --draw)")
    for name, help_ in (
        ("rate", "how much faster, percent"),
        ("pitch", "how much higher, percent"),
        ("volume", "how much louder, percent"),
    ):
        how.add_argument(
            f"--{name}", type=_percents, default=(0.0,), metavar="N[,N]", help=help_ + " (=-10,10)"
        )
    how.add_argument(
        "--emotion", type=_names, default=("",), metavar="WORD[,WORD]", help="openai voices alone"
    )
    how.add_argument(
        "--variation",
        type=_names,
        default=("none",),
        metavar="NAME[,NAME]",
        help="how questions are worded: none, fillers, mispronunciations, disfluencies, "
        "false-starts, proficiency, or all",
    )
    how.add_argument("--llm", metavar="MODEL", help="a chat model words them, instead of rules")
    how.add_argument("--llm-url", metavar="URL", help="of its OpenAI-compatible service")
    how.add_argument("--llm-key-env", metavar="VAR", help="environment variable with its key")
    how.add_argument(
        "--draw", action="store_true", help="one of all combinations for each question, by seed"
    )
    how.add_argument("--seed", type=int, default=0, help="of whatever is drawn (default: 0)")
    how.add_argument(
        "--pause-ms", type=float, metavar="MS", help="silence where the text has a | (else none)"
    )
    how.add_argument(
        "--longest-pause-ms",
        type=float,
        default=300.0,
        metavar="MS",
        help="longer pauses of a voice are shortened, as servers take them for the end of a "
        "question (default: 300; 0 leaves them)",
    )


def _add_text(parser: argparse.ArgumentParser) -> None:
    text = parser.add_argument_group("what is said")
    text.add_argument("--ask", metavar="SENTENCE", help="asks to choose, before the options")
    text.add_argument(
        "--language", metavar="CODE", help="of questions that name none (default: en)"
    )
    text.add_argument(
        "--as-written", action="store_true", help="leave numbers and signs to the voice"
    )
    text.add_argument("--show", action="store_true", help="print what would be said, speak nothing")
    text.add_argument("--limit", type=positive, metavar="N", help="the first N questions alone")


def _add_kept(parser: argparse.ArgumentParser) -> None:
    kept = parser.add_argument_group("how it is kept")
    kept.add_argument("--format", choices=("flac", "ogg"), default="flac", help="of the clips")
    kept.add_argument(
        "--origin", metavar="TEXT", help="where the questions come from, in each line"
    )
    kept.add_argument("--licence", metavar="TEXT", help="of the questions, likewise")
    kept.add_argument(
        "--skip-bad", action="store_true", help="leave rows out that cannot be asked, and tell"
    )


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise argparse.ArgumentTypeError(f"{text!r} has an empty name in it")
    return names


def _percents(text: str) -> tuple[float, ...]:
    try:
        found = tuple(float(part.strip().removesuffix("%")) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of percents") from None
    if not all(-50 <= one <= 100 for one in found):
        raise argparse.ArgumentTypeError(f"{text!r}: use -50 to 100")
    return found
