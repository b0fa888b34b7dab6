"""The conversation of a served session: its items in order, put in, taken out and told again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from voxmeter.endpoints.fields import Fields
from voxmeter.endpoints.json_path import from_base64
from voxmeter.endpoints.openai_dialect import PROTOCOL, Dialect, Format, text_type
from voxmeter.endpoints.openai_served_session import Object
from voxmeter.endpoints.serving import HistoryAdded, UserAudio
from voxmeter.endpoints.wav import WavReader

Role = Literal["user", "assistant", "system"]
MOST_ITEMS = 1000
"""How many items are remembered; the oldest are forgotten first."""


@dataclass(slots=True)
class Item:
    """One message of the conversation; what its audio was, only by length.

    Attributes:
        text: Its words, or the transcript of its audio.
        audio_ms: Length of its audio, ms; None where it has none.
    """

    id: str
    role: Role
    text: str = ""
    audio_ms: float | None = None

    def json(self, dialect: Dialect) -> Object:
        """Return the item as the client spells it; audio is never told again."""
        content: Object = {"type": text_type(self.role, dialect), "text": self.text}
        if self.audio_ms is not None:
            kind = "audio" if dialect == "legacy" else "output_audio"
            kind = kind if self.role == "assistant" else "input_audio"
            content = {"type": kind, "transcript": self.text or None}
        return {
            "id": self.id,
            "object": "realtime.item",
            "type": "message",
            "status": "completed",
            "role": self.role,
            "content": [content],
        }


class Conversation:
    """Items in the order of the conversation."""

    def __init__(self) -> None:
        self._items: dict[str, Item] = {}

    @property
    def last(self) -> str | None:
        """Return the id of the last item; None when there is none."""
        return next(reversed(self._items), None)

    def get(self, item_id: str) -> Item | None:
        """Return an item, if it is there."""
        return self._items.get(item_id)

    def add(self, item: Item, after: str | None = None) -> str | None:
        """Put an item after another (`root`: before all) or at the end; return what is before it.

        Raises:
            KeyError: If there is no item to put it after.
        """
        items = list(self._items.values())
        at = len(items)
        if after == "root":
            at = 0
        elif after is not None:
            at = [one.id for one in items].index(after) + 1 if after in self._items else -1
        if at < 0:
            raise KeyError(after)
        previous = items[at - 1].id if at else None
        items.insert(at, item)
        self._items = {one.id: one for one in items[-MOST_ITEMS:]}
        return previous

    def remove(self, item_id: str) -> bool:
        """Take an item out; return whether it was there."""
        return self._items.pop(item_id, None) is not None


def read_item(asked: Fields, item_id: str, heard: Format) -> tuple[Item, HistoryAdded]:
    """Return the item that a client puts in, and the turn that it is.

    Raises:
        ProtocolError: If it is not a message of text and audio.
    """
    kind, role = asked.text("type", "message"), asked.text("role", "user")
    if kind != "message" or role not in ("user", "assistant", "system"):
        found = f"{asked.place}type {kind!r}, role {role!r}"
        raise asked.problem(f"{found}: only messages of user, assistant and system are taken")
    texts: list[str] = []
    audio: list[bytes] = []
    for part in asked.objects("content"):
        match part.text("type"):
            case "input_text" | "output_text" | "text":
                texts.append(part.text("text"))
            case "input_audio" | "output_audio" | "audio":
                said = samples(part, heard) if part.has("audio") else UserAudio(b"", "pcm16", 0)
                audio.append(said.data)
                texts.append(part.text("transcript", ""))
            case other:
                raise part.problem(f"{part.place}type {other!r} is neither text nor audio")
    data = b"".join(audio)
    text = " ".join(one for one in texts if one)
    if not text and not data:
        raise asked.problem(f"{asked.place}content is empty")
    item = Item(item_id, cast("Role", role), text, len(data) / heard.bytes_per_ms if data else None)
    whole = UserAudio(data, heard.encoding, heard.rate) if data else None
    return item, HistoryAdded(item.role, text, whole, item_id)


def samples(place: Fields, heard: Format) -> UserAudio:
    """Return what a message's `audio` holds; a session of WAV files has one in each message.

    Raises:
        ProtocolError: If it is not base64, or not such a file at the session's rate.
    """
    if not heard.word.startswith("wav"):
        return UserAudio(place.audio("audio"), heard.encoding, heard.rate)
    reader = WavReader(PROTOCOL)
    pcm = reader.feed(from_base64(place, f"{place.place}audio", place.text("audio")))
    reader.end()
    if reader.rate != heard.rate:
        raise place.problem(f"{place.place}audio is a file at {reader.rate}, not at {heard.rate}")
    return UserAudio(pcm, "pcm16", heard.rate)
