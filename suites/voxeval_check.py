"""What is wrong with a download of VoxEval, found by its folders and tables alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from voxmeter.endpoints.errors import UserError
from voxmeter.suites import voxeval_layout as layout
from voxmeter.suites.catalog import NOTE
from voxmeter.suites.voxeval_layout import SETTINGS, Subject, Table
from voxmeter.suites.voxeval_subjects import GROUP_OF, MATHS, count_warning

_SHOWN = 5
"""Problems of one sort that are told one by one; the others are counted."""


def verify(path: Path) -> Iterator[str]:
    """Yield one line for each problem of a download, and notes on what was not downloaded.

    Recordings are listed, not opened.

    Args:
        path: The folder that holds `test`.

    Raises:
        UserError: If it is no download of VoxEval at all.
    """
    found = layout.open_download(path, str(path))
    yield from found.oddities
    tables: dict[Subject, Table] = {}
    for subject in found.subjects:
        try:
            tables[subject] = layout.read_table(path / "test" / f"{subject.stem}.csv")
        except UserError as error:
            yield str(error)
    for subject, table in tables.items():
        if subject.name not in GROUP_OF:
            yield f'{subject.stem}.csv is no subject of MMLU: its group is "unknown"'
        yield from _some(table.problems)
    warning = count_warning(subject.name for subject in found.subjects)
    if warning:
        yield NOTE + warning
    own = layout.settings_of(path)
    for setting in SETTINGS:
        if setting not in own:
            yield f'{NOTE}setting "{setting}" is not in the download: no folder test/{setting}'
            continue
        yield from _recordings(path, setting, tables)
        yield from _examples(path, setting, tables)


def _recordings(root: Path, setting: str, tables: Mapping[Subject, Table]) -> Iterator[str]:
    for subject, table in tables.items():
        found = layout.recordings(root, setting, subject, table)
        folder = f"test/{setting}"
        yield from _some(
            f"{folder}/{subject.question_file(one)} is missing" for one in found.missing
        )
        yield from _some(f"{folder}/{subject.question_file(one)} is empty" for one in found.empty)
        yield from _some(
            f"{folder}/{subject.stem}/{name} is of no row of {subject.stem}.csv"
            for name in found.beyond
        )


def _examples(root: Path, setting: str, tables: Mapping[Subject, Table]) -> Iterator[str]:
    """Yield what is missing of worked examples, of settings that have any of their own."""
    for chains, most in ((False, layout.MOST_EXAMPLES), (True, layout.MOST_CHAINS)):
        subjects = [one for one in tables if not chains or one.name in MATHS]
        folders = [layout.example_folder(root, setting, one, chains=chains) for one in subjects]
        if folders and not folders[0].parent.is_dir():
            place = folders[0].parent.relative_to(root)
            voice = setting.partition("_")[0]
            if voice == setting:
                yield f"{NOTE}no folder {place}: {setting} has no worked examples of its own"
            continue
        for folder in folders:
            wanted = layout.examples(folder, most, chains=chains)
            yield from _some(
                f"{path.relative_to(root)} is missing or empty" for path in layout.absent(wanted)
            )


def _some(lines: Iterator[str] | tuple[str, ...]) -> Iterator[str]:
    """Yield the first lines, then how many more there are."""
    every = list(lines)
    yield from every[:_SHOWN]
    if len(every) > _SHOWN:
        yield f"… and {len(every) - _SHOWN} more like it"
