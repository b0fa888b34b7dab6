"""Transcripts kept on disk, so that the same audio under the same settings is read once."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from importlib import metadata
from pathlib import Path

from voxmeter.client.model_files import write_atomically
from voxmeter.scoring.asr import Transcript

_FORM = 1


class TranscriptCache:
    """A folder with one JSON file a transcript; a damaged or unwritable one only costs time.

    The key is the hash of the decoded audio, the settings, the model's hash and the versions of
    the programs that run it.
    """

    def __init__(self, folder: Path, model_hash: str, settings: Mapping[str, object]) -> None:
        self._folder = folder
        versions = {name: metadata.version(name) for name in ("faster-whisper", "ctranslate2")}
        self._base = {"model": model_hash, "settings": dict(settings), "versions": versions}

    def get(self, audio_sha256: str, language: str) -> Transcript | None:
        """Return the transcript made earlier, or None."""
        try:
            row = json.loads(self._path(audio_sha256, language).read_text(encoding="utf-8"))
            if row["form"] != _FORM:
                return None
            found = row["transcript"]
            text, heard, gated, detail = (
                found["text"],
                found["language"],
                found["gated"],
                found["detail"],
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None
        if not (isinstance(text, str) and isinstance(heard, str) and isinstance(detail, dict)):
            return None
        return Transcript(text, heard, gated=gated is True, detail=detail)

    def put(self, audio_sha256: str, language: str, transcript: Transcript) -> None:
        """Keep a transcript."""
        row = {"form": _FORM, "transcript": asdict(transcript)}
        with contextlib.suppress(OSError):
            write_atomically(self._path(audio_sha256, language), json.dumps(row).encode())

    def _path(self, audio_sha256: str, language: str) -> Path:
        key = self._base | {"audio": audio_sha256, "language": language}
        name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
        return self._folder / name[:2] / f"{name}.json"
