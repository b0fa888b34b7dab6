"""A study on disk: the page that people open, its clips under names that tell nothing, the key."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from voxmeter.client.jsonlines import disk
from voxmeter.client.runfolder import RunFolder
from voxmeter.client.study import Pair, Reply, Study
from voxmeter.endpoints.errors import UserError

SCHEMA = 1
PAGE, KEY, CLIPS = "index.html", "key.json", "clips"

_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def write_study(study: Study, folders: Sequence[RunFolder], out: Path, *, embed: bool) -> None:
    """Write a study into a new folder: `index.html`, `clips/` and `key.json`.

    The page and the clips tell nobody whose a reply is; the key does, and is not for those who
    listen.

    Args:
        study: What is compared.
        folders: The runs that it was drawn from.
        out: Made; must not be there, or be empty.
        embed: Whether the clips go into the page, so that it can be sent as one file.

    Raises:
        UserError: If there is something in the folder, or the disk is full.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(str(out), "is there already", "choose another -o")
    with disk(out):
        out.mkdir(parents=True, exist_ok=True)
        pairs = [_shown(pair, out, embed=embed) for pair in study.pairs]
        key = json.dumps(_key(study, folders, out), ensure_ascii=False, indent=1)
        (out / KEY).write_text(f"{key}\n", encoding="utf-8", errors="backslashreplace")
        page = page_of({"study": study.id, "pairs": pairs})
        (out / PAGE).write_text(page, encoding="utf-8", errors="backslashreplace")


def _shown(pair: Pair, out: Path, *, embed: bool) -> dict[str, Any]:
    reference = pair.item.get("reference")
    aliases = reference if isinstance(reference, list) else [reference]
    return {
        "id": pair.id,
        "question": str(pair.item.get("question") or ""),
        "reference": "\n".join(str(one) for one in aliases if one is not None),
        **{
            side: {"text": reply.text, "audio": _clip(reply, f"{pair.id}-{side}", out, embed)}
            for side, reply in zip("ab", pair.replies, strict=True)
        },
    }


def _clip(reply: Reply, name: str, out: Path, embed: bool) -> str | None:  # noqa: FBT001 - of ours
    """Return where the page finds a clip, which is copied under a name that tells nothing."""
    if reply.audio is None:
        return None
    if embed:
        data = base64.b64encode(reply.audio.read_bytes()).decode()
        return f"data:audio/flac;base64,{data}"
    target = out / CLIPS / f"{name}.flac"
    target.parent.mkdir(exist_ok=True)
    shutil.copyfile(reply.audio, target)
    return f"{CLIPS}/{name}.flac"


def page_of(data: Mapping[str, Any]) -> str:
    """Return the page: one file that needs nothing from anywhere.

    What endpoints said is data inside it: it is shown as text by the page's own script, which is
    the only one that the page's policy lets run.
    """
    files = resources.files("voxmeter.client")
    style, script, page = (
        files.joinpath(f"study_page.{kind}").read_text(encoding="utf-8")
        for kind in ("css", "js", "html")
    )
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "media-src 'self' file: data:; base-uri 'none'; form-action 'none'"
    )
    held = json.dumps(data, ensure_ascii=False)
    for letter, escaped in _UNSAFE.items():
        held = held.replace(letter, escaped)
    parts = {"%POLICY%": policy, "%STYLE%": style, "%SCRIPT%": script, "%DATA%": held}
    made = []
    rest = page
    for mark in ("%POLICY%", "%STYLE%", "%DATA%", "%SCRIPT%"):  # in the order of the page
        before, _, rest = rest.partition(mark)
        made += [before, parts[mark]]
    return "".join([*made, rest])


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _key(study: Study, folders: Sequence[RunFolder], out: Path) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "study": study.id,
        "seed": study.seed,
        "runs": {
            folder.path.name: {
                "path": str(folder.path.resolve()),
                "from_here": os.path.relpath(folder.path.resolve(), out.resolve()),
            }
            for folder in folders
        },
        "pairs": [_key_row(pair) for pair in study.pairs],
    }


def _key_row(pair: Pair) -> dict[str, Any]:
    item = pair.item
    return {
        "pair": pair.id,
        "suite": item["suite"],
        "item": item["item"],
        "cluster": item.get("cluster") or item["item"],
        "groups": list(item.get("groups") or ()),
        **{
            side: {"system": system, "run": one.run, "key": one.key, "attempt": one.attempt}
            for side, system, one in zip("ab", pair.systems, pair.replies, strict=True)
        },
    }
