"""What a user wants spoken: the questions, every way they are asked in, and where it all goes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voxmeter.client import speech_voices
from voxmeter.client.speech_voices import Manner
from voxmeter.endpoints.errors import UserError
from voxmeter.suites.spoken import wordings

if TYPE_CHECKING:
    from voxmeter.client.speech_service import Where

ASK = "Choose the right answer from {labels}."
"""What is said between a question and its options; VoxEval has a sentence there that never
changes, too."""


@dataclass(frozen=True, slots=True)
class Said:
    """One way in which a question is asked.

    Attributes:
        manner: By whom and how; the speaker is empty for the usual voice of the language.
        wording: In what words.
    """

    manner: Manner
    wording: str = wordings.NONE

    @property
    def label(self) -> str:
        """A name for it, for ids and groups."""
        manner = self.manner
        parts = [manner.speaker or "usual"]
        signed = (("rate", manner.rate), ("pitch", manner.pitch), ("volume", manner.volume))
        parts += [f"{name}{value:+g}" for name, value in signed if value]
        parts += [
            word for word in (manner.emotion, self.wording) if word not in {"", wordings.NONE}
        ]
        return "_".join(parts)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a user asks for.

    Attributes:
        source: The file of questions.
        output: Folder of the suite.
        ways: Every way in which a question may be asked.
        draw: Whether each is asked in one of them, drawn by seed, and not in all.
        seed: Of whatever is drawn.
        ask: Sentence before the options.
        language: Of questions that name none.
        as_written: Whether numbers and signs are left to the voice.
        form: `flac` or `ogg`.
        origin: Where the questions come from.
        licence: Under which.
        skip_bad: Whether rows that cannot be asked are left out.
        limit: So many questions; None for all.
        tts: The service that speaks, if any.
        llm: The one that rewords, if any.
    """

    source: Path
    output: Path
    ways: tuple[Said, ...]
    draw: bool = False
    seed: int = 0
    ask: str = ASK
    language: str = "en"
    as_written: bool = False
    form: str = "flac"
    origin: str = ""
    licence: str = ""
    skip_bad: bool = False
    limit: int | None = None
    tts: Where | None = None
    llm: Where | None = None


def wanted(options: Mapping[str, Any]) -> Wanted:
    """Return what the command line asks for.

    Raises:
        UserError: If options do not go together.
    """
    from voxmeter.client.nearest import cure

    known = (wordings.NONE, *wordings.WORDINGS)
    words = tuple(options["variation"])
    words = known if words == ("all",) else words
    for word in words:
        if word not in known:
            raise UserError("--variation", f"unknown {word!r}", cure(word, (*known, "all")))
    longest = options["longest_pause_ms"] or None
    manners = itertools.product(
        speech_voices.named(options["speaker"] or ("",)),
        options["rate"],
        options["pitch"],
        options["volume"],
        options["emotion"],
    )
    ways = tuple(
        Said(Manner(speaker, rate, pitch, volume, emotion, options["pause_ms"], longest), word)
        for (speaker, rate, pitch, volume, emotion), word in itertools.product(manners, words)
    )
    return Wanted(
        options["source"],
        options["output"],
        tuple(dict.fromkeys(ways)),
        draw=options["draw"],
        seed=options["seed"],
        ask=options["ask"] or ASK,
        language=options["language"] or "en",
        as_written=options["as_written"],
        form=options["format"],
        origin=options["origin"] or "",
        licence=options["licence"] or "",
        skip_bad=options["skip_bad"],
        limit=options["limit"],
        tts=_where(options, "tts", any(way.manner.service for way in ways)),
        llm=_where(options, "llm", bool(options["llm"])),
    )


def _where(options: Mapping[str, Any], name: str, needed: bool) -> Where | None:  # noqa: FBT001
    from voxmeter.client.speech_service import OPENAI, TTS_MODEL, Where

    url, key = options[f"{name}_url"], options[f"{name}_key_env"]
    if not needed:
        if url or key:
            use = "an openai:<voice> as --speaker" if name == "tts" else "--llm MODEL"
            raise UserError(f"--{name}-url", "is given, and nothing uses it", f"add {use}")
        return None
    model = options["llm"] if name == "llm" else options["tts_model"] or TTS_MODEL
    return Where(f"--{name}", url or OPENAI, model, key or "")
