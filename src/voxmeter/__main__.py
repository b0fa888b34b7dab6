"""`python -m voxmeter` and the `voxmeter` command."""

import atexit
import os
import signal
import sys

_INTERRUPTED = 130


def main() -> int:
    """Run one command; exit status as in the contract, however often it is interrupted."""
    try:
        from voxmeter.client.cli import main as run

        status = run()
    except KeyboardInterrupt:  # once more, when nothing was left to do but to end
        status = _INTERRUPTED
    if status == _INTERRUPTED:
        _leave_at_once_when_asked_again()
    return status


def _leave_at_once_when_asked_again() -> None:
    """See to it that a further Ctrl-C neither waits for threads nor changes the exit status."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(_INTERRUPTED))
    atexit.register(_deafen)


def _deafen() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # Python takes its own handlers away at its end
        signal.signal(number, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(main())
