"""Matching value pairs of the columns of a result, as arrays.

They take about 60 bytes per pair, in addition to the texts.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.engine.damage import damage_made_plain
from pexeso.engine.stats import SearchStats
from pexeso.errors import IndexCorruptError
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.options import SearchOptions
from pexeso.results.match_kinds import ALIAS, EXACT, KINDS, SPELLING, KindCounts, Pair, kinds_of
from pexeso.results.ranking import Hit
from pexeso.runtime.ranges import ranges
from pexeso.semantic.encoded_query import EncodedQuery
from pexeso.semantic.partition_loader import PartitionLoader
from pexeso.store.io.wide_offsets import take_wide
from pexeso.store.texts import take_texts


@dataclass(frozen=True)
class PairTable:
    """The n pairs of a query column and one lake column.

    They are in the query's order, nearest first.

    Attributes
    ----------
    text : numpy.ndarray of shape (n,), int64
        Places in `texts`, ascending.
    values, keys : pyarrow string arrays of length n
        Texts of the lake column, as they stand there and as the index holds them.
    distances : numpy.ndarray of shape (n,), float64
        In [0, 1].
    kinds : numpy.ndarray of shape (n,), int8
        Places in `KINDS`.
    """

    texts: pa.StringArray
    text: np.ndarray
    values: pa.Array
    keys: pa.Array
    distances: np.ndarray
    kinds: np.ndarray

    def __len__(self) -> int:
        return len(self.text)

    def take(self, rows: np.ndarray) -> PairTable:
        """Return some of the pairs."""
        return PairTable(
            self.texts,
            self.text[rows],
            take_wide(self.values, pa.array(rows)),
            take_wide(self.keys, pa.array(rows)),
            self.distances[rows],
            self.kinds[rows],
        )

    @cached_property
    def starts(self) -> np.ndarray:
        """Where the pairs of each matched text start: its nearest pair, int64."""
        return np.flatnonzero(np.diff(self.text, prepend=-1))

    def weakest(self, limit: int) -> PairTable:
        """Return the nearest pairs of the texts whose nearest pair is farthest, that first.

        Texts with an equal value are none of them.
        """
        far = self.starts[self.distances[self.starts] > 0]
        return self.take(far[np.argsort(-self.distances[far], kind="stable")[:limit]])

    @property
    def is_matched(self) -> np.ndarray:
        """Whether each of `texts` has a pair, bool."""
        matched = np.zeros(len(self.texts), dtype=bool)
        matched[self.text] = True
        return matched

    def count_kinds(self, counted: np.ndarray) -> KindCounts:
        """Count pairs, and values or rows of the query column, by kind.

        Parameters
        ----------
        counted : numpy.ndarray, int64
            What each of `texts` counts for.
        """
        pairs = np.bincount(self.kinds, minlength=len(KINDS))
        matched = np.zeros(len(KINDS), dtype=np.int64)
        if len(self):
            closest = np.minimum.reduceat(self.kinds, self.starts)
            np.add.at(matched, closest, counted[self.text[self.starts]])
        named = [kind for kind in KINDS if kind != ALIAS or pairs[KINDS.index(ALIAS)]]
        return KindCounts(
            *(
                {kind: int(counts[KINDS.index(kind)]) for kind in named}
                for counts in (pairs, matched)
            )
        )

    def with_aliases(self, normaliser: Normaliser) -> PairTable:
        """Return the same pairs, with those told that are equal by an alias of the normaliser."""
        rows = np.flatnonzero(self.kinds == KINDS.index(EXACT))
        ours = take_wide(self.texts, pa.array(self.text[rows]))
        values = take_wide(self.values, pa.array(rows))
        kinds = self.kinds.copy()
        kinds[rows[normaliser.equal_by_alias(ours, values)]] = KINDS.index(ALIAS)
        return replace(self, kinds=kinds)

    def with_equal_cells(self) -> PairTable:
        """Return the same pairs, of which those of equal cells alone are exact."""
        rows = np.flatnonzero(self.kinds == KINDS.index(EXACT))
        ours = pc.utf8_trim_whitespace(take_wide(self.texts, pa.array(self.text[rows])))
        same = pc.equal(
            ours.cast(pa.large_string()), self.values.take(pa.array(rows)).cast(pa.large_string())
        )
        kinds = self.kinds.copy()
        kinds[rows[~same.to_numpy(zero_copy_only=False)]] = KINDS.index(SPELLING)
        return replace(self, kinds=kinds)

    def to_pairs(self, limit: int | None = None) -> list[Pair]:
        """Return the first `limit` pairs, or all, as objects."""
        end = len(self) if limit is None else min(limit, len(self))
        columns = (
            take_wide(self.texts, pa.array(self.text[:end])).to_pylist(),
            self.values.slice(0, end).to_pylist(),
            self.distances[:end].tolist(),
            self.keys.slice(0, end).to_pylist(),
            (KINDS[kind] for kind in self.kinds[:end].tolist()),
        )
        return [Pair(*row) for row in zip(*columns, strict=True)]


@damage_made_plain("the index")
def find_pairs(
    scan: PartitionLoader,
    query: EncodedQuery,
    hits: Sequence[Hit],
    options: SearchOptions,
    stats: SearchStats,
) -> list[PairTable]:
    """Return the matching value pairs of found columns, one table per hit.

    The pairs of a table are in the query's order, nearest first.
    """
    started = time.perf_counter()
    tables: dict[int, PairTable] = {}
    texts_of_value = _rows_by_value(query)
    for number in sorted({hit.partition for hit in hits}):
        hit_numbers = [position for position, hit in enumerate(hits) if hit.partition == number]
        positions = np.array([hits[position].position for position in hit_numbers], np.int64)
        partition = scan.open_for_pairs(number, positions, len(query.values))
        pairs = scan.space.column_pairs(
            partition, query.vectors, positions, options.max_distance, stats
        )
        column, value, posting, distance = pairs
        values, keys = posting_arrays(scan, number, posting)
        kinds = kinds_of(take_wide(query.values, pa.array(value)), keys)
        # Pairs come ordered by column.
        bounds = np.searchsorted(column, np.arange(len(hit_numbers) + 1))
        for position, start, end in zip(hit_numbers, bounds[:-1], bounds[1:], strict=True):
            rows, text = _of_texts(value[start:end], *texts_of_value)
            # Stable: within a text the pairs stay nearest first.
            order = np.argsort(text, kind="stable")
            rows = start + rows[order]
            indices = pa.array(rows)
            table = PairTable(
                query.text_array,
                text[order],
                values.take(indices),
                keys.take(indices),
                distance[rows],
                kinds[rows],
            )
            has_aliases = query.normaliser is not None and query.normaliser.aliases is not None
            table = table.with_aliases(query.normaliser) if has_aliases else table
            tables[position] = table.with_equal_cells()
    stats.add_seconds("explain", time.perf_counter() - started)
    return [tables[position] for position in range(len(hits))]


def posting_arrays(
    scan: PartitionLoader, number: int, postings: np.ndarray
) -> tuple[pa.Array, pa.Array]:
    """Return the texts of postings as in their columns, and as in the index: large_string.

    An intact index has no missing text.
    """
    store = scan.store
    rows = store.array(number, "posting_texts")[postings]
    values = store.array(number, "column_values_members")[postings]
    texts = (
        take_texts(store.texts(number, "texts"), rows).cast(pa.large_string()),
        take_texts(store.texts(number, "values"), values).cast(pa.large_string()),
    )
    if any(array.null_count for array in texts):
        raise IndexCorruptError(
            f"A text of partition {number} of '{store.path}' is missing: build the index again. "
            "'pexeso check' lists what is damaged."
        )
    return texts


def _rows_by_value(query: EncodedQuery) -> tuple[np.ndarray, np.ndarray]:
    """Sort the positions of texts by value; return each value's start and the positions."""
    _, value_of_text = query.texts
    starts = np.zeros(len(query.values) + 1, dtype=np.int64)
    np.cumsum(np.bincount(value_of_text, minlength=len(query.values)), out=starts[1:])
    return starts, np.argsort(value_of_text, kind="stable")


def _of_texts(
    values: np.ndarray, starts: np.ndarray, texts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Repeat each row of `values` for each text of its value.

    Returns the rows and the positions of the texts.
    """
    sizes = starts[values + 1] - starts[values]
    rows = np.repeat(np.arange(len(values)), sizes)
    return rows, texts[ranges(starts[values], sizes)]
