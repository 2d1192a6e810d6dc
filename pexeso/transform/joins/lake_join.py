"""The rows that programs join, joined as all joins with a lake are: aggregates, names, conflicts.

A row has a number for what it is joined by: on the side that programs read, its cells with the key
that they are joined with; on the other side, the key. So one mapping serves either direction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pexeso.composite.key_table import JoinedKeys
from pexeso.errors import InputError
from pexeso.joins.composite_join import FoundKeyRows, written_keys
from pexeso.joins.mapping import JoinMapping
from pexeso.joins.matched_rows import joined_rows
from pexeso.joins.options import JoinOptions
from pexeso.joins.report import may_grow
from pexeso.joins.tables import Joined, join_texts
from pexeso.lake.columns import spec_of
from pexeso.lake.frames.columns import column_texts, texts_of_cells
from pexeso.runtime.formatting import many
from pexeso.transform.joins.details import repeated_key, require_distinct
from pexeso.transform.joins.sides import Side, chunked
from pexeso.transform.transformation import KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pexeso.transform.joins.joined import TransformJoin


def join_sides(
    joined: TransformJoin, name: str, options: JoinOptions, *, many_to_one: bool = False
) -> Joined:
    require_distinct(joined, many_to_one=many_to_one)
    if joined.multiplies and may_grow(options):
        raise InputError(
            f"Keys have several rows in both tables (N:M), such as {repeated_key(joined)}, so "
            "that rows would multiply. Keep each row of your table one by aggregate (--aggregate), "
            "name other columns, or allow it by many_to_many (--many-to-many)."
        )
    mapping, source_keys, target_keys = _mapping(joined)
    target = joined.target
    rows = pa.table([texts_of_cells(cells) for cells in target.cells], names=list(target.names))
    key_rows = FoundKeyRows(
        name,
        spec_of([target.texts.names[at] for at in joined.target_columns]),
        rows,
        mapping,
        options,
        target_keys,
        joined_rows(target_keys, mapping),
        _shown(target, joined.target_columns),
        typed=[chunked(cells) for cells in target.cells],
    )
    table = pa.table(list(joined.source.cells), names=list(joined.source.names))
    texts = pa.array(source_keys, mask=source_keys < 0).cast(pa.string())
    made = join_texts(table, texts, key_rows, texts, noun="key")
    n_near = int((joined.rule.distances > 0).sum())
    if not n_near:
        return made
    is_or_are = "is" if n_near == 1 else "are"
    return made.noted(
        f"{many(n_near, 'row')} {is_or_are} joined as nearly equal, with a distance over 0."
    )


def keys_joined(joined: TransformJoin, name: str) -> JoinedKeys:
    columns = joined.source_columns
    codes = np.stack([joined.source.texts.columns[at].codes for at in columns], axis=1)
    filled = (codes >= 0).any(axis=1)
    has_partner = joined.key_codes[0] >= 0
    if not joined.forward:
        has_partner &= np.isin(joined.key_codes[0], joined.rule.partners)
    total = len(np.unique(codes[filled], axis=0))
    matched = len(np.unique(codes[filled & has_partner], axis=0))
    labels = tuple(joined.target.texts.names[at] for at in joined.target_columns)
    return JoinedKeys(name, labels, matched, total)


def _mapping(joined: TransformJoin) -> tuple[JoinMapping, np.ndarray, np.ndarray]:
    """Return the links of keys, and the number of the key of each row of both tables, or -1."""
    partners, kinds = joined.rule.partners, joined.rule.kinds.astype(np.int64)
    distances = joined.rule.distances
    nearness = np.unique(distances, return_inverse=True)[1].reshape(-1)
    codes = [joined.source.texts.columns[at].codes for at in joined.source_columns]
    # Cells of the lake's rows make no difference: these differ by key, kind and distance.
    parts = [*(codes if joined.forward else ()), partners, kinds, nearness]
    rows = np.flatnonzero(partners >= 0)
    links = np.stack([part[rows] for part in parts], axis=1)
    reading = np.full(len(partners), -1, np.int64)
    reading[rows] = np.unique(links, axis=0, return_inverse=True)[1].reshape(-1)
    used = np.unique(partners[rows])
    # The last is that of rows without a key.
    number_of_key = np.full(len(joined.key_counts[0]) + 1, -1, np.int64)
    number_of_key[used] = np.arange(len(used))
    keyed = number_of_key[joined.key_codes[1 if joined.forward else 0]]

    first = _first_rows(reading)
    partner = number_of_key[partners[first]]
    kind, distance = kinds[first], distances[first]
    number = np.arange(len(first))
    query, lake = (number, partner) if joined.forward else (partner, number)
    source_keys, target_keys = (reading, keyed) if joined.forward else (keyed, reading)
    order = np.lexsort((lake, distance, kind, query))
    n_source, n_target = (int(keys.max(initial=-1)) + 1 for keys in (source_keys, target_keys))
    names = _names(joined.source, joined.source_columns, source_keys)
    mapping = JoinMapping(
        texts=_texts(n_source),
        query_of_text=np.arange(n_source),
        query_names=names,
        text_names=names,
        lake_keys=_texts(n_target),
        lake_names=_names(joined.target, joined.target_columns, target_keys),
        query=query[order],
        lake=lake[order],
        distance=distance[order],
        cost=distance[order],
        same=kind[order] == KINDS.index("equal"),
        chosen=np.ones(len(order), dtype=bool),
    )
    return mapping, source_keys, target_keys


def _first_rows(numbers: np.ndarray) -> np.ndarray:
    distinct_numbers, first = np.unique(numbers, return_index=True)
    return first[distinct_numbers >= 0]


def _texts(n_numbers: int) -> pa.StringArray:
    return pa.array(range(n_numbers), pa.int64()).cast(pa.string())


def _names(side: Side, columns: Sequence[int], numbers: np.ndarray) -> pa.StringArray:
    return _shown(side, columns).take(pa.array(_first_rows(numbers)))


def _shown(side: Side, columns: Sequence[int]) -> pa.StringArray:
    cells = [column_texts(side.cells[side.columns[at]]) for at in columns]
    shown = written_keys(cells)
    return pa.concat_arrays(shown.chunks) if isinstance(shown, pa.ChunkedArray) else shown
