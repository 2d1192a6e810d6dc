"""Columns of an index, with what decides whether two of them may join."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import IndexCorruptError
from pexeso.sets.overlap.index.sets import OverlapIndex
from pexeso.sets.overlap.loops import find_texts
from pexeso.sets.part.open import require_part
from pexeso.store.texts import take_texts

if TYPE_CHECKING:
    from pexeso.semantic.open_index import OpenIndex
    from pexeso.sets.part.open import Shard
    from pexeso.sets.search.opening import TokenSets


DAMAGED_LISTS = (
    "The posting lists of an overlap index do not belong together: it was changed or cut short. "
    "Restore it from a copy, or build it again."
)

_POSITION = r"^#[0-9]+$"
_SHORT = r"^-?[0-9]{1,4}([.][0-9]*)?$"
_SEPARATORS = r"[^\p{L}\p{N}]+"


@dataclass(frozen=True, eq=False)
class LakeColumns:
    """The n columns of an index that have token sets and are not deleted, by table, then label.

    Attributes
    ----------
    shard_of, set_of : int64 (n,)
        Its shard, and the number of its set there.
    sizes : int64 (n,)
        Distinct tokens.
    n_rows : int64 (n,)
        Rows of its table, 0 where the catalog does not know them.
    """

    shards: tuple[Shard, ...]
    tables: pa.LargeStringArray
    labels: pa.LargeStringArray
    shard_of: np.ndarray
    set_of: np.ndarray
    sizes: np.ndarray
    n_rows: np.ndarray

    def __len__(self) -> int:
        return len(self.sizes)

    @classmethod
    def of_index(cls, opened: OpenIndex | TokenSets) -> LakeColumns:
        """Return the columns of an open index."""
        require_part(opened.store, "overlap")
        rows = opened.catalog.tables(["table", "n_rows"])
        return cls.of(opened.shards, rows["table"], rows["n_rows"])

    @classmethod
    def of(
        cls,
        shards: Sequence[Shard],
        tables: pa.Array | pa.ChunkedArray,
        n_rows: pa.Array | pa.ChunkedArray,
    ) -> LakeColumns:
        """Return the columns of shards."""
        named = pa.concat_tables([_EMPTY, *(_named(at, shard) for at, shard in enumerate(shards))])
        named = named.sort_by([("table", "ascending"), ("label", "ascending")]).combine_chunks()
        at = pc.index_in(named["table"], value_set=_texts(tables))
        rows = pc.fill_null(pc.cast(n_rows, pa.int64()).take(at), 0)
        return cls(
            tuple(shards),
            _texts(named["table"]),
            _texts(named["label"]),
            *(named[name].to_numpy() for name in ("shard", "set", "size")),
            rows.to_numpy(),
        )

    @cached_property
    def indexes(self) -> tuple[OverlapIndex, ...]:
        """The posting lists of each shard, with offsets that do not lead out of them."""
        indexes = tuple(shard.overlap for shard in self.shards)
        for index in indexes:
            _require_sound_offsets(index)
        return indexes

    @cached_property
    def table_numbers(self) -> np.ndarray:
        """A number for each column, equal within a table, ascending: int64 (n,)."""
        return _codes(self.tables.dictionary_encode())

    def table_number(self, table: str) -> int:
        """Return the number of a table, -1 if it has no column."""
        first, end = self._range_of(table)
        return int(self.table_numbers[first]) if first < end else -1

    @cached_property
    def name_numbers(self) -> np.ndarray:
        """A number for each column, equal where `comparable_names` are; -1 without: int64 (n,)."""
        return _codes(self._coded_names)

    @cached_property
    def _coded_names(self) -> pa.DictionaryArray:
        return comparable_names(self.labels).dictionary_encode()

    def name_numbers_of(self, labels: Sequence[str]) -> np.ndarray:
        """Return the numbers of names; -2, which no column has, without or if new: int64."""
        names = comparable_names(pa.array(list(labels), pa.large_string()))
        at = pc.index_in(names, value_set=self._coded_names.dictionary, skip_nulls=True)
        return pc.fill_null(at, -2).to_numpy(zero_copy_only=False).astype(np.int64)

    @cached_property
    def of_set(self) -> tuple[np.ndarray, ...]:
        """For each shard the column of each of its sets, -1 where it is deleted: int64."""
        by_shard = []
        for at, shard in enumerate(self.shards):
            columns = np.full(shard.overlap.n_sets, -1, np.int64)
            members = np.flatnonzero(self.shard_of == at)
            columns[self.set_of[members]] = members
            by_shard.append(columns)
        return tuple(by_shard)

    def rows_of(self, tables: Sequence[str]) -> np.ndarray:
        """Return the columns of some tables: int64, ascending."""
        ranges = [np.arange(*self._range_of(table)) for table in sorted(set(tables))]
        return np.concatenate([np.empty(0, np.int64), *ranges])

    def _range_of(self, table: str) -> tuple[int, int]:
        # Ascending by code point, as Python compares texts.
        first = bisect_left(self.tables, table, key=_text)
        return first, bisect_right(self.tables, table, first, key=_text)

    def column(self, table: str, label: str) -> int:
        """Return the number of a column, -1 if there is none."""
        first, end = self._range_of(table)
        at = pc.index(self.labels[first:end], label).as_py()
        return -1 if at < 0 else first + at

    def name(self, column: int) -> tuple[str, str]:
        """Return table and label of a column."""
        return self.tables[column].as_py(), self.labels[column].as_py()

    def tokens(self, column: int) -> pa.LargeStringArray:
        """Return the distinct tokens of a column, in no particular order."""
        at = int(self.shard_of[column])
        index = self.indexes[at]
        numbers = index.suffix(int(self.set_of[column]), 0)
        positions = self._text_of_token[at][numbers]
        return take_texts(index.dictionary.texts, positions).cast(pa.large_string())

    @cached_property
    def _text_of_token(self) -> tuple[np.ndarray, ...]:
        return tuple(map(text_of_token, self.indexes))


def _text(scalar: pa.Scalar) -> str:
    return scalar.as_py()


def comparable_names(labels: pa.Array) -> pa.Array:
    """Return names in lower case without separators, null where a column has no name."""
    names = pc.replace_substring_regex(pc.utf8_lower(labels), _SEPARATORS, "")
    unnamed = pc.or_(pc.match_substring_regex(labels, _POSITION), pc.equal(names, ""))
    return pc.if_else(unnamed, pa.scalar(None, names.type), names)


def are_short_numbers(tokens: pa.Array) -> np.ndarray:
    """Return which tokens are numbers of at most four digits before their point: bool (t,)."""
    return pc.match_substring_regex(tokens, _SHORT).to_numpy(zero_copy_only=False)


def text_of_token(index: OverlapIndex) -> np.ndarray:
    """Return where in the dictionary's texts each token stands: (u,) integers."""
    numbers = np.asarray(index.dictionary.numbers)
    if len(numbers) and (numbers.min() < 0 or numbers.max() >= index.n_tokens):
        raise IndexCorruptError(
            "The dictionary of an overlap index names a token that is not there: it was changed. "
            "Restore it from a copy, or build it again."
        )
    positions = np.zeros(index.n_tokens, np.int32 if index.n_tokens < 2**31 else np.int64)
    positions[numbers] = np.arange(len(numbers), dtype=positions.dtype)
    return positions


