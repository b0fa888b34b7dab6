"""Builds a suite of mixed clips: `voxmeter suites build mix`."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from voxmeter.client import audio, keys
from voxmeter.client.effects.own import ENDINGS, files
from voxmeter.client.mixing import Mixed, Which, longest_offset_ms, mixed
from voxmeter.endpoints.errors import ClipError, UserError
from voxmeter.suites.jsonl import object_lines, read_items
from voxmeter.suites.suite import Item, Recording

SUITE, AUDIO = "suite.jsonl", "audio"
ASKS = ("own", "louder", "ahead")
"""The suite's own question, or one about a label: which is louder, which begins first."""

_KEPT = ("kind", "question", "options", "reference", "language", "rubric", "source", "licence")
_QUESTIONS = {
    "louder": "Which of the two is louder in this recording?",
    "ahead": "Which of the two begins first in this recording?",
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a user asked for.

    Attributes:
        first: A suite file whose recordings come first, or a folder of sounds.
        second: A sound file or a folder of them; one is drawn for each mix.
        output: Where the suite goes.
        names: What the two are called in labels and questions.
        levels_db: Loudness of the first less that of the second; one is drawn for each mix.
        offsets_ms: How much later the second begins; one is drawn, or any that lets both be heard
            together where there are none.
        ask: One of `ASKS`.
        question: What is asked of a folder of sounds, which has no questions of its own.
        each: Mixes of each first clip.
        seed: Of all that is drawn.
    """

    first: Path
    second: Path
    output: Path
    names: tuple[str, str] = ("speech", "sound")
    levels_db: Sequence[float] = (-6.0, 0.0, 6.0)
    offsets_ms: Sequence[float] = ()
    ask: str = "own"
    question: str = ""
    each: int = 1
    seed: int = 0


@dataclass(frozen=True, slots=True)
class _Clip:
    """A first clip with what a suite says of it."""

    name: str
    path: Path
    row: Mapping[str, object]


def build(wanted: Wanted) -> int:
    """Mix every first clip with drawn second ones and write a `jsonl` suite; return its size.

    Raises:
        UserError: If there is nothing to mix, a clip cannot be read, or the disk is full.
    """
    from voxmeter.client.jsonlines import disk, dump

    clips = list(_first_clips(wanted))
    seconds = files(wanted.second)
    if not clips or not seconds:
        place = wanted.second if clips else wanted.first
        raise UserError(str(place), "holds no sound files", f"known are {', '.join(ENDINGS)}")
    folder = wanted.output / AUDIO
    with disk(folder):
        folder.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []
    for clip in clips:
        for number in range(1, wanted.each + 1):
            name = clip.name if wanted.each == 1 else f"{clip.name}-{number}"
            made = _mix(clip, name, seconds, wanted)
            lines.append(dump(made))
    audio.write_whole(wanted.output / SUITE, "".join(lines).encode())
    return len(lines)


def _first_clips(wanted: Wanted) -> Iterator[_Clip]:
    if wanted.first.suffix == ".jsonl":
        items = {item.item: item for item in read_items(wanted.first, wanted.first.stem)}
        for _, row in object_lines(wanted.first):
            item = items[str(row["id"]).strip()]
            yield _Clip(item.item, _recording(item, wanted.first), row)
        return
    if wanted.ask == "own" and not wanted.question:
        raise UserError(
            str(wanted.first),
            "is not a suite, so nothing is known that could be asked",
            "give a .jsonl file, or add --question TEXT, --ask louder or --ask ahead",
        )
    row = {"kind": "open", "question": wanted.question, "rubric": "air-chat"}
    for name, path in _named_files(wanted.first).items():
        yield _Clip(name, path, row)


def _named_files(first: Path) -> dict[str, Path]:
    """Return sound files by where they lie below the folder, without their endings."""
    folder = first if first.is_dir() else first.parent
    found: dict[str, Path] = {}
    for path in files(first):
        name = path.relative_to(folder).with_suffix("").as_posix()
        if name in found:
            raise UserError(str(path), f"has the name of {found[name].name}", "rename one of them")
        found[name] = path
    return found


def _recording(item: Item, place: Path) -> Path:
    match item.recipe:
        case (Recording(path),):
            return path
        case _:
            cure = "build the suite first, and give what was built"
            raise UserError(f"{place} {item.item}", "is a text, not a recording", cure)


def _mix(clip: _Clip, name: str, seconds: Sequence[Path], wanted: Wanted) -> dict[str, object]:
    drawn = random.Random(f"{wanted.seed}\n{name}")  # noqa: S311 - a draw that can be repeated
    other = seconds[drawn.randrange(len(seconds))]
    level_db = wanted.levels_db[drawn.randrange(len(wanted.levels_db))]
    try:
        one, two = audio.read(clip.path), audio.read(other)
        most = longest_offset_ms(one, two)
        offsets = wanted.offsets_ms
        share = drawn.uniform(-1, 1)
        offset_ms = offsets[drawn.randrange(len(offsets))] if offsets else share * most
        made = mixed(one, two, level_db, offset_ms)
    except ClipError as error:
        raise UserError(f"{clip.path} with {other}", str(error), "replace one of them") from None
    file = f"{AUDIO}/{keys.part(name)}.flac"
    audio.write_flac(wanted.output / file, made.pcm.samples, made.pcm.rate)
    return _row(clip, name, file, other, made, wanted)


def _row(
    clip: _Clip, name: str, file: str, other: Path, made: Mixed, wanted: Wanted
) -> dict[str, object]:
    louder, ahead = _named(made.louder, wanted), _named(made.ahead, wanted)
    told = str(clip.row.get("told") or "")
    labels = f"Louder: {louder}. Ahead: {ahead}."
    return {
        "id": name,
        "audio": file,
        **{key: clip.row[key] for key in _KEPT if key in clip.row},
        **_asked(wanted, {"louder": made.louder, "ahead": made.ahead}),
        "told": f"{told} {labels}".strip(),
        "cluster": str(clip.row.get("cluster") or clip.name),
        "groups": clip.row.get("groups") or [],
        "made": {
            "first": clip.path.name,
            "second": other.name,
            "louder": louder,
            "ahead": ahead,
            "level_db": made.level_db,
            "offset_ms": round(made.offset_ms, 3),
            "gain_db": round(made.gain_db, 3),
            "seed": wanted.seed,
        },
    }


def _named(which: Which, wanted: Wanted) -> str:
    names = {"first": wanted.names[0], "second": wanted.names[1], "neither": "neither"}
    return names[which]


def _asked(wanted: Wanted, labels: Mapping[str, Which]) -> dict[str, object]:
    """Return the keys of a question about a label, none where the suite's own is asked."""
    if wanted.ask == "own":
        return {"question": wanted.question} if wanted.question else {}
    options = [f"the {wanted.names[0]}", f"the {wanted.names[1]}", "neither of them"]
    answers: tuple[Which, ...] = ("first", "second", "neither")
    return {
        "kind": "choice",
        "question": f"{_QUESTIONS[wanted.ask]} A. {options[0]}. B. {options[1]}. C. {options[2]}.",
        "options": options,
        "reference": "ABC"[answers.index(labels[wanted.ask])],
        "rubric": "",
    }
