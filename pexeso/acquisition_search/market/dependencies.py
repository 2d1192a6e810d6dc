"""Approximate functional dependencies of tables of a lake: discovered, from a file, or none.

A file of dependencies is JSON: an object with a list for each table, of objects with ``left``, a
list of columns, and ``right``, the column that they determine.

Dependencies are discovered on a sample: of the rows that differ those with the `MAX_ROWS` smallest
hashes, each counted as often as it is there. Rows are sampled by their cells, so that the sample
does not depend on their order.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.acquisition.measures.quality import Dependency, approximate_dependencies
from pexeso.containment.hashing import hash_tokens
from pexeso.errors import ColumnNotFoundError, InputError
from pexeso.runtime.formatting import first_line
from pexeso.runtime.mixing import mixed

MAX_ROWS = 10_000
"""Rows of a table that dependencies are discovered on."""

MAX_COLUMNS = 32
"""Columns of a table among which dependencies are discovered: the first that hold no numbers."""

MAX_PAIRED = 10
"""Of a table of more columns left sides of two columns are not tried: these grow as the cube."""

DISCOVER, OFF = "discover", "off"

_MISSING = np.uint64(0x9E3779B97F4A7C15)


@dataclass(eq=False)
class LazyDependencies(Sequence[Dependency]):
    """Dependencies that are worked out when they are first asked for.

    Attributes
    ----------
    make : callable
        Returns them.
    """

    make: Callable[[], tuple[Dependency, ...]]

    @cached_property
    def _known(self) -> tuple[Dependency, ...]:
        return tuple(self.make())

    def __len__(self) -> int:
        return len(self._known)

    def __getitem__(self, at: int) -> Dependency:
        return self._known[at]


def discovered(
    read: Callable[[Sequence[str]], pa.Table], columns: Sequence[str], numeric: Collection[str]
) -> tuple[Dependency, ...]:
    """Return dependencies that hold in a table approximately.

    Parameters
    ----------
    read : callable
        Reads columns of the table.
    columns : sequence of str
        Its columns.
    numeric : collection of str
        Those that hold numbers; they are left out.

    Returns
    -------
    tuple of Dependency
        Minimal ones, with at most a tenth of the rows wrong, and one or two columns on the left.
    """
    usable = [name for name in columns if name not in numeric][:MAX_COLUMNS]
    if len(usable) < 2:
        return ()
    sample, counts = sampled(read(usable), MAX_ROWS)
    max_left = 2 if len(usable) <= MAX_PAIRED else 1
    return tuple(approximate_dependencies(sample, max_left=max_left, counts=counts))


def sampled(rows: pa.Table, max_rows: int) -> tuple[pa.Table, np.ndarray]:
    """Return distinct rows of a table, those with the smallest hashes, and how often each is there.

    Parameters
    ----------
    rows : pyarrow.Table
        Of texts.
    max_rows : int
        Distinct rows at most.

    Examples
    --------
    >>> rows = pa.table({"a": ["x", "x", "y"], "b": ["1", "1", None]})
    >>> found, counts = sampled(rows, 10)
    >>> sorted(zip(found["a"].to_pylist(), counts.tolist()))
    [('x', 2), ('y', 1)]
    """
    hashes = np.zeros(rows.num_rows, np.uint64)
    for column in rows.columns:
        texts = pc.dictionary_encode(column.cast(pa.large_string()))
        coded = pa.concat_arrays(texts.unify_dictionaries().chunks) if rows.num_rows else None
        if coded is None:
            continue
        of_text = np.append(hash_tokens(coded.dictionary), _MISSING)
        at = pc.fill_null(coded.indices, len(coded.dictionary)).to_numpy(zero_copy_only=False)
        hashes = mixed(hashes * np.uint64(3) + of_text[at])
    _, first, counts = np.unique(hashes, return_index=True, return_counts=True)
    return rows.take(pa.array(first[:max_rows])), counts[:max_rows]


def read_dependencies(path: str | os.PathLike[str]) -> dict[str, tuple[Dependency, ...]]:
    """Read a file of dependencies.

    Returns
    -------
    dict
        By table; see the module.

    Raises
    ------
    InputError
        If the file cannot be read, or is not as the module says.
    """
    shown = os.fspath(path)
    try:
        with open(path, encoding="utf-8-sig") as file:
            document = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"'{shown}' cannot be read as JSON: {first_line(error)}.") from error
    if not isinstance(document, dict):
        raise InputError(f"'{shown}' must be an object with a list for each table. {_EXAMPLE}")
    dependencies = {}
    for table, listed in document.items():
        if not isinstance(listed, list):
            raise InputError(f"'{shown}' must have a list for the table '{table}'. {_EXAMPLE}")
        dependencies[table] = tuple(
            _dependency(shown, table, number, entry) for number, entry in enumerate(listed, 1)
        )
    return dependencies


_EXAMPLE = 'An example: {"cities.csv": [{"left": ["zip"], "right": "state"}]}'


def _dependency(shown: str, table: str, number: int, entry: object) -> Dependency:
    if isinstance(entry, dict) and set(entry) == {"left", "right"}:
        left, right = entry["left"], entry["right"]
        names = [*left, right] if isinstance(left, list) else [None]
        if all(isinstance(name, str) for name in names) and len(set(names)) == len(names):
            return Dependency(tuple(left), right)
    raise InputError(
        f"Dependency {number} of the table '{table}' in '{shown}' must have 'left', a list of "
        f"columns, and 'right', another column. {_EXAMPLE}"
    )


def require_columns(
    table: str, columns: Collection[str], dependencies: Mapping[str, Sequence[Dependency]]
) -> tuple[Dependency, ...]:
    """Return the dependencies of a table from a file.

    Raises
    ------
    ColumnNotFoundError
        If one names a column that the table does not have.
    """
    table_dependencies = tuple(dependencies.get(table, ()))
    for dependency in table_dependencies:
        for name in (*dependency.left, dependency.right):
            if name not in columns:
                raise ColumnNotFoundError(
                    f"A dependency of '{table}' names the column {name!r}, which it does not have. "
                    f"Its columns: {', '.join(columns)}."
                )
    return table_dependencies
