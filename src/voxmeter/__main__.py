"""`python -m voxmeter` and the `voxmeter` command."""

import sys


def main() -> int:
    """Run one command; exit status as in the contract."""
    from voxmeter.client.cli import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
