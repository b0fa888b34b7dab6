"""Makes a `jsonl` suite of questions in writing: speaks them, and writes down how."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from voxmeter.client import keys, speech_voices
from voxmeter.client.speech_source import Written, rows
from voxmeter.client.speech_voices import Manner
from voxmeter.client.speech_wanted import Said, Wanted
from voxmeter.endpoints.errors import ClipError, UserError
from voxmeter.suites.jsonl import default_voice
from voxmeter.suites.references import labels
from voxmeter.suites.spoken import wordings
from voxmeter.suites.spoken.text import spoken

if TYPE_CHECKING:
    from voxmeter.client.rewording import Rewording
    from voxmeter.client.speech_service import Service

SUITE = "suite.jsonl"
AUDIO = "audio"
_VERSION = "1"  # of how a clip is made: part of the names of clips
_SHOWN_PROBLEMS = 20
_ENDS = (".", "?", "!", "…", "。", "\N{FULLWIDTH QUESTION MARK}", "\N{FULLWIDTH EXCLAMATION MARK}")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the suite that is made.

    Attributes:
        written: The question.
        way: How it is asked.
        text: What is said.
        name: Its id.
        several: Whether the question is asked in other ways as well.
    """

    written: Written
    way: Said
    text: str
    name: str
    several: bool


class Builder:
    """Turns questions into what is said, and tells what cannot be.

    Attributes:
        problems: One line for each row that cannot be asked.
    """

    def __init__(self, wanted: Wanted, rewording: Rewording | None = None) -> None:
        self.problems: list[str] = []
        self._wanted = wanted
        self._rewording = rewording

    def questions(self) -> Iterator[Written]:
        """Yield the questions that can be read; the others become problems."""
        good = 0
        for row in rows(self._wanted.source, self._wanted.language):
            if isinstance(row, UserError):
                self.problems.append(str(row))
                continue
            yield row
            good += 1
            if good == self._wanted.limit:
                return

    def lines(self, written: Written) -> Iterator[Line]:
        """Yield how one question is asked.

        Raises:
            ClipError: If it cannot be put so.
            UserError: If no voice speaks its language, or the chat model cannot be asked.
        """
        ways = self._wanted.ways
        if self._wanted.draw:
            seed = f"{self._wanted.seed}\n{written.name}".encode("utf-8", "surrogatepass")
            ways = (random.Random(hashlib.sha256(seed).digest()).choice(ways),)  # noqa: S311 - no secret
        several = len(ways) > 1
        for way in ways:
            speaker = written.voice or way.manner.speaker or default_voice(written.language)
            speaker = speech_voices.in_language(speaker, written.language)
            cast = replace(way, manner=replace(way.manner, speaker=speaker))
            name = f"{written.name}-{way.label}" if several else written.name
            yield Line(written, cast, self.text(written, way), name, several)

    def text(self, written: Written, way: Said) -> str:
        """Return what is said: the question, perhaps reworded, and the options as they are.

        Raises:
            ClipError: If it cannot be put so.
        """
        question = self._question(written, way.wording)
        if not written.options or written.whole:
            return question
        known = labels(len(written.options))
        named = f"{', '.join(known[:-1])} and {known[-1]}"
        ask = self._wanted.ask.replace("{labels}", named)
        options = (
            f"{label}. {_ended(self._words(option, written.language, written.question))}"
            for label, option in zip(known, written.options, strict=True)
        )
        return " ".join((_ended(question), ask, *options))

    def _question(self, written: Written, wording: str) -> str:
        if wording == wordings.NONE:
            return self._words(written.question, written.language)
        if written.whole:
            found = "text has the options in it, and only a question is reworded"
            raise ClipError(f"line {written.line}", found)
        if written.language.partition("-")[0] != "en" and self._rewording is None:
            found = f"{wording} by rule is English, and the question is {written.language}"
            raise ClipError(f"line {written.line}", f"{found}: add --llm")
        if self._rewording is not None:
            return self._words(self._rewording(written.question, wording), written.language)
        seed = f"{self._wanted.seed}\n{written.name}"
        said = self._words(written.question, written.language)
        return wordings.reworded(said, wording, seed)

    def _words(self, text: str, language: str, about: str = "") -> str:
        if self._wanted.as_written:
            return " ".join(text.split())
        said = spoken(text, language, about).text
        return said[:1].upper() + said[1:]


