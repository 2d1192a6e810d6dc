"""The joined table: rows of the source, repeated for several partners, and those beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from pexeso.lake.frames.beside import take_column_cells
from pexeso.transform.transformation import KINDS

if TYPE_CHECKING:
    from pexeso.transform.joins.joined import TransformJoin


def side_by_side(joined: TransformJoin, how: Literal["left", "inner"]) -> pa.Table:
    """Return the source's rows with the columns of the target beside them."""
    source, target = joined.key_codes
    order = np.argsort(target, kind="stable")
    sorted_codes = target[order]
    first = np.searchsorted(sorted_codes, source, "left")
    count = np.where(source >= 0, np.searchsorted(sorted_codes, source, "right") - first, 0)
    n_rows = np.maximum(count, 1) if how == "left" else count
    rows = np.repeat(np.arange(len(source)), n_rows)
    position = np.arange(len(rows)) - np.repeat(np.cumsum(n_rows) - n_rows, n_rows)
    partners = order[np.minimum(first[rows] + position, len(order) - 1)]
    is_joined = count[rows] > 0
    target_rows = pa.array(partners, mask=~is_joined)
    names = list(joined.source.names)
    columns = [_take_cells(cells, pa.array(rows)) for cells in joined.source.cells]
    for name, cells in zip(joined.target.names, joined.target.cells, strict=True):
        names.append(_free_name(name, names))
        columns.append(_take_cells(cells, target_rows))
    names.append(_free_name("match_kind", names))
    kinds = joined.rule.kinds[rows if joined.forward else partners]
    columns.append(pa.array(KINDS).take(pa.array(kinds, pa.int32(), mask=~is_joined)))
    return pa.table(columns, names=names)


def _take_cells(cells: pa.Array | pa.ChunkedArray, rows: pa.Array) -> pa.ChunkedArray:
    return take_column_cells(
        cells if isinstance(cells, pa.ChunkedArray) else pa.chunked_array([cells]), rows
    )


def _free_name(name: str, used_names: list[str]) -> str:
    free, number = name, 1
    while free in used_names:
        number += 1
        free = f"{name} {number}"
    return free
