"""Writes the page of runs that were built by hand, for tests that open it."""

from __future__ import annotations

from pathlib import Path

from voxmeter.client import report_html
from voxmeter.client.report import summarised
from voxmeter.client.runfolder import RunFolder

DRAWN = "document.documentElement.dataset.drawn === 'true'"
"""Holds once a page has drawn all its parts."""


def page_on(folder: RunFolder, *more: RunFolder, to: Path | None = None) -> Path:
    """Write one page on some runs, by default into the first; return its path."""
    folders = [folder, *more]
    page = to or folder.path / "report.html"
    return report_html.write_page(folders, [summarised(one) for one in folders], page)
