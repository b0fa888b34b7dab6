"""Requests made from a template: placeholders become values where they stand, never by pasting.

What a placeholder stands for is data: braces in it mean nothing, and quotes in it end no string.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from voxmeter.endpoints.codec import Json
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.wav import wav_file

PLACEHOLDERS = {
    "audio_base64": "the question as a WAV file, in base64",
    "audio_pcm_base64": "its samples alone (16-bit, little-endian, mono), in base64",
    "audio_floats": "its samples as a list of numbers from -1 to 1",
    "audio_wav": "the question as a WAV file: the file of a multipart form",
    "sample_rate": "samples a second of the question",
    "text": "what is asked in writing beside the audio",
    "instructions": "the endpoint's instructions",
    "model": "the endpoint's model",
    "voice": "the endpoint's voice",
    "temperature": "the endpoint's temperature; a field that is this alone is left out without one",
    "session_tag": "our name for the session",
}
"""Every placeholder, with what it stands for."""

_BRACES = re.compile(r"\{\{|\}\}|\{([A-Za-z][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class Floats:
    """Samples that are written as a list of numbers.

    Attributes:
        pcm: 16-bit little-endian mono samples.
    """

    pcm: bytes


@dataclass(frozen=True, slots=True)
class File:
    """What becomes the file of a form.

    Attributes:
        data: The whole file.
    """

    data: bytes


Value = Json | Floats | File


def audio_values(pcm: bytes, rate: int, used: frozenset[str]) -> dict[str, Value]:
    """Return the values of those placeholders of the question's audio that are used."""
    made: dict[str, Value] = {}
    if used & {"audio_base64", "audio_wav"}:
        whole = wav_file(pcm, rate)
        made["audio_wav"] = File(whole)
        if "audio_base64" in used:
            made["audio_base64"] = base64.b64encode(whole).decode("ascii")
    if "audio_pcm_base64" in used:
        made["audio_pcm_base64"] = base64.b64encode(pcm).decode("ascii")
    if "audio_floats" in used:
        made["audio_floats"] = Floats(pcm)
    return made


def placeholders(template: Json, place: str) -> frozenset[str]:
    """Return the names that stand in a template.

    Args:
        template: Any JSON.
        place: Where it stands in bench.toml, for the error.

    Raises:
        UserError: If there is no such placeholder.
    """
    found = frozenset(_names(template))
    for name in sorted(found - PLACEHOLDERS.keys()):
        cure = f"known: {', '.join(PLACEHOLDERS)}; write {{{{{name}}}}} for the braces themselves"
        raise UserError(place, f"there is no placeholder {{{name}}}", cure)
    return found


def _names(template: Json) -> Iterator[str]:
    if isinstance(template, str):
        yield from (found[1] for found in _BRACES.finditer(template) if found[1])
    elif isinstance(template, list):
        for one in template:
            yield from _names(one)
    elif isinstance(template, dict):
        for one in template.values():
            yield from _names(one)


def json_body(template: Json, values: Mapping[str, Value]) -> bytes:
    """Return the template as JSON, with its placeholders filled in."""
    mark = f"floats {secrets.token_hex(16)}"  # numbers are written by a table, 20 times as fast
    written = json.dumps(_filled(template, values, mark), ensure_ascii=False)
    floats = values.get("audio_floats")
    if isinstance(floats, Floats):
        written = written.replace(f'"{mark}"', f"[{_numbers(floats.pcm)}]")
    return written.encode("utf-8", "replace")


def form_body(fields: Mapping[str, Json], values: Mapping[str, Value]) -> tuple[bytes, str]:
    """Return a `multipart/form-data` body, and its `Content-Type`."""
    parts: list[tuple[str, bytes]] = []
    for name, template in fields.items():
        value = _filled(template, values, "")
        shown = name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
        head = f'Content-Disposition: form-data; name="{shown}"'
        if isinstance(value, File):
            head += '; filename="question.wav"\r\nContent-Type: audio/wav'
            parts.append((head, value.data))
        elif value is not None:
            parts.append((head, as_text(value).encode("utf-8", "replace")))
    digest = hashlib.sha256(b"".join(data for _, data in parts)).hexdigest()
    boundary = f"voxmeter-{digest[:32]}"
    made = [f"--{boundary}\r\n{head}\r\n\r\n".encode() + data + b"\r\n" for head, data in parts]
    body = b"".join(made) + f"--{boundary}--\r\n".encode()
    return body, f"multipart/form-data; boundary={boundary}"


def as_text(value: Value) -> str:
    """Return a value as it stands in a form, a query or amid a string."""
    if isinstance(value, str):
        return value
    if isinstance(value, Floats):
        return f"[{_numbers(value.pcm)}]"
    if isinstance(value, File):
        return base64.b64encode(value.data).decode("ascii")
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def filled_text(template: Json, values: Mapping[str, Value]) -> str | None:
    """Return a template as text; None where it is a placeholder without a value."""
    value = _filled(template, values, "")
    return None if value is None else as_text(value)


def _filled(template: Json, values: Mapping[str, Value], mark: str) -> Value:
    """Return a template with its placeholders filled in; floats as `mark`, if there is one."""
    if isinstance(template, str):
        whole = _BRACES.fullmatch(template)
        if whole is None or not whole[1]:
            return _BRACES.sub(lambda found: _pasted(found, values), template)
        value = values.get(whole[1])
        return mark if mark and isinstance(value, Floats) else value
    if isinstance(template, list):
        return [_plain(_filled(one, values, mark)) for one in template]
    if isinstance(template, dict):
        made = {name: _plain(_filled(one, values, mark)) for name, one in template.items()}
        return {
            name: one for name, one in made.items() if one is not None or template[name] is None
        }
    return template


def _plain(value: Value) -> Json:
    return as_text(value) if isinstance(value, Floats | File) else value


def _pasted(found: re.Match[str], values: Mapping[str, Value]) -> str:
    name = found[1]
    return as_text(values.get(name)) if name else found[0][0]


def _numbers(pcm: bytes) -> str:
    import numpy as np

    table = _table()
    return ",".join([table[value] for value in np.frombuffer(pcm, "<i2").tolist()])


@cache
def _table() -> tuple[str, ...]:
    """Return every 16-bit sample as a number from -1 to 1; negative ones count from the end."""
    order = [*range(32768), *range(-32768, 0)]
    return tuple(f"{value / 32768:.6g}" for value in order)


def warm() -> None:
    """Make and load what would otherwise be made while an answer is being waited for."""
    _numbers(b"")
