"""Reading of a user's table of aliases: two columns, the alias and what it stands for."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import InputError
from pexeso.lake.containers.reader import read_table
from pexeso.lake.normalise.aliases import Aliases
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.runtime.formatting import shown

_ROWS_AT_ONCE = 1 << 16
_SHOWN = 8


def read_aliases(file: str | os.PathLike[str], normaliser: Normaliser) -> Aliases:
    """Read a table of aliases of any format that a lake may have.

    Aliases of aliases are followed to the end. Rows that say the same, or of whose sides
    normalisation makes the same value, do no harm.

    Parameters
    ----------
    file
        A path or URL. The table has a header and two columns: each row an alias, then what it
        stands for.
    normaliser
        Gives both their form, each cell by itself. Memory is bounded by the limits of
        `pexeso.lake.containers.reader.read_table`.

    Raises
    ------
    InputError
        There are not two columns, a cell is empty or nothing is left of it once normalised, an
        alias stands for two values, aliases go in a circle, or there is none.
    TableReadError
        The file is no table.
    """
    name = os.fspath(file)
    table = read_table(name)
    if len(table.names) != 2:
        raise InputError(
            f"A table of aliases has two columns: the alias, and what it stands for. '{name}' has "
            f"{len(table.names):,}: {shown(table.names)}."
        )
    forms = [_normalised(column, normaliser) for column in table.columns]
    _require_values(name, forms)
    encoded = pa.concat_arrays(forms).dictionary_encode()
    ours, targets = encoded.indices.to_numpy().astype(np.int64).reshape(2, -1)
    rows = _distinct_rows(ours, targets)
    _require_one_meaning(name, table.columns, ours, rows)
    if not len(rows):
        raise InputError(
            f"'{name}' has no alias: each of its {table.n_rows:,} rows must have an alias and "
            "another value that it stands for."
        )
    follow = np.arange(len(encoded.dictionary))
    follow[ours[rows]] = targets[rows]
    ends = follow
    for _ in range(len(follow).bit_length()):
        ends = ends[ends]
    _require_ends(name, encoded.dictionary, follow, ends)
    # What is at the end is written as in its first row.
    written = np.zeros(len(follow), np.int64)
    written[targets[rows][::-1]] = rows[::-1]
    aliases = ours[rows]
    return Aliases.of(
        encoded.dictionary.take(pa.array(aliases)),
        pc.utf8_trim_whitespace(table.columns[1]).take(pa.array(written[ends[aliases]])),
    )


def _normalised(column: pa.StringArray, normaliser: Normaliser) -> pa.StringArray:
    parts = [
        normaliser.settled(part, np.arange(len(part)))
        for start in range(0, len(column), _ROWS_AT_ONCE)
        for part in [column.slice(start, _ROWS_AT_ONCE)]
    ]
    return pa.concat_arrays([pa.array([], pa.string()), *parts])


def _require_values(name: str, forms: list[pa.StringArray]) -> None:
    missing = pc.or_(forms[0].is_null(), forms[1].is_null())
    at = pc.index(missing, True).as_py()
    if at >= 0:
        raise InputError(
            f"Row {at + 1:,} of '{name}', the header not counted, has an empty cell, or one of "
            f"which normalisation leaves nothing; {pc.sum(missing).as_py():,} rows have. Remove "
            "them: each row must have an alias and what it stands for."
        )


def _distinct_rows(ours: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the first row of each pair of different values, ascending."""
    _, first = np.unique(ours * (len(ours) * 2 + 1) + targets, return_index=True)
    return np.sort(first[ours[first] != targets[first]])


def _require_one_meaning(
    name: str, columns: list[pa.StringArray], ours: np.ndarray, rows: np.ndarray
) -> None:
    order = rows[np.argsort(ours[rows], kind="stable")]
    twice = np.flatnonzero(np.diff(ours[order]) == 0)
    if len(twice):
        first, second = order[twice[0]], order[twice[0] + 1]
        says = " and ".join(
            f"{shown(columns[1][row].as_py())} (row {row + 1:,})" for row in (first, second)
        )
        raise InputError(
            f"The alias {shown(columns[0][first].as_py())} in '{name}' stands for two values: "
            f"{says}, the header not counted. {len(twice):,} rows contradict an earlier one: keep "
            "one row of each alias."
        )


def _require_ends(name: str, values: pa.StringArray, follow: np.ndarray, ends: np.ndarray) -> None:
    circling = np.flatnonzero(follow[ends] != ends)
    if not len(circling):
        return
    circle = [int(ends[circling].min())]
    while follow[circle[-1]] != circle[0]:
        circle.append(int(follow[circle[-1]]))
    steps = [shown(values[position].as_py()) for position in circle[:_SHOWN]]
    more = [f"... ({len(circle) - _SHOWN:,} more)"] if len(circle) > _SHOWN else []
    raise InputError(
        f"Aliases in '{name}' go in a circle: {' → '.join([*steps, *more, steps[0]])}. Remove one "
        "of these rows, so that the others come to an end."
    )
