"""Lakes to search composite keys in: real ones, TPC-H, and one drawn by power laws."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.datasets.tables import web_sources
from benchmarks.datasets.tpch import write_tpch
from pexeso.composite.row_keys import RowKeys, build_row_keys, row_keys_of
from pexeso.errors import InputError, LakeError, PexesoError
from pexeso.lake.containers.reader import read_table
from pexeso.lake.files import find_tables
from pexeso.lake.key_texts import key_texts
from pexeso.runtime.ranges import offsets_of

REAL = ("wikitables", "baseball", "fivethirtyeight", "pudding")
TPCH, POWER_LAW = "tpch", "power-law"
LAKES = (*REAL, TPCH, POWER_LAW)
SCALE, N_ROWS = 0.1, 1_000_000

_DOMAINS, _ATTRIBUTES = 1000, 8
_LARGEST_DOMAIN, _LARGEST_TABLE = 200_000, 20_000
_NOISE = 0.1
_FIRST_YEAR, _YEARS = 1900, 150


def load_lake(name: str, *, scale: float = SCALE, n_rows: int = N_ROWS, seed: int = 0) -> RowKeys:
    """Load a lake, without super keys."""
    if name == TPCH:
        return build_row_keys(tpch_tables(scale))
    if name == POWER_LAW:
        return power_law_rows(n_rows, seed=seed)
    if name in REAL:
        with web_sources([name]).open() as folders:
            return build_row_keys(folder_tables(folders[name]))
    if not Path(name).is_dir():
        raise LakeError(f"Lakes are {', '.join(LAKES)}, or a folder of tables. Got {name!r}.")
    return build_row_keys(folder_tables(Path(name)))


def table_names(name: str) -> list[str]:
    """Return the names of the tables of a real lake, without endings, by their numbers."""
    with web_sources([name]).open() as folders:
        return [Path(file.table).name.split(".")[0] for file in find_tables(folders[name])[0]]


def folder_tables(folder: Path) -> Iterator[pa.Table]:
    """Read the tables of a folder, cells in the form in which they are compared."""
    for file in find_tables(folder)[0]:
        try:
            columns = read_table(file.path).columns
        except PexesoError:
            continue
        yield _normalised(columns)


def tpch_tables(scale: float) -> Iterator[pa.Table]:
    """Make the eight tables of TPC-H."""
    with tempfile.TemporaryDirectory(prefix="pexeso-benchmark-") as folder:
        write_tpch(Path(folder), scale, file_format="csv")
        yield from folder_tables(Path(folder))


def _normalised(columns: list[pa.Array]) -> pa.Table:
    return pa.table(
        [key_texts(column) for column in columns],
        names=[str(number) for number in range(len(columns))],
    )


def power_law_rows(n_rows: int, *, seed: int = 0) -> RowKeys:
    """Draw a lake whose tables share entities, so that keys of several columns join.

    Tables are of some domain, domains have entities and entities attributes. A table has some
    attributes of a domain as columns, in any order, and entities as rows; a tenth of its cells are
    those of other entities. The rows of tables, the entities of domains and how often an entity is
    drawn follow power laws. Attributes have few or many values; those with few are years in part of
    the domains, which these share.

    Examples
    --------
    >>> rows = power_law_rows(1000)
    >>> rows.n_rows, int(rows.widths.min()), int(rows.widths.max())
    (1000, 2, 8)
    """
    if n_rows < 100:
        raise InputError(f"The power-law lake has at least 100 rows. Got {n_rows:,}.")
    rng = np.random.default_rng(seed)
    entities = np.minimum(200 * (1 + rng.pareto(0.8, _DOMAINS)), _LARGEST_DOMAIN)
    sizes = np.maximum(entities[:, None] ** rng.uniform(0.2, 1, (_DOMAINS, _ATTRIBUTES)), 2)
    sizes = sizes.astype(np.int64)
    first_value = offsets_of(sizes.ravel())[:-1].reshape(sizes.shape)
    table_sizes = []
    left = n_rows
    while left:
        table_sizes.append(min(left, int(min(5 * (1 + rng.pareto(0.9)), _LARGEST_TABLE))))
        left -= table_sizes[-1]
    parts, widths = [], []
    for n in table_sizes:
        domain = int(_DOMAINS ** rng.random()) - 1
        columns = rng.permutation(_ATTRIBUTES)[: rng.integers(2, _ATTRIBUTES + 1)]
        drawn = (entities[domain] ** rng.random((n, 1))).astype(np.int64) * np.ones_like(columns)
        other = rng.random(drawn.shape) < _NOISE
        drawn[other] = rng.integers(0, int(entities[domain]), int(other.sum()))
        # What value of an attribute an entity has: any fixed one, and entities side by side differ.
        value = (drawn * 2_654_435_761 >> 7) + drawn * columns
        parts.append((first_value[domain, columns] + value % sizes[domain, columns]).ravel())
        widths.append(len(columns))
    ids, cells = np.unique(np.concatenate(parts), return_inverse=True)
    values, numbers = _texts(ids, first_value.ravel(), sizes.ravel())
    return row_keys_of(
        values,
        numbers[cells],
        offsets_of(np.array(table_sizes, np.int64)),
        offsets_of(np.array(widths, np.int64)),
    )


def _texts(
    ids: np.ndarray, first_value: np.ndarray, sizes: np.ndarray
) -> tuple[pa.Array, np.ndarray]:
    """Return the distinct texts of values in order, and which of them each value is."""
    attribute = np.searchsorted(first_value, ids, side="right") - 1
    years = (sizes[attribute] <= _YEARS) & (attribute % 2 == 0)
    syllables = np.array([first + last for first in "bdfgklmnprstv" for last in "aeiou"])
    left, words = ids.copy(), np.full(len(ids), "", "U16")
    while left.any():
        words = np.char.add(words, np.where(left > 0, syllables[left % len(syllables)], ""))
        left //= len(syllables)
    within = (_FIRST_YEAR + ids - first_value[attribute]).astype("U16")
    texts = pa.array(np.where(years, within, words), pa.large_string()).dictionary_encode()
    order = pc.sort_indices(texts.dictionary)
    rank = np.empty(len(order), np.int32)
    rank[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
    return texts.dictionary.take(order), rank[texts.indices.to_numpy()]
