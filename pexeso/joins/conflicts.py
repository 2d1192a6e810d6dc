"""Table of the cases where a join had to choose, or could not do what might be expected.

The cases are found from the mapping and the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.joins.aggregation import differing, not_numbers
from pexeso.joins.mapping import JoinMapping
from pexeso.joins.matched_rows import FoundRows
from pexeso.joins.options import OF_NUMBERS
from pexeso.store.io.wide_offsets import take_wide

SHARED, TIED, UNPAIRED = "shared", "tied", "unpaired"
REPEATED, DIFFERING, NOT_A_NUMBER, GONE, NOT_SEARCHED = (
    "repeated",
    "differing",
    "not a number",
    "gone",
    "not searched",
)

KINDS = {
    SHARED: "lake_value",
    TIED: "query_value",
    UNPAIRED: "query_value",
    REPEATED: "query_value",
    DIFFERING: "query_value",
    NOT_A_NUMBER: "column",
    GONE: "lake_value",
    NOT_SEARCHED: "query_value",
}
"""The kinds of conflicts, in the order in which they are told, and what of each row of `CONFLICTS`
a conflict of it is about.

- ``shared``: a lake value that several query values are joined with; one-to-one: that is the
  nearest of several.
- ``tied``: a query value with several lake values equally near, none of them the same normalised
  text.
- ``unpaired``: one-to-one, a query value with matches, all of which went to others.
- ``repeated``: a query value that is joined with several rows of the found table.
- ``differing``: a query value whose cells differ in a column aggregated by ``first``.
- ``not a number``: a column aggregated as numbers with cells that are none, and are left out.
- ``gone``: a lake value of the index that the table no longer holds.
- ``not searched``: a value of the table that the search was not given.
"""

CONFLICTS = pa.schema(
    [
        *(
            (name, pa.large_string())
            for name in ("kind", "query_value", "lake_value", "column", "cell")
        ),
        ("distance", pa.float64()),
        ("count", pa.int64()),
    ]
)
"""One row for each value or cell that takes part in a conflict.

``count`` is a number of rows: of the found table, or for ``not searched`` of yours.
"""


def mapping_conflicts(mapping: JoinMapping, values: str) -> pa.Table:
    """Find the conflicts that the values make, whatever the rows."""
    link_mask = mapping.nearest if values == "one-to-one" else mapping.chosen
    link_counts = np.bincount(mapping.lake[link_mask], minlength=len(mapping.lake_keys))
    shared = np.flatnonzero(link_mask & (link_counts > 1)[mapping.lake])
    shared = shared[np.argsort(mapping.lake[shared], kind="stable")]
    parts = [_links(SHARED, mapping, shared), _links(TIED, mapping, _tied(mapping))]
    if values == "one-to-one":
        has_partner = np.isin(mapping.query, mapping.query[mapping.chosen])
        parts.append(_links(UNPAIRED, mapping, np.flatnonzero(mapping.nearest & ~has_partner)))
    return pa.concat_tables(parts)


def row_conflicts(found_rows: FoundRows) -> pa.Table:
    """Find the conflicts that the rows of the found table make; of `CONFLICTS`."""
    parts = [_repeated(found_rows), *_cells(found_rows)]
    is_gone = np.ones(len(found_rows.mapping.lake_keys), dtype=bool)
    is_gone[found_rows.key[found_rows.key >= 0]] = False
    is_gone &= np.isin(np.arange(len(is_gone)), found_rows.mapping.lake[found_rows.mapping.chosen])
    parts.append(
        conflict_rows(GONE, lake_value=found_rows.mapping.lake_names.filter(pa.array(is_gone)))
    )
    return pa.concat_tables(parts)


def not_searched(texts: pa.StringArray, mapping: JoinMapping, searched: pa.StringArray) -> pa.Table:
    """Find the values of the user's table that the search was not given; of `CONFLICTS`."""
    is_searched = pc.is_in(texts, value_set=pa.concat_arrays([mapping.texts, searched.unique()]))
    left = texts.filter(pc.and_(texts.is_valid(), pc.invert(is_searched))).value_counts()
    return conflict_rows(NOT_SEARCHED, query_value=left.field("values"), count=left.field("counts"))


def _tied(mapping: JoinMapping) -> np.ndarray:
    """Return the links of query values with several nearest lake values, none of equal text."""
    first = np.flatnonzero(mapping.nearest)
    which = np.cumsum(mapping.nearest) - 1
    is_near = mapping.distance == mapping.distance[first][which]
    n_near = np.bincount(which[is_near], minlength=len(first))
    open_ones = (n_near > 1) & ~mapping.same[first]
    return np.flatnonzero(is_near & open_ones[which])


def _links(kind: str, mapping: JoinMapping, links: np.ndarray) -> pa.Table:
    return conflict_rows(
        kind,
        query_value=take_wide(mapping.query_names, pa.array(mapping.query[links])),
        lake_value=take_wide(mapping.lake_names, pa.array(mapping.lake[links])),
        distance=pa.array(mapping.distance[links]),
    )


def _repeated(found_rows: FoundRows) -> pa.Table:
    counts = np.bincount(found_rows.groups.of_row, minlength=len(found_rows.groups))
    rows = np.flatnonzero((counts > 1)[found_rows.groups.of_row])
    # One row for each lake value of such a text, with its number of rows.
    ids = (
        found_rows.text[rows] * max(1, len(found_rows.mapping.lake_keys))
        + found_rows.key[found_rows.row[rows]]
    )
    _, first, sizes = np.unique(ids, return_index=True, return_counts=True)
    order = np.argsort(first)
    at = rows[first[order]]
    return conflict_rows(
        REPEATED,
        query_value=take_wide(found_rows.mapping.shown_texts, pa.array(found_rows.text[at])),
        lake_value=take_wide(
            found_rows.mapping.lake_names, pa.array(found_rows.key[found_rows.row[at]])
        ),
        distance=pa.array(found_rows.distance[at]),
        count=pa.array(sizes[order]),
    )


def _cells(found_rows: FoundRows) -> list[pa.Table]:
    parts = []
    for position, way in enumerate(found_rows.ways or ()):
        name = found_rows.rows.column_names[position]
        if way == "first":
            group, cells = differing(found_rows.cells_of(position), found_rows.groups)
            text = found_rows.text[found_rows.groups.starts[group]]
            names = take_wide(found_rows.mapping.shown_texts, pa.array(text))
            parts.append(conflict_rows(DIFFERING, query_value=names, column=name, cell=cells))
        elif way in OF_NUMBERS:
            cells, counts = not_numbers(found_rows.cells_of(position, _rows_once(found_rows)))
            parts.append(
                conflict_rows(NOT_A_NUMBER, column=name, cell=cells, count=pa.array(counts))
            )
    return parts


def _rows_once(found_rows: FoundRows) -> np.ndarray:
    """Return the joined rows, each once, in the order in which they are first joined."""
    _, first = np.unique(found_rows.row, return_index=True)
    return found_rows.row[np.sort(first)]


def conflict_rows(kind: str, **columns: Any) -> pa.Table:
    """Create rows of `CONFLICTS` of one kind.

    Columns have equal lengths; a text is repeated in all rows.
    """
    n_rows = next(len(column) for column in columns.values() if not isinstance(column, str))
    filled = {"kind": kind, **columns}
    arrays = [
        pa.repeat(pa.scalar(column, field.type), n_rows)
        if isinstance(column := filled.get(field.name), str | None)
        else column.cast(field.type)
        for field in CONFLICTS
    ]
    return pa.Table.from_arrays(arrays, schema=CONFLICTS)