def find_tokens(index: OverlapIndex, tokens: pa.Array) -> np.ndarray:
    """Return the number of each token, -1 where no set holds it: int64."""
    positions = find_texts(index.dictionary.texts, tokens)
    numbers = np.full(len(positions), -1, np.int64)
    mask = positions >= 0
    numbers[mask] = np.asarray(index.dictionary.numbers)[positions[mask]]
    if len(numbers) and numbers.max() >= index.n_tokens:
        raise IndexCorruptError(
            "The dictionary of an overlap index names a token that is not there: it was changed. "
            "Restore it from a copy, or build it again."
        )
    return numbers


def _require_sound_offsets(index: OverlapIndex) -> None:
    """Refuse an index whose offsets lead out of it: loops follow them unchecked."""
    for offsets, n in (
        (index.token_offsets, len(index.list_sets)),
        (index.set_offsets, len(index.set_tokens)),
    ):
        offsets = np.asarray(offsets)
        if offsets[0] != 0 or offsets[-1] != n or (np.diff(offsets) < 0).any():
            raise IndexCorruptError(DAMAGED_LISTS)


_EMPTY = pa.table(
    {
        "table": pa.array([], pa.large_string()),
        "label": pa.array([], pa.large_string()),
        "shard": pa.array([], pa.int64()),
        "set": pa.array([], pa.int64()),
        "size": pa.array([], pa.int64()),
    }
)


def _named(at: int, shard: Shard) -> pa.Table:
    n_sets = len(shard.names)
    live = np.setdiff1d(np.arange(n_sets), shard.deleted)
    sizes = np.diff(np.asarray(shard.overlap.set_offsets)).astype(np.int64)
    return pa.table(
        {
            "table": take_texts(shard.names.tables, live).cast(pa.large_string()),
            "label": take_texts(shard.names.labels, live).cast(pa.large_string()),
            "shard": np.full(len(live), at, np.int64),
            "set": live,
            "size": sizes[live],
        }
    )


def _texts(texts: pa.Array | pa.ChunkedArray) -> pa.LargeStringArray:
    texts = texts.cast(pa.large_string())
    if isinstance(texts, pa.ChunkedArray):
        texts = pa.concat_arrays(texts.chunks) if texts.num_chunks else texts.combine_chunks()
    return texts


def _codes(texts: pa.DictionaryArray) -> np.ndarray:
    return pc.fill_null(texts.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
