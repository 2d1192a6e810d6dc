"""Columns found by equal values, folded: copies of one column make one line of an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from pexeso.errors import IndexCorruptError
from pexeso.results.copies import (
    ColumnSets,
    first_request,
    fold,
    foldable_sizes,
    lines_compared,
    lines_of,
    next_request,
    numbered_by_text,
)
from pexeso.results.table_columns import HasCatalog, TableColumns
from pexeso.runtime.checks import require_flag
from pexeso.runtime.ranges import offsets_of, ranges
from pexeso.sets.part.open import Shard
from pexeso.sets.search.results import TokenMatch, TokenSearchResult
from pexeso.store.texts import take_texts

NUMBERS_AT_ONCE = 1 << 20
"""Numbers of a dictionary that are read at a time, where texts are looked for."""


@dataclass(frozen=True)
class Request:
    """How many lines are wanted.

    Attributes
    ----------
    k : int or None
        None: all.
    folds : bool
        Fold copies.
    """

    k: int | None
    folds: bool

    def __post_init__(self) -> None:
        require_flag("fold_copies", self.folds)

    def lay_out(
        self, result: TokenSearchResult, opened: HasCatalog, *, is_whole: bool
    ) -> TokenSearchResult:
        """Fold the columns of a result, and keep as many lines as are wanted."""
        lines = [[position] for position in range(len(result))]
        if self.folds and len(result) > 1:
            lines = lines_of(fold(sets_of_matches(result), lines_compared(self.k)))
        columns = TableColumns(opened, (result[line[0]].table for line in lines[: self.k]))
        shown = []
        for line in lines[: self.k]:
            first, *copies = (replace(result[position], _columns=columns) for position in line)
            shown.append(replace(first, copies=tuple(copies)))
        n_more = len(lines) - len(shown) if is_whole else None
        return replace(result, matches=tuple(shown), n_more=n_more, folded=self.folds)

    def first_best(
        self,
        search: Callable[[int], TokenSearchResult],
        n_columns: int,
        opened: HasCatalog,
    ) -> TokenSearchResult:
        """Search for the best columns, for more where too few lines come of them.

        Parameters
        ----------
        n_columns : int
            That there are.
        """
        limit = n_columns if self.k is None else first_request(self.k, folds=self.folds)
        while True:
            answer = search(max(limit, 1))
            is_whole = len(answer) < limit or limit >= n_columns
            result = self.lay_out(answer, opened, is_whole=is_whole)
            if is_whole or len(result) == self.k:
                return result
            limit = next_request(limit)


def sets_of_matches(matches: Sequence[TokenMatch]) -> ColumnSets:
    """Read the distinct tokens of columns found.

    Columns that `pexeso.results.copies.foldable_sizes` leaves out are empty. Where columns
    come from several shards the numbers of the dictionary of each are read once through for the
    texts.
    """
    sizes = foldable_sizes(np.array([match.size for match in matches], np.int64))
    offsets = offsets_of(sizes)
    tokens = np.zeros(offsets[-1], np.int64)
    read = np.flatnonzero(sizes)
    shards = list({id(matches[row]._at[0]): matches[row]._at[0] for row in read.tolist()}.values())
    parts = []
    for shard in shards:
        rows = np.array([row for row in read.tolist() if matches[row]._at[0] is shard], np.int64)
        numbers = np.array([matches[row]._at[1] for row in rows.tolist()], np.int64)
        suffixes, lengths = shard.overlap.suffixes(numbers, np.zeros(len(numbers), np.int64))
        if (lengths != sizes[rows]).any():
            raise IndexCorruptError(
                f"The sizes of sets in '{shard.folder}' are not those of its lists: restore the "
                "index from a copy, or build it again."
            )
        positions = ranges(offsets[rows], sizes[rows])
        tokens[positions] = suffixes
        part = np.zeros(len(tokens), bool)
        part[positions] = True
        parts.append(part)
    if len(shards) > 1:
        texts = [partial(_texts_of, shard) for shard in shards]
        tokens = numbered_by_text(tokens, parts, texts)
    return ColumnSets(offsets, tokens)


def _texts_of(shard: Shard, tokens: np.ndarray) -> pa.Array:
    """Return the texts of tokens, given by ascending numbers."""
    dictionary = shard.overlap.dictionary
    positions = np.full(len(tokens), -1, np.int64)
    for start in range(0, len(dictionary), NUMBERS_AT_ONCE):
        numbers = np.asarray(dictionary.numbers[start : start + NUMBERS_AT_ONCE])
        at = np.minimum(np.searchsorted(tokens, numbers), len(tokens) - 1)
        hits = np.flatnonzero(tokens[at] == numbers)
        positions[at[hits]] = start + hits
    return take_texts(dictionary.texts, positions)
