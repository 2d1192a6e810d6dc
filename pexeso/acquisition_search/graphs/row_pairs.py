"""Pairs of tables in memory that may join: samples, and the shopper's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pexeso.acquisition_search.graphs.table_pairs import PairsOfTables, TablePairs
from pexeso.acquisition_search.pairs.lake_columns import LakeColumns
from pexeso.lake.sniff import profile_columns
from pexeso.lake.tokens import distinct_tokens_of, tokens_of
from pexeso.overlap.index.sets import OverlapIndex, build_index
from pexeso.parts.token_sets.open import SetNames


@dataclass(frozen=True, eq=False)
class MemoryShard:
    """Token sets in memory, as `pexeso.parts.token_sets.open.Shard` has them in files.

    Attributes
    ----------
    overlap : OverlapIndex
    names : SetNames
    deleted : int64 (0,)
    """

    overlap: OverlapIndex
    names: SetNames
    deleted: np.ndarray


def pairs_of_rows(rows: Mapping[str, pa.Table]) -> PairsOfTables:
    """Return the pairs of tables that may join, by the rules for those of an index.

    Parameters
    ----------
    rows : mapping of str to pyarrow.Table
        By name. Columns of lists and the like join nothing.

    Examples
    --------
    >>> one = pa.table({"town": ["Oslo", "Rome", "Bern"]})
    >>> other = pa.table({"place": ["Bern", "Oslo", "Rome"], "size": [1, 2, 3]})
    >>> pairs_of_rows({"a": one, "b": other})
    {('a', 'b'): [('town', 'place')]}
    """
    names, cells = [], []
    for table in sorted(rows):
        usable = [field.name for field in rows[table].schema if not pa.types.is_nested(field.type)]
        names += [(table, label) for label in sorted(usable)]
        cells += [tokens_of(rows[table][label]).cast(pa.string()) for label in sorted(usable)]
    tokens = distinct_tokens_of(cells)
    positions = [at for at, column_tokens in enumerate(tokens) if len(column_tokens)]
    if not positions:
        return {}
    sets = np.repeat(np.arange(len(positions)), [len(tokens[at]) for at in positions])
    index = build_index(sets, pa.concat_arrays([tokens[at] for at in positions]))
    tables, labels = (
        pa.array([names[at][end] for at in positions], pa.large_string()) for end in (0, 1)
    )
    shard = MemoryShard(index, SetNames(tables, labels), np.empty(0, np.int64))
    in_order = sorted(rows)
    columns = LakeColumns.of(
        [shard], pa.array(in_order), pa.array([rows[table].num_rows for table in in_order])
    )
    kinds = [profile.kind for profile in profile_columns(cells)]
    known = pa.table(
        {
            "table": [table for table, _ in names],
            "label": [label for _, label in names],
            "kind": kinds,
        }
    )
    return TablePairs.of(columns, known).all()[0]
