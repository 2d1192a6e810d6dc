"""Conversion of a table to the feature matrix and target of scikit-learn.

There is one feature a column: numbers as they are, and columns of few different texts as numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import InputError
from pexeso.joins.enrichment.columns import FEW_NUMBERS, NUMBER, Column, column_of_values

REGRESSION = "regression"
CLASSIFICATION = "classification"
TASKS = (REGRESSION, CLASSIFICATION)

MAX_NUMBER = float(np.finfo(np.float32).max)
"""The largest number that trees take, to either side of 0."""


@dataclass(frozen=True)
class Features:
    """Features of n rows.

    Attributes
    ----------
    matrix : float64 (n, m)
        NaN where there is no cell.
    """

    matrix: np.ndarray
    names: tuple[str, ...]
    left_out: dict[str, str]

    def of(self, names: list[str]) -> np.ndarray:
        """Return the features of these names; those that are none are passed over."""
        return self.matrix[
            :, [position for position, name in enumerate(self.names) if name in set(names)]
        ]


def read_features(
    columns: Mapping[str, Any], rows: np.ndarray, *, max_texts: int, min_number_fraction: float
) -> Features:
    """Make features of columns.

    A column of text becomes one feature, the place of its text in order: all that a tree needs, and
    elimination can then keep or drop the column. The encoder sees no target, so it can be fitted
    before the rows are split.

    Parameters
    ----------
    rows : int64 (n,)
        The rows to take.
    """
    features, names, left_out = [], [], {}
    for name, values in columns.items():
        column = column_of_values(values, min_number_fraction).take(pa.array(rows))
        if column.distinct < 2:
            left_out[name] = "the same in all rows"
        elif column.kind != NUMBER and column.distinct > max_texts:
            left_out[name] = f"{column.distinct:,} different texts, more than {max_texts:,}"
        elif (number := _too_large(column)) is not None:
            left_out[name] = f"the number {number:g}, of which trees take at most {MAX_NUMBER:.2g}"
        else:
            features.append(_feature(column))
            names.append(name)
    return Features(
        np.column_stack(features) if features else np.zeros((len(rows), 0)), tuple(names), left_out
    )


def _too_large(column: Column) -> float | None:
    """Return a number of a column that trees do not take, or None."""
    if column.kind != NUMBER:
        return None
    cells = column.cells.filter(pc.greater(pc.abs(column.cells), MAX_NUMBER))
    return cells[0].as_py() if len(cells) else None


def _feature(column: Column) -> np.ndarray:
    cells = column.cells.to_numpy(zero_copy_only=False)
    if column.kind == NUMBER:
        return cells.astype(np.float64)
    from sklearn.preprocessing import OrdinalEncoder

    cells = np.where(column.cells.is_valid().to_numpy(zero_copy_only=False), cells, np.nan).astype(
        object
    )
    return OrdinalEncoder().fit_transform(cells[:, None])[:, 0]


@dataclass(frozen=True)
class Target:
    """What is to be predicted.

    Attributes
    ----------
    values : float64 or object (n,)
        Numbers, or classes as text.
    rows : int64 (n,)
        The rows of the table that have a target, n of them.
    """

    task: str
    values: np.ndarray
    rows: np.ndarray


def read_target(values: Any, task: str, *, folds: int, min_number_fraction: float) -> Target:
    """Read the target, and tell which task it is."""
    column = column_of_values(values, min_number_fraction)
    present = column.cells.is_valid().to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(present)
    cells = column.cells.take(pa.array(rows))
    if task == "auto":
        amounts = column.kind == NUMBER and pc.count_distinct(cells).as_py() > FEW_NUMBERS
        task = REGRESSION if amounts else CLASSIFICATION
    if len(rows) < 2 * folds:
        raise InputError(
            f"The target has {len(rows):,} rows with a value; {folds} folds need at least "
            f"{2 * folds}."
        )
    if task == REGRESSION:
        if column.kind != NUMBER:
            raise InputError(
                "The target is not one of numbers, so it cannot be the target of a regression. "
                "Use task='classification'."
            )
        if (number := _too_large(column)) is not None:
            raise InputError(
                f"The target has the number {number:g}, which no regression is possible with: "
                f"numbers are at most {MAX_NUMBER:.2g}. Leave out such rows, or scale the target."
            )
        return Target(task, cells.to_numpy(zero_copy_only=False), rows)
    classes = pc.cast(cells, pa.string()).to_numpy(zero_copy_only=False).astype(object)
    _check_classes(classes, folds)
    return Target(task, classes, rows)


def _check_classes(classes: np.ndarray, folds: int) -> None:
    labels, counts = np.unique(classes.astype(str), return_counts=True)
    names = labels.tolist()
    if len(names) < 2:
        raise InputError(
            f"The target has one class alone, {names[0]!r}: there is nothing to tell apart."
        )
    fewest = int(counts.argmin())
    n_rows = int(counts[fewest])
    if n_rows < 2 * folds:
        raise InputError(
            f"The class {names[fewest]!r} of the target has {n_rows:,} row{'s' * (n_rows != 1)}; "
            f"{folds} folds need at least {2 * folds} of each class. "
            "Put rare classes together, or ask for fewer folds."
        )
