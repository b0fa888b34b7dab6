"""`voxmeter judge`: hold judges against people, by a listening study of one's own runs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voxmeter.client.arguments import positive

if TYPE_CHECKING:
    from collections.abc import Iterator


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare `collect RUN...` and `validate FILE...`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="collect|validate")
    collect = actions.add_parser(
        "collect", help="make a page on which people compare replies without knowing whose"
    )
    collect.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run folders")
    collect.add_argument("-o", "--out", type=Path, metavar="DIR", help="default: study-NUMBER")
    collect.add_argument(
        "--per-domain",
        type=positive,
        default=5,
        metavar="N",
        help="items of each domain (default: 5)",
    )
    collect.add_argument("--systems", default="", metavar="A,B", help="compare these alone")
    collect.add_argument("--condition", default="clean", metavar="NAME", help="default: clean")
    collect.add_argument("--seed", type=_seed, default=0, metavar="N", help="of the sample")
    collect.add_argument("--embed", action="store_true", help="put the clips into the page")
    validate = actions.add_parser(
        "validate", help="compare judges with what people preferred on such a page"
    )
    validate.add_argument("files", nargs="+", type=Path, metavar="FILE", help="what the page saved")
    validate.add_argument("--study", type=Path, metavar="DIR", help="the folder with key.json")
    validate.add_argument("--json", action="store_true", help="print one line of JSON")


def run(args: argparse.Namespace) -> int:
    """Make a study, or read its results.

    Raises:
        UserError: If runs have no pairs, or a file is none of the study's.
    """
    return _collect(args) if args.action == "collect" else _validate(args)


def _seed(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 up")
    return int(text)


def _collect(args: argparse.Namespace) -> int:
    from contextlib import ExitStack

    from voxmeter.client.runfolder import RunFolder
    from voxmeter.client.study import draw
    from voxmeter.client.study_files import KEY, PAGE, write_study
    from voxmeter.client.terminal import printable

    systems = [name.strip() for name in args.systems.split(",") if name.strip()]
    with ExitStack() as stack:
        runs = {path.resolve(): path for path in args.runs}.values()  # each once, however named
        folders = [stack.enter_context(RunFolder.open(path)) for path in runs]
        study = draw(
            folders,
            condition=args.condition,
            systems=systems,
            per_domain=args.per_domain,
            seed=args.seed,
        )
        out = args.out or Path(f"study-{study.id}")
        write_study(study, folders, out, embed=args.embed)
    names = sorted({name for pair in study.pairs for name in pair.systems})
    print(printable(f"{len(study.pairs)} pairs of {', '.join(names)}"))
    print(f"open {out / PAGE} in a browser; keep {out / KEY} from those who listen")
    print(f"then: voxmeter judge validate FILE --study {out}")
    return 0


def _validate(args: argparse.Namespace) -> int:
    import json

    from voxmeter.client.study_results import find_key, judge_scores, read_votes, results
    from voxmeter.client.terminal import printable
    from voxmeter.endpoints.errors import UserError

    read = [read_votes(path) for path in args.files]
    studies = {study for study, _ in read}
    if len(studies) != 1:
        raise UserError("voxmeter judge validate", "files of several studies", "give those of one")
    votes = [vote for _, one in read for vote in one]
    place, key = find_key(studies.pop(), args.files[0], args.study)
    found = results(key, votes, judge_scores(place, key))
    if args.json:
        print(json.dumps(found))
        return 0
    for line in _lines(found):
        print(printable(line))
    return 0


def _lines(found: dict[str, Any]) -> Iterator[str]:
    from voxmeter.client.figures import rate

    yield (
        f"study {found['study']}: {found['votes']} choices by {found['raters']} "
        f"{'person' if found['raters'] == 1 else 'people'} on {found['pairs']} pairs"
    )
    for name, one in found["preferred"].items():
        yield f"  {name}: preferred in {one['preferred']} of {one['shown']}"
    for judge, rows in found["judges"].items():
        for row in rows:
            place = row["suite"] or " / ".join(row["systems"] or ()) or "all"
            agreed, decided = row["agreement"], row["without_ties"]
            yield (
                f"judge {judge}, {place}: same preference as people {rate(agreed)} of "
                f"{agreed['n']}; where neither ties {rate(decided)} of {decided['n']}"
            )
    if not found["judges"]:
        yield "no judge has rated these replies; voxmeter score RUN --judge NAME asks one"
    if found["people"]["n"]:
        people = found["people"]
        yield f"people among each other: same preference {rate(people)} of {people['n']}"
