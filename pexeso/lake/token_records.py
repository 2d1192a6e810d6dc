"""A column as a set of tokens, for joins by equal text: one record of the set, one of each token.

Numbers, ids and codes join by equal text as well as words do, so columns of every kind are taken here; the other rules are those of the semantic index.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from pexeso.lake.choose import KINDS, ColumnRules, reason_left_out
from pexeso.lake.record_schema import MAX_RECORDS, batch_of, batch_of_columns
from pexeso.lake.sniff import ColumnProfile
from pexeso.lake.tokens import distinct_tokens


def set_records(
    place: tuple[str, int, str], cells: pa.Array | pa.ChunkedArray, profile: ColumnProfile | None, rules: ColumnRules
) -> Iterator[pa.RecordBatch]:
    """Give the records of a column's tokens; none where the column is not to join by equal text.

    Parameters
    ----------
    place
        The table, the position of the column in it, and its label.
    cells
        Texts, with repeats or without.
    profile
        None: nothing is known of the column, which is left out.
    rules
        All hold but `kinds`; `min_distinct` counts tokens.

    Yields
    ------
    pa.RecordBatch
        Of `pexeso.lake.record_schema.SCHEMA`, at most `MAX_RECORDS` rows: the ``set``, with its label and number of tokens, then each ``token``.

    Examples
    --------
    >>> from pexeso.lake.sniff import profile_column
    >>> cells = pa.array(["7", "8", "7.0"])
    >>> batches = set_records(("a.csv", 0, "id"), cells, profile_column(cells), ColumnRules(min_rows=1))
    >>> [(batch["record"][0].as_py(), batch["value"].to_pylist()) for batch in batches]
    [('set', [None]), ('token', ['7', '8'])]
    """
    if profile is None or reason_left_out(profile, replace(rules, kinds=KINDS)) is not None:
        return
    tokens = distinct_tokens(cells)
    if len(tokens) < rules.min_distinct:
        return
    table, position, label = place
    about = {"table": table, "position": position, "label": label, "n_distinct": len(tokens)}
    yield batch_of([{"record": "set", **about}])
    for start in range(0, len(tokens), MAX_RECORDS):
        some = tokens.slice(start, MAX_RECORDS).cast(pa.string())
        columns = {
            "record": pa.repeat("token", len(some)),
            "table": pa.repeat(table, len(some)),
            "position": pa.repeat(pa.scalar(position, pa.int32()), len(some)),
            "value": some,
        }
        yield batch_of_columns(columns)
