"""Columns of an index that may join a query column by a program, the likeliest first.

The partitions are gone through one after the other, and of each the columns in batches: memory is
needed for the texts of one batch, or of the largest column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from embed.vocabulary import hash_strings
from pexeso.errors import IndexCorruptError
from pexeso.runtime.mixing import mixed
from pexeso.store.texts import take_texts
from pexeso.transform.lake_search.shared_grams import QueryGrams, SharedGrams
from pexeso.transform.texts import cleaned

if TYPE_CHECKING:
    from pexeso.store.local.reader import Store

VALUES_AT_ONCE = 1 << 18
"""Values of columns that are compared at a time; a larger column is compared by itself."""

MIN_VALUES = 3
"""Query values that must share a telling piece with a column; as few as a program must join."""

MIN_SHARE = 0.05
"""The same as a share of the smaller column, inclusive."""


@dataclass(frozen=True)
class Candidate:
    """A column that shares telling pieces of text with the query.

    Attributes
    ----------
    texts : pyarrow large_string array (v,)
        Its distinct values, cleaned, in the order of `order_of`.
    partners : int32 (v,)
        For each the number of the query value that shares most with it, or -1.
    strengths : int32 (v,)
        Telling pieces that they share.
    """

    score: int
    table: str
    label: str
    texts: pa.Array = field(repr=False)
    partners: np.ndarray = field(repr=False)
    strengths: np.ndarray = field(repr=False)

    @property
    def rank(self) -> tuple[int, str, str]:
        """What candidates are ordered by: the score, then the names."""
        return -self.score, self.table, self.label

    def pairs(self, query: pa.Array) -> tuple[list[str], list[str]]:
        """Return query values and the values of this column that share most, surest first."""
        at = np.flatnonzero(self.partners >= 0)
        at = at[np.argsort(-self.strengths[at], kind="stable")]
        values = self.texts.take(pa.array(at)).to_pylist()
        return query.take(pa.array(self.partners[at])).to_pylist(), values


@dataclass(frozen=True)
class Candidates:
    """The likeliest columns, best first, and the number of all that were compared."""

    columns: tuple[Candidate, ...]
    n_compared: int


def find_candidates(
    store: Store, query: QueryGrams, limit: int, *, exclude_table: str | None = None
) -> Candidates:
    """Find the columns of an index that share most telling pieces with a query.

    Parameters
    ----------
    limit : int
        Columns at most.
    """
    best: list[Candidate] = []
    n_compared = 0
    for number in range(store.n_partitions):
        tables, labels = store.texts(number, "tables"), store.texts(number, "labels")
        for batch in _batches(store, number):
            shared = query.compare(batch.texts, batch.bounds)
            scores = _scores(query, batch, shared)
            n_compared += len(batch.columns)
            min_score = best[-1].score if len(best) == limit else 1
            selected = np.flatnonzero(scores >= min_score)
            names = zip(
                take_texts(tables, batch.columns[selected]).to_pylist(),
                take_texts(labels, batch.columns[selected]).to_pylist(),
                strict=True,
            )
            hits = [
                (-int(scores[at]), table, label, at)
                for at, (table, label) in zip(selected.tolist(), names, strict=True)
                if table != exclude_table
            ]
            for score, table, label, at in sorted(hits)[:limit]:
                first, end = batch.bounds[at : at + 2].tolist()
                order = order_of(batch.texts[first:end])
                values = first + order
                best.append(
                    Candidate(
                        -score,
                        table,
                        label,
                        batch.texts[first:end].take(pa.array(order)),
                        shared.partners[values],
                        shared.strengths[values],
                    )
                )
            best = sorted(best, key=lambda candidate: candidate.rank)[:limit]
    return Candidates(tuple(best), n_compared)


def order_of(texts: pa.Array) -> np.ndarray:
    """Return the order in which programs are learned from texts, by their hashes: int64 (n,).

    It is the same however a partition holds them. Neighbours have nothing in common: of examples
    that begin alike fewer programs are learned.
    """
    return np.argsort(mixed(hash_strings(texts.cast(pa.large_string()))), kind="stable")


@dataclass(frozen=True)
class _Batch:
    """Some columns of a partition: ``texts[bounds[i]:bounds[i + 1]]`` are those of one."""

    columns: np.ndarray
    bounds: np.ndarray
    texts: pa.Array


def _batches(store: Store, number: int) -> Iterator[_Batch]:
    """Yield the columns of a partition that are not deleted, with their distinct cleaned texts."""
    offsets, rows = store.array(number, "column_values_offsets"), None
    texts, deleted = store.texts(number, "texts"), store.deleted_mask(number)
    rows = store.array(number, "posting_texts")
    n_columns = len(offsets) - 1
    if n_columns and (offsets[0] != 0 or offsets[-1] != len(rows) or (np.diff(offsets) < 0).any()):
        raise IndexCorruptError(
            f"The columns of partition {number} of '{store.path}' are not those of its texts: "
            "restore the index from a copy, or build it again; 'pexeso check' tells which file."
        )
    first = 0
    while first < n_columns:
        last = int(np.searchsorted(offsets, offsets[first] + VALUES_AT_ONCE, "right")) - 1
        last = min(max(last, first + 1), n_columns)
        columns = np.arange(first, last)
        bounds = np.asarray(offsets[first : last + 1]) - offsets[first]
        of_columns = np.repeat(columns, np.diff(bounds))
        batch_texts = cleaned(take_texts(texts, rows[offsets[first] : offsets[last]]), of_columns)
        first = last
        if deleted is not None and deleted[columns].any():
            left = ~deleted[columns]
            batch_texts = batch_texts.filter(pa.array(np.repeat(left, np.diff(bounds))))
            bounds = np.concatenate([[0], np.cumsum(np.diff(bounds)[left])])
            columns = columns[left]
        yield _Batch(columns, bounds, batch_texts)


def _scores(query: QueryGrams, batch: _Batch, shared: SharedGrams) -> np.ndarray:
    """Return the score of each column, 0 where it is no candidate: int64.

    It is the number of telling pieces times their number for each value of the smaller side, so
    that neither large columns come first, by chance, nor small ones.
    """
    sizes = np.minimum(len(query.texts), np.diff(batch.bounds)) - shared.n_equal
    sizes = np.maximum(sizes, 1)
    enough = np.maximum(MIN_VALUES, MIN_SHARE * sizes)
    scores = (shared.n_pieces**2 << 16) // sizes
    return np.where(shared.n_values >= enough, scores, 0)
