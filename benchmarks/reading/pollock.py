"""The files of the Pollock benchmark, from a folder that holds its repository.

Pollock (HPI Information Systems, "Pollock: A Data Loading Benchmark", VLDB 2023) has one table
damaged in 2,290 ways (`polluted_files`) and real files (`survey_sample`), each with its table as it
should be. Of the former, those with one damaged row have a truth that no reader can know: there
all rows but one must be right.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pexeso.errors import InputError

_PARTS = ("polluted_files", "survey_sample")


@dataclass(frozen=True)
class PollockFile:
    """One file, with its truth.

    `names` is None where the file has no header; `n_wrong_allowed` rows may differ.
    """

    path: Path
    group: str
    names: list[str] | None
    rows: list[list[str]]
    n_wrong_allowed: int = 0


def pollock_files(folder: Path, step: int = 1) -> Iterator[PollockFile]:
    """Yield the files of a folder with their truths; of those with one damaged row each `step`-th.

    Raises
    ------
    InputError
        The folder has none of the benchmark's.
    """
    if not any((folder / part / "csv").is_dir() for part in _PARTS):
        raise InputError(
            f"'{folder}' has no folder 'polluted_files/csv' or 'survey_sample/csv'; give the root "
            "of Pollock's repository, with its large files."
        )
    for part in _PARTS:
        paths = sorted((folder / part / "csv").glob("*"))
        n_rows_damaged = 0
        for path in paths:
            is_row = part == "polluted_files" and path.name.startswith("row_")
            n_rows_damaged += is_row
            if is_row and n_rows_damaged % step:
                continue
            clean = folder / part / "clean" / path.name
            if clean.is_file():
                yield _with_truth(path, clean, part, is_row)


def _with_truth(path: Path, clean: Path, part: str, is_row: bool) -> PollockFile:
    with open(clean, encoding="utf-8", errors="replace", newline="") as lines:
        rows = [row for row in csv.reader(lines) if row]
    names = rows.pop(0) if rows else []
    if _header_rows(path) == 0:
        # Some truths give such a file names, others do not.
        is_data = bool(names) and path.read_bytes().lstrip(b"'").startswith(names[0].encode())
        rows = [names, *rows] if is_data else rows
        return PollockFile(path, _group(part, path, is_row), None, rows)
    return PollockFile(path, _group(part, path, is_row), names, rows, int(is_row))


def _group(part: str, path: Path, is_row: bool) -> str:
    if part == "polluted_files":
        return "one damaged row" if is_row else "damaged file"
    return "survey"


def _header_rows(path: Path) -> int:
    parameters_path = path.parent.parent / "parameters" / f"{path.name}_parameters.json"
    if not parameters_path.is_file():
        return 1
    return int(json.loads(parameters_path.read_text(encoding="utf-8")).get("header_lines", 1))
