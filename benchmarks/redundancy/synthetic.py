"""Lakes of tables derived from each other, drawn from a seed.

Tables are roots, drawn at random or given, and tables derived from a root or from the last one that
was derived from it, as the specification says. What a table was derived from is recorded, but it is
only a hint: which tables hold which is for the oracle to say, since a filter can keep the same rows
twice and noise can change nothing.

The same seed brings the same tables on every machine: draws are whole numbers and every operation
on floats is one that IEEE 754 rounds exactly (no powers, logarithms or sums in any order). How
large a table is follows from what cells of a kind take, not from the files that were written, whose
sizes depend on the version of Arrow.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc_csv

from benchmarks.redundancy.changes import CHANGES, Derived, root_ranks
from benchmarks.redundancy.columns import draw_columns, draw_rows, rows_for, table_bytes
from benchmarks.redundancy.writing import FORMATS, write_table
from pexeso.errors import InputError, LakeError

SMALL, MEDIUM, LARGE = 24_000_000, 240_000_000, 2_400_000_000
"""Bytes on disk of the three sizes of lake."""

LINEAGE = ".lineage.json"
"""The file of a lake that says what its tables were derived from; hidden, so it is no table."""

_CODECS = ("snappy", "zstd", "gzip")
_FEWEST_ROWS = 20
_SHARE_OF_ROOT = 0.6
"""Of a root's bytes, what a derived table takes in the mean."""

_WIDEST_RATIO = 8
"""Of two roots, how much larger the largest is than the smallest."""

_FROM_LAST = 3
"""One table in so many is derived from the last derived one instead of from the root."""


@dataclass(frozen=True)
class Lineage:
    """What a table was derived from.

    Attributes
    ----------
    table : str
        File or folder, relative to the lake.
    op : str
        ``root`` or one of `CHANGES`.
    source : str or None
        The table it was derived from.
    steps : tuple of str
        What was done, in words.
    expected : {"none", "down", "up", "both"}
        Whether the source holds the table, the table the source, or both, if nothing collides.
    rows, columns : int
    """

    table: str
    op: str
    source: str | None
    steps: tuple[str, ...]
    expected: str
    rows: int
    columns: int


def synthetic_lake(
    folder: Path,
    *,
    n_bytes: int = SMALL,
    n_tables: int = 60,
    n_roots: int = 10,
    seed: int = 0,
    file_format: str = "parquet",
    n_files: int = 1,
    roots: Mapping[str, pa.Table] | None = None,
) -> list[Lineage]:
    """Write a lake, and what its tables were derived from as `LINEAGE`.

    Memory holds a root, the last table derived from it and the next one.
    """
    n_roots = n_roots if roots is None else len(roots)
    if not 1 <= n_roots <= n_tables:
        raise InputError(f"A lake has 1 to {n_tables:,} roots, no more than tables. Got {n_roots}.")
    if n_bytes < 1:
        raise InputError(f"A lake has at least one byte. Got {n_bytes}.")
    if file_format not in FORMATS:
        raise InputError(f"Tables are written as {' or '.join(FORMATS)}. Got {file_format!r}.")
    lineages: list[Lineage] = []
    counts = [(n_tables - n_roots) * (at + 1) // n_roots for at in range(n_roots)]
    counts = np.diff(counts, prepend=0).tolist()
    spent: list[float] = []
    named_roots = (
        _drawn(n_bytes, spent, counts, seed, file_format) if roots is None else roots.items()
    )
    for at, (name, root) in enumerate(named_roots):
        # Streams of their own: of the tables before, a root depends on the sizes alone.
        rng = np.random.Generator(np.random.PCG64([seed, 1, at]))
        for table, lineage in _family(rng, name, root, counts[at]):
            if roots is None:
                spent.append(table_bytes(table, file_format))
            path = write_table(
                folder,
                lineage.table,
                table,
                file_format=file_format,
                n_files=n_files,
                codec=_CODECS[int(rng.integers(len(_CODECS)))],
                row_group=max(1, table.num_rows // int(rng.integers(1, 5))),
            )
            ending = path.name[len(lineage.table) :]
            source = lineage.source and lineage.source + ending
            lineages.append(Lineage(**{**asdict(lineage), "table": path.name, "source": source}))
    text = json.dumps([asdict(record) for record in lineages], indent=1)
    (folder / LINEAGE).write_text(text + "\n", encoding="utf-8")
    return lineages


def given_roots(folder: Path) -> dict[str, pa.Table]:
    """Read the CSV files of a folder that have rows of one length and no repeated names.

    Types are those that Arrow finds in the texts.
    """
    roots = {}
    for path in sorted(folder.rglob("*.csv")):
        try:
            table = pc_csv.read_csv(path)
        except pa.ArrowInvalid:
            continue
        if table.num_rows and len(set(table.column_names)) == table.num_columns:
            # Folders are part of the name: two of them can hold a file of one name.
            inside = path.relative_to(folder).with_suffix("")
            roots["__".join(inside.parts)] = table
    if not roots:
        raise LakeError(f"{folder} has no CSV file with rows of one length and distinct names.")
    return roots


def _drawn(
    n_bytes: int, spent: list[float], counts: list[int], seed: int, file_format: str
) -> Iterator[tuple[str, pa.Table]]:
    """Draw root by root, of the bytes that `spent`, which grows meanwhile, leaves."""
    rng = np.random.Generator(np.random.PCG64([seed, 0]))
    weights = rng.integers(1, _WIDEST_RATIO + 1, len(counts)).tolist()
    shares = [weight * (1 + _SHARE_OF_ROOT * n) for weight, n in zip(weights, counts, strict=True)]
    for at, weight in enumerate(weights):
        columns = draw_columns(np.random.Generator(np.random.PCG64([seed, 2, at])), at)
        left = max(0.0, n_bytes - sum(spent))
        n_rows = rows_for(columns, left * weight / sum(shares[at:]), file_format)
        rows = np.random.Generator(np.random.PCG64([seed, 3, at]))
        yield f"root-{at:03}", draw_rows(rows, columns, max(_FEWEST_ROWS, n_rows))


def _family(
    rng: np.random.Generator, name: str, root: pa.Table, n_derived: int
) -> Iterator[tuple[pa.Table, Lineage]]:
    yield root, Lineage(name, "root", None, (), "none", root.num_rows, root.num_columns)
    ranks = root_ranks(rng, root)
    last, last_name = root, name
    names = list(CHANGES)
    for number in range(n_derived):
        source, source_name = (root, name) if rng.integers(_FROM_LAST) else (last, last_name)
        op = names[int(rng.integers(len(names)))]
        derived: Derived = CHANGES[op](rng, source, ranks)
        table = derived.table
        last, last_name = table, f"{name}-{number + 1:03}-{op.replace('_', '-')}"
        yield (
            table,
            Lineage(
                last_name,
                op,
                source_name,
                derived.steps,
                derived.expected,
                table.num_rows,
                table.num_columns,
            ),
        )
