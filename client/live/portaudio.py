"""PortAudio, loaded when it is needed, and what goes wrong with it in words that help."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import TextIO, TypeVar

from voxmeter.client.terminal import printable
from voxmeter.endpoints.errors import MissingExtraError, UserError

Result = TypeVar("Result")
PLACE = "sound"
BAD_CHANNELS, BAD_RATE, BUSY, HOST_ERROR = -9998, -9997, -9985, -9999
_DENIED = -13
_INSTALL = (
    "install it: apt-get install libportaudio2 (Debian, Ubuntu), dnf install portaudio (Fedora), "
    "brew install portaudio (macOS)"
)
_stuck: list[Thread] = []
_start_counts: list[int] = []
"""How often PortAudio was started, taken from sounddevice's count while a call hangs."""


def load() -> ModuleType:
    """Return the sounddevice module with PortAudio started.

    Raises:
        MissingExtraError: If sounddevice is not installed.
        UserError: If PortAudio is not, or does not start.
    """
    _see_to_alsa()
    try:
        import sounddevice
    except ImportError as error:
        raise MissingExtraError("voxmeter live", "sounddevice", "live") from error
    except OSError as error:
        raise UserError(PLACE, "the PortAudio library is not installed", _INSTALL) from error
    except Exception as error:
        if type(error).__name__ != "PortAudioError":  # its class came with the module that failed
            raise
        raise _does_not_start(error) from error
    loaded: ModuleType = sounddevice
    return loaded


def _see_to_alsa() -> None:
    """Refuse a setting with which ALSA has no configuration: PortAudio would abort the program."""
    named = os.environ.get("ALSA_CONFIG_PATH")
    if named and not any(Path(path).is_file() for path in named.split(":")):
        raise UserError(
            PLACE, f"ALSA_CONFIG_PATH: no such file: {named}", "unset it, or correct it"
        )


def look_again() -> ModuleType:
    """Return sounddevice with a fresh list of devices; PortAudio makes one when it starts, only.

    Every stream must be closed. While an old stream hangs the list stays as it was.

    Raises:
        UserError: As `load`.
    """
    library = load()
    if any(thread.is_alive() for thread in _stuck):
        return library
    state = vars(library)
    state["_initialized"] += sum(_start_counts)
    _start_counts.clear()
    try:
        while state["_initialized"]:  # 0 where the last start failed
            state["_terminate"]()  # the package documents these two for this purpose
        state["_initialize"]()
    except library.PortAudioError as error:
        raise _does_not_start(error) from error
    return library


def _does_not_start(error: Exception) -> UserError:
    own = Path("~/.asoundrc").expanduser()
    files = [str(own)] if own.exists() else ["~/.asoundrc", "/etc/asound.conf"]
    return UserError(
        PLACE,
        f"PortAudio does not start ({_words(error)})",
        f"on Linux this is mostly a mistake in {' or '.join(files)}: `aplay -L` names the line",
    )


def refused(error: Exception, what: str, complaints: list[str]) -> UserError:
    """Return what to tell a user whose device did not open.

    Args:
        error: A `PortAudioError`.
        what: Which device, with its name.
        complaints: Lines that the libraries below wrote meanwhile.
    """
    code, host_code = codes(error)
    said = f"{what} does not open ({_words(error, complaints)})"
    if host_code == _DENIED:
        cure = "the system refuses it: join the group `audio` (Linux), allow the microphone (macOS)"
    elif code == BUSY or "busy" in str(error).lower():
        cure = "another program holds it: close that one, or choose another device"
    elif code == BAD_RATE:
        cure = "it takes none of the usual sample rates: choose another device"
    elif code == BAD_CHANNELS:
        cure = "it takes neither one channel nor two: choose another device"
    else:
        cure = "see `voxmeter live --list-devices`, and choose another one"
    return UserError(PLACE, said, cure)


def codes(error: Exception) -> tuple[int | None, int | None]:
    """Return PortAudio's code of an error and that of the system below; None: not known."""
    code = error.args[1] if len(error.args) > 1 else None
    host = error.args[2] if len(error.args) > 2 else None
    below = host[1] if isinstance(host, tuple) and len(host) > 1 else None
    return code, below


def _words(error: Exception, complaints: list[str] | None = None) -> str:
    code, _ = codes(error)
    host = error.args[2] if len(error.args) > 2 else None
    words = [str(error.args[0]).rpartition(": ")[2] if error.args else type(error).__name__]
    words += [str(host[2])] if isinstance(host, tuple) and len(host) > 2 and host[2] else []
    words += [f"code {code}"] if code is not None else []
    words += (complaints or [])[-1:]
    return printable(", ".join(words), 300)


def within(action: Callable[[], Result], limit_s: float) -> Result:
    """Return what a call into PortAudio gives, which may hang for as long as its system does.

    Raises:
        TimeoutError: If it is still at it after `limit_s`; it is left alone then, and so is what
            PortAudio would do at the end of the program.
    """
    found: list[Result] = []
    failed: list[BaseException] = []

    def do() -> None:
        try:
            found.append(action())
        except BaseException as error:  # noqa: BLE001 - is raised where it was called
            failed.append(error)

    thread = Thread(target=do, daemon=True, name="portaudio")
    thread.start()
    thread.join(limit_s)
    if thread.is_alive():
        _stuck.append(thread)
        state = vars(load())
        _start_counts.append(state["_initialized"])
        state["_initialized"] = 0  # its exit handler would wait for the stream for ever
        raise TimeoutError
    if failed:
        raise failed[0]
    return found[0]


class Complaints:
    """What libraries written in C print on standard error, kept from the screen."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as this object
        self._read = 0

    def fileno(self) -> int:
        """Return the file that takes it."""
        return self._file.fileno()

    def take(self) -> list[str]:
        """Return the lines since the last time."""
        length = os.fstat(self.fileno()).st_size
        written = os.pread(self.fileno(), length - self._read, self._read)
        self._read = length
        lines = written.decode(errors="replace").splitlines()
        told = [line for line in lines if line.strip() and not line.startswith("Expression '")]
        return [printable(line, 200) for line in told]

    def close(self) -> None:
        """Forget it."""
        self._file.close()


@contextmanager
def complaints_kept() -> Iterator[Complaints]:
    """Keep what C libraries print off the screen; what Python prints still gets there."""
    kept = Complaints()
    real = os.dup(2)
    before = sys.stderr, sys.__stderr__
    screen = open(real, "w", encoding="utf-8", errors="backslashreplace", buffering=1)  # noqa: PTH123, SIM115
    for name in ("stderr", "__stderr__"):
        stream = getattr(sys, name)
        if stream is not None and _number(stream) == 2:
            stream.flush()
            setattr(sys, name, screen)
    os.dup2(kept.fileno(), 2)
    try:
        yield kept
    finally:
        screen.flush()
        os.dup2(real, 2)
        sys.stderr, sys.__stderr__ = before  # type: ignore[misc]  # a front end draws on the second
        screen.close()
        kept.close()


def _number(stream: TextIO) -> int | None:
    with suppress(OSError, ValueError, AttributeError):
        return int(stream.fileno())
    return None