def _ended(text: str) -> str:
    text = text.rstrip()
    return text if text.endswith(_ENDS) else f"{text.rstrip(',;:')}."


def clip_name(line: Line, wanted: Wanted) -> str:
    """Return the name of a line's clip: the same only where the very same would be spoken."""
    manner = line.way.manner
    service = [wanted.tts.url, wanted.tts.model] if wanted.tts and manner.service else []
    whole = [_VERSION, line.text, *map(str, _parameters(manner).items()), *service]
    digest = hashlib.sha256("\n".join(whole).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{keys.part(line.name)}-{digest[:12]}.{wanted.form}"


def _parameters(manner: Manner) -> dict[str, object]:
    """Return how a text is spoken, without what is as usual."""
    found: dict[str, object] = {"voice": manner.speaker}
    for name in ("rate", "pitch", "volume"):
        if getattr(manner, name):
            found[f"{name}_percent"] = getattr(manner, name)
    if manner.emotion:
        found["emotion"] = manner.emotion
    for name in ("pause_ms", "longest_pause_ms"):
        if getattr(manner, name) is not None:
            found[name] = getattr(manner, name)
    return found


def row(line: Line, wanted: Wanted, model: str = "") -> dict[str, object]:
    """Return a line of the suite.

    Args:
        line: What was spoken.
        wanted: What the user asked for.
        model: The chat model that reworded, if one did.
    """
    written, way = line.written, line.way
    made: dict[str, object] = {"said": line.text, **_parameters(way.manner)}
    if way.manner.service and wanted.tts is not None:
        made["tts_model"] = wanted.tts.model
    if way.wording != wordings.NONE:
        made |= {"wording": way.wording, "worded_by": model or "rules", "seed": wanted.seed}
    groups = [way.label, *written.groups] if line.several else list(written.groups)
    reference = list(written.reference)
    found = {
        "id": line.name,
        "audio": f"{AUDIO}/{clip_name(line, wanted)}",
        "kind": written.kind,
        "question": written.question,
        "options": list(written.options),
        "reference": reference[0] if len(reference) == 1 else reference,
        "language": written.language,
        "cluster": written.cluster or written.name,
        "groups": groups,
        "rubric": written.rubric,
        "source": written.source or wanted.origin,
        "licence": written.licence or wanted.licence,
        "made": made,
    }
    return {name: value for name, value in found.items() if value not in ("", [], None)}


def show(wanted: Wanted) -> None:
    """Print what would be said, a line each; nothing is spoken and no service is asked.

    Raises:
        UserError: If a row cannot be asked.
    """
    from voxmeter.client.terminal import printable

    if wanted.llm is not None:
        raise UserError("--show", "asks no chat model", "leave --llm out, or build with --limit 3")
    builder = Builder(wanted)
    for written in builder.questions():
        try:
            for line in builder.lines(written):
                print(f"{printable(line.name)}: {printable(line.text)}")
        except ClipError as error:
            builder.problems.append(f"{wanted.source}:{written.line}: {error}")
    _tell(builder.problems, wanted)


def build(wanted: Wanted) -> None:
    """Speak every question that is not spoken yet, and write the suite.

    Raises:
        UserError: If a row cannot be asked, a voice or a service fails, or the disk is full; what
            was spoken is kept, and the same command goes on.
    """
    from voxmeter.client.jsonlines import disk, dump
    from voxmeter.client.rewording import Rewording
    from voxmeter.client.speech_service import Chat, Service

    with ExitStack() as stack:
        service = Service(wanted.tts) if wanted.tts else None
        chat = Chat(wanted.llm) if wanted.llm else None
        for caller in (service, chat):
            if caller is not None:
                stack.callback(caller.close)
        for manner in dict.fromkeys(way.manner for way in wanted.ways):
            if manner.speaker:
                speech_voices.check(manner, service)
        _check_rows(wanted)
        folder = wanted.output / AUDIO
        with disk(folder):
            folder.mkdir(parents=True, exist_ok=True)
        rewording = Rewording(chat, wanted.output, wanted.seed) if chat else None
        if rewording is not None:
            stack.callback(rewording.close)
        builder = Builder(wanted, rewording)
        temporary = wanted.output / f".{SUITE}.part"
        with disk(temporary), temporary.open("w", encoding="utf-8") as file:
            done = Progress(wanted)
            for written in builder.questions():
                try:
                    made = [(line, done.spoken(line, service)) for line in builder.lines(written)]
                except ClipError as error:
                    builder.problems.append(f"{wanted.source}:{written.line}: {error}")
                    continue
                for line, _ in made:
                    file.write(dump(row(line, wanted, rewording.model if rewording else "")))
        _tell(builder.problems, wanted)
        temporary.replace(wanted.output / SUITE)
    done.finish()


def _check_rows(wanted: Wanted) -> None:
    """Tell of rows that cannot be asked before hours are spent on the others."""
    builder = Builder(replace(wanted, llm=None))
    count = sum(1 for _ in builder.questions())
    if not wanted.skip_bad:
        _tell(builder.problems, wanted)
    if not count:
        raise UserError(str(wanted.source), "no question in it", "check the file")


def _tell(problems: list[str], wanted: Wanted) -> None:
    import sys

    from voxmeter.client.terminal import printable

    for problem in problems[:_SHOWN_PROBLEMS]:
        print(f"bad row: {printable(problem)}", file=sys.stderr)
    if len(problems) > _SHOWN_PROBLEMS:
        print(f"... and {len(problems) - _SHOWN_PROBLEMS} more", file=sys.stderr)
    if problems and not wanted.skip_bad:
        rows_ = "1 row" if len(problems) == 1 else f"{len(problems)} rows"
        raise UserError(str(wanted.source), f"{rows_} cannot be asked", "mend, or add --skip-bad")


class Progress:
    """Speaks line after line, and says how far it is."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._new = self._kept = self._clipped = 0
        self._ms = 0.0

    def spoken(self, line: Line, service: Service | None) -> Path:
        """Return a line's clip; spoken only if it is not there.

        Raises:
            ClipError: If the voice cannot say it.
            UserError: If the voice or the service is at fault.
        """
        path = self._wanted.output / AUDIO / clip_name(line, self._wanted)
        if path.is_file() and path.stat().st_size:
            self._kept += 1
        else:
            pcm = speech_voices.speak(line.way.manner, line.text, service)
            speech_voices.write(pcm, path, self._wanted.form)
            self._new += 1
            self._ms += pcm.ms
            self._clipped += speech_voices.CLIPPED in pcm.warnings
        self._tick()
        return path

    def _tick(self) -> None:
        import sys

        count = self._new + self._kept
        if count % 10 == 0 and sys.stderr.isatty():
            print(f"\r{count} clips\r", end="", file=sys.stderr, flush=True)

    def finish(self) -> None:
        """Say what was done."""
        from voxmeter.client.terminal import human_seconds, printable

        whole = self._new + self._kept
        kept = f", {self._kept} were there" if self._kept else ""
        items = "1 item" if whole == 1 else f"{whole} items"
        print(f"{items}: {self._new} spoken ({human_seconds(self._ms / 1000)} of speech){kept}")
        if self._clipped:
            clips = "1 clip was" if self._clipped == 1 else f"{self._clipped} clips were"
            print(f"{clips} {speech_voices.CLIPPED}: use a smaller --volume")
        path = printable(str(self._wanted.output / SUITE))
        print(path)
