"""Small lakes as token sets, shards made of them without Spark, and brute force."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from pexeso.build.parts.base import Placed
from pexeso.runtime.exchange import BucketWriter
from pexeso.sets.part.open import Shard
from pexeso.sets.part.write import write_shard

Columns = dict[tuple[str, str], set[str]]


def place_rows(placed: Path, name: str, rows: pa.Table) -> None:
    """Lay rows out under a name for the one folder of an index that there is."""
    with BucketWriter(placed / name / "part.arrow", 1, rows.schema) as writer:
        writer.add(rows, np.zeros(len(rows), np.int64))


def shard_of(folder: Path, columns: Columns, *, deleted=(), parts=("overlap",), seed=0) -> Shard:
    """Build a shard of columns given as (table, label) -> tokens, from rows in random order."""
    names = [(table, position, label) for position, (table, label) in enumerate(columns)]
    tokens = [
        (table, position, token)
        for (table, position, _), values in zip(names, columns.values(), strict=True)
        for token in values
    ]
    random = np.random.default_rng(seed)
    for name, rows, fields in (
        ("sets", names, ("table", "position", "label")),
        ("tokens", tokens, ("table", "position", "value")),
    ):
        types = [pa.string(), pa.int32(), pa.string()]
        arrays = [
            pa.array(list(cells), kind)
            for cells, kind in zip(zip(*rows, strict=True), types, strict=True)
        ]
        table = pa.table(arrays, fields)
        place_rows(folder / "placed", name, table.take(random.permutation(len(table))))
    written = folder / "shard"
    written.mkdir()
    write_shard(Placed(folder / "placed", [0], 1), 0, written, parts=parts)
    return Shard(written, tuple(parts), np.array(sorted(deleted), np.int64))


def overlaps(columns: Columns, query: set[str], k: int, *, hidden=()) -> list[tuple[str, str, int]]:
    """Return the k columns with most tokens of a query by counting all: table, label, overlap."""
    counted = [
        (*name, len(query & tokens)) for name, tokens in columns.items() if name not in hidden
    ]
    return sorted((row for row in counted if row[2]), key=lambda row: (-row[2], *row[:2]))[:k]
