"""Explanation of why a query column and one lake column match or not.

It has the pairs, and the lake value nearest to each query value without a pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.engine.damage import damage_made_plain
from pexeso.engine.vector_space import Vectors
from pexeso.errors import ColumnNotFoundError, IndexCorruptError, InputError
from pexeso.lake.catalog import Catalog
from pexeso.lake.columns import find_column
from pexeso.results.matches import Unmatched
from pexeso.results.ranking import Hit
from pexeso.semantic.encoded_query import EncodedQuery
from pexeso.semantic.pairs import posting_arrays
from pexeso.semantic.partition_loader import PartitionLoader
from pexeso.store.local.reader import Store

NO_VALUE, UNKNOWN, TOO_FAR = "empty", "unknown", "too far"


def locate_column(store: Store, table: str, column: str) -> Hit:
    """Find a column of the lake in an index.

    Parameters
    ----------
    table : str
        As results name it: its path relative to the lake. See `Catalog.named`.
    column : str
        Its name, or ``#position``.

    Returns
    -------
    Hit
        With a count of 0.
    """
    for name, value in (("table", table), ("column", column)):
        if not isinstance(value, str):
            raise InputError(f"{name} must be a text, as results name it. Got {value!r} instead.")
    catalog = Catalog(store.catalog_files)
    table = catalog.named(table)
    if not catalog.has(table):  # labels cut a column whose name holds colons at the last one
        table, rest = catalog.split(f"{table}:{column}")
        column = rest or ""
    rows = catalog.columns(
        ["name", "label", "position", "reason", "column_id"], among=pa.array([table])
    ).sort_by("position")
    if not rows.num_rows:
        reason = catalog.why_not(table, store.manifest.facts["lake"])
        raise InputError(f"{reason} Got the column '{table}:{column}'.")
    try:
        position = find_column(rows["name"].to_pylist(), column)
    except ColumnNotFoundError as error:
        raise ColumnNotFoundError(f"'{table}': {error}") from None
    row = rows.slice(position, 1).to_pylist()[0]
    if row["column_id"] is None:
        raise ColumnNotFoundError(
            f"The column {row['label']!r} of '{table}' is not in the index: {row['reason']}. "
            "By equal values it can be joined all the same: pexeso join --transform, in Python "
            "pexeso.learn_transformation, by agents preview_join with by_program."
        )
    hit = next(stored_columns(store, {row["column_id"]: (table, row["label"])}), None)
    if hit is None:
        raise IndexCorruptError(
            f"The index '{store.path}' lists the column {column!r} of '{table}', but no partition "
            "holds it: build the index again."
        )
    return hit


def stored_columns(store: Store, names: Mapping[int, tuple[str, str]]) -> Iterator[Hit]:
    """Yield those columns that partitions hold, with counts of 0; `names` has them by their ids."""
    for number in range(store.n_partitions):
        column_ids = store.array(number, "column_ids")
        for position in np.flatnonzero(np.isin(column_ids, list(names))).tolist():
            column = int(column_ids[position])
            yield Hit(column, 0, number, position, *names[column])


@damage_made_plain("the index")
def find_unmatched(
    scan: PartitionLoader,
    query: EncodedQuery,
    hit: Hit,
    is_matched: np.ndarray,
    limit: int | None = None,
) -> tuple[Unmatched, ...]:
    """List the query texts without a pair, with the lake value nearest to each.

    The first `limit` of them are listed, or all.

    Parameters
    ----------
    is_matched : numpy.ndarray, bool
        For each of ``query.texts`` whether it has a pair.
    """
    texts, value_of_text = query.texts
    known = query.known
    left = [
        (texts[position], int(value_of_text[position]))
        for position in np.flatnonzero(~is_matched)[:limit].tolist()
    ]
    values = sorted({value for _, value in left if known[value]})
    nearest = dict(zip(values, _nearest(scan, query.vectors[values], hit), strict=True))
    unmatched = [
        Unmatched(text, TOO_FAR, *nearest[value]) if value in nearest else Unmatched(text, UNKNOWN)
        for text, value in left
    ]
    return (
        *unmatched,
        *(Unmatched(text, NO_VALUE) for text in texts_without_value(query).to_pylist()),
    )[:limit]


def texts_without_value(query: EncodedQuery) -> pa.Array:
    """Return the distinct texts, such as ``--``, of which normalisation leaves nothing."""
    return pc.drop_null(query.column.values.filter(query.value_of_row.is_null())).unique()


def _nearest(
    scan: PartitionLoader, vectors: Vectors, hit: Hit
) -> list[tuple[str, float]] | list[tuple[None, None]]:
    """Give, for each query vector, the nearest value of a column and its distance."""
    partition = scan.open_in_place(hit.partition)
    rows = partition.column_lists[hit.position]
    if not len(rows) or not len(vectors):
        return [(None, None)] * len(vectors)
    position, distance = scan.space.nearest(partition, vectors, rows)
    start = partition.column_lists.offsets[hit.position]
    texts, _ = posting_arrays(scan, hit.partition, position + start)
    return list(zip(texts.to_pylist(), distance.tolist(), strict=True))
