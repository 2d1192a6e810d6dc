"""Value-level truth: two columns, and which value of the one is which of the other.

A data set of tasks is a folder of folders, each with ``left.csv``, ``right.csv`` and ``gt.csv``.
The values of the right table are asked; each is joined with values of the left one. Rows without a
text are left out. In ``gt.csv`` rows are named by their ``id``: as ``id_l`` and ``id_r``, or as
``left_id`` and ``right_id``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from benchmarks.effectiveness.judged import fold
from pexeso.errors import InputError
from pexeso.lake.containers.reader import read_table

NAMES = ("title", "name")
"""What the column to be joined is called; the first that a table has."""

TRUTH_NAMES = (("id_l", "id_r"), ("left_id", "right_id"))


@dataclass(frozen=True)
class Task:
    """One pair of columns and its truth.

    Attributes
    ----------
    partners : scipy.sparse.csr_matrix of shape (n, m)
        1 where two cells are the same thing.
    """

    name: str
    group: str
    queries: pa.StringArray
    others: pa.StringArray
    partners: sp.csr_matrix

    def has_partner(self) -> np.ndarray:
        """Return which asked cells have a partner, bool (n,)."""
        return np.diff(self.partners.indptr) > 0

    def has_equal_partner(self) -> np.ndarray:
        """Return which asked cells have a partner of the same folded text, bool (n,)."""
        cells, others = (
            [fold(text) for text in column.to_pylist()] for column in (self.queries, self.others)
        )
        pairs = self.partners.tocoo()
        equal = [
            cells[row] == others[column] for row, column in zip(pairs.row, pairs.col, strict=True)
        ]
        has_equal = np.zeros(len(cells), bool)
        has_equal[pairs.row[np.array(equal, bool)]] = True
        return has_equal


def read_tasks(folder: Path) -> list[Task]:
    """Read the tasks of a data set, by name."""
    tasks = [read_task(path.parent) for path in sorted(folder.glob("*/gt.csv"))]
    if not tasks:
        raise InputError(
            f"There is no task in {folder}: folders with left.csv, right.csv and gt.csv."
        )
    return tasks


def read_task(folder: Path) -> Task:
    """Read one task; it is a group of its own."""
    (left_ids, left), (right_ids, right) = (
        _named(folder / name) for name in ("left.csv", "right.csv")
    )
    truth = _columns(folder / "gt.csv")
    names = next((names for names in TRUTH_NAMES if set(names) <= set(truth)), None)
    if names is None:
        raise InputError(
            f"{folder / 'gt.csv'} must have the columns id_l and id_r, or left_id and right_id."
        )
    columns, rows = (
        pc.index_in(truth[name], ids).drop_null()
        for name, ids in zip(names, (left_ids, right_ids), strict=True)
    )
    if len(columns) != len(truth[names[0]]) or len(rows) != len(columns):
        raise InputError(
            f"{folder / 'gt.csv'} names rows that are not there, or that have no text."
        )
    return Task(
        folder.name, folder.name, right, left, incidence_of(rows, columns, (len(right), len(left)))
    )


def incidence_of(
    rows: Sequence[int] | pa.Array, columns: Sequence[int] | pa.Array, shape: tuple[int, int]
) -> sp.csr_matrix:
    """Return a matrix that has 1 at some places, once where a place is named twice."""
    coordinates = np.asarray(rows, np.int64), np.asarray(columns, np.int64)
    matrix = sp.csr_matrix((np.ones(len(coordinates[0]), np.float32), coordinates), shape=shape)
    matrix.data[:] = 1
    return matrix


def _columns(path: Path) -> dict[str, pa.StringArray]:
    table = read_table(path)
    return dict(zip(table.names, table.columns, strict=True))


def _named(path: Path) -> tuple[pa.StringArray, pa.StringArray]:
    """Return the ids and the texts of the rows that have a text."""
    columns = _columns(path)
    name = next((name for name in NAMES if name in columns), None)
    if name is None or "id" not in columns:
        raise InputError(
            f"{path} must have the columns id and {' or '.join(NAMES)}. It has "
            f"{', '.join(columns)}."
        )
    texts = pc.utf8_trim_whitespace(columns[name])
    has_text = pc.fill_null(pc.not_equal(texts, ""), False)
    return columns["id"].filter(has_text), texts.filter(has_text)
