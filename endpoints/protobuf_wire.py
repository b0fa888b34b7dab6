"""Protocol Buffers on the wire: whole messages read field by field and written, with no schema.

Read is what the format itself says: fields of unknown numbers or of other types than the wanted one
are skipped, of a plain field that comes twice the last counts, and pieces of one inner message are
merged. Anything that runs past its end is a `ProtocolError`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from voxmeter.endpoints.codec import Message
from voxmeter.endpoints.errors import ProtocolError

_VARINT, _FIXED64, _DELIMITED, _GROUP, _GROUP_END, _FIXED32 = range(6)
_LARGEST_NUMBER = (1 << 29) - 1
_DEEPEST = 100
_WORD = (1 << 64) - 1


class WireFields:
    """The fields of one protobuf message of a peer's.

    Args:
        protocol: Whose message it is, for error messages.
        message: The whole message, for error messages.
        data: The bytes of the protobuf message, which may be an inner one.

    Raises:
        ProtocolError: If the bytes are no protobuf message.
    """

    def __init__(self, protocol: str, message: Message, data: bytes) -> None:
        self._protocol, self._message = protocol, message
        self._fields = list(self._read(data))

    def problem(self, words: str) -> ProtocolError:
        """Return an error about this message, to be raised."""
        return ProtocolError(self._protocol, words, self._message)

    def whole(self, number: int, bits: int = 64) -> int:
        """Return an unsigned whole number of so many bits; 0 where the field is absent."""
        found = [value for n, value in self._fields if n == number and isinstance(value, int)]
        return found[-1] & ((1 << bits) - 1) if found else 0

    def data(self, number: int) -> bytes:
        """Return bytes; none where the field is absent."""
        found = [value for n, value in self._fields if n == number and isinstance(value, bytes)]
        return found[-1] if found else b""

    def text(self, number: int) -> str:
        """Return a string; an empty one where the field is absent."""
        try:
            return self.data(number).decode("utf-8")
        except UnicodeDecodeError:
            raise self.problem(f"field {number} is not UTF-8") from None

    def one_of(self, numbers: Collection[int]) -> tuple[int, WireFields] | None:
        """Return which of several inner messages is there, and its fields; None for none.

        The last one counts; what stood before it under another number is forgotten.
        """
        which, pieces = 0, b""
        for number, value in self._fields:
            if number in numbers and isinstance(value, bytes):
                pieces = pieces + value if number == which else value
                which = number
        return (which, WireFields(self._protocol, self._message, pieces)) if which else None

    def _read(self, data: bytes) -> Iterator[tuple[int, int | bytes]]:
        """Yield number and value of each field outside of groups, which are of the past."""
        at, groups = 0, list[int]()
        while at < len(data):
            tag, at = self._varint(data, at)
            number, kind = tag >> 3, tag & 7
            if not 0 < number <= _LARGEST_NUMBER:
                raise self.problem(f"there is no field {number}")
            value: int | bytes = 0
            match kind:
                case 0:
                    value, at = self._varint(data, at)
                case 1 | 5:
                    _, at = self._piece(data, at, 8 if kind == _FIXED64 else 4)
                case 2:
                    length, at = self._varint(data, at)
                    value, at = self._piece(data, at, length)
                case 3 if len(groups) < _DEEPEST:
                    groups.append(number)
                case 4 if groups and groups[-1] == number:
                    groups.pop()
                    continue
                case _:
                    raise self.problem(f"field {number} has no place as kind {kind}")
            if not groups and kind in {_VARINT, _DELIMITED}:
                yield number, value
        if groups:
            raise self.problem(f"group {groups[-1]} has no end")

    def _varint(self, data: bytes, at: int) -> tuple[int, int]:
        """Return the number that stands here, and where the next field begins."""
        value = 0
        for index, byte in enumerate(data[at : at + 10]):
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                return value & _WORD, at + index + 1
        raise self.problem("a number has no end")

    def _piece(self, data: bytes, at: int, length: int) -> tuple[bytes, int]:
        """Return so many bytes from here, and where the next field begins."""
        if length > len(data) - at:
            raise self.problem(f"a field of {length} bytes goes beyond the end")
        return data[at : at + length], at + length


def varint(value: int) -> bytes:
    """Return an unsigned whole number as the format writes it."""
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])


def field(number: int, value: int | bytes | str) -> bytes:
    """Return one field: a whole number, or bytes, text or an inner message."""
    if isinstance(value, int):
        return varint(number << 3 | _VARINT) + varint(value)
    data = value.encode("utf-8", "replace") if isinstance(value, str) else value
    return varint(number << 3 | _DELIMITED) + varint(len(data)) + data
