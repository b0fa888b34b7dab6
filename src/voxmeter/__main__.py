"""`python -m voxmeter` and the `voxmeter` command."""

import atexit
import os
import signal
import sys

_INTERRUPTED = 130


def main() -> int:
    """Run one command; exit status as in the contract, however often it is interrupted."""
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        from voxmeter.client.cli import main as run

        status = run()
    except KeyboardInterrupt:  # once more, when nothing was left to do but to end
        status = _INTERRUPTED
    if status == _INTERRUPTED:
        signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))  # waits for no thread
        atexit.register(_deafen)
    return status


def _deafen() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # Python takes its own handlers away at its end
        signal.signal(number, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(main())
