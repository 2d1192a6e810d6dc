"""Columns of an index, and pairs of columns of different tables that may join by equal values.

Two columns of n and m distinct tokens (`pexeso.lake.tokens`), of which s are shared, are a pair if

(a) their names are equal but for case and separators, and s >= `NAMESAKE_PERCENT` percent of the
    smaller of n and m, s at least 1; or
(b) one contains the other, s >= `CONTAINED_PERCENT` percent of n or of m, at least `MIN_TELLING` of
    the shared tokens are telling, and one of the two is nearly a key: its distinct tokens are at
    least `KEY_PERCENT` percent of the rows of its table.

A token is telling if at most `max_columns_of` columns have it and it is no number of at most four
digits before its point. Small numbers are in columns of all sorts: each table with numbered rows
would join each other one by them. Such keys join by rule (a).

Of a column that has more partners than `limit`, those are kept that share most tokens: by rule (a),
and by rule (b) of those that contain it. A pair is kept if one of the two keeps it. What a limit
leaves out is counted.

All pairs of a lake are found without comparing all columns: a column that has k of the n tokens of
another has one of any n - k + 1 of them, so the rarest are looked up (prefix filter), at most
`max_columns_of` columns each; candidates are counted exactly. Pairs by rule (a) are counted within
columns of one name.

Memory: `LakeColumns`, and 24 bytes for each pair that is kept, in each shard and of all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.engine.lists import offsets_of, ranges
from pexeso.errors import IndexCorruptError
from pexeso.runtime.compiled import compiled
from pexeso.sets.overlap.index import OverlapIndex
from pexeso.sets.part.open import Shard, require_part
from pexeso.store.arrays import take_texts

if TYPE_CHECKING:
    from pexeso.semantic.open_index import OpenIndex

loops = compiled("pexeso.sets.loops")

NAMESAKE_PERCENT = 10
CONTAINED_PERCENT = 80
KEY_PERCENT = 90
MIN_TELLING = 3

MAX_PARTNERS = 64  # Partners that a column keeps by each rule: those that share most tokens

DAMAGED_LISTS = (
    "The posting lists of an overlap index do not belong together: it was changed or cut short. "
    "Restore it from a copy, or build it again."
)

_POSITION = r"^#[0-9]+$"
_SHORT = r"^-?[0-9]{1,4}([.][0-9]*)?$"
_SEPARATORS = r"[^\p{L}\p{N}]+"


@dataclass(frozen=True, eq=False)
class LakeColumns:
    """The n columns of an index that have token sets and are not deleted, by table, then label."""

    shards: tuple[Shard, ...]
    tables: pa.LargeStringArray
    labels: pa.LargeStringArray
    # int64 (n,): its shard, and the number of its set there
    shard_of: np.ndarray
    set_of: np.ndarray
    sizes: np.ndarray  # int64 (n,): distinct tokens
    n_rows: np.ndarray  # int64 (n,): rows of its table, 0 where the catalog does not know them

    def __len__(self) -> int:
        return len(self.sizes)

    @classmethod
    def of_index(cls, opened: OpenIndex) -> LakeColumns:
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
        named = pa.concat_tables(
            [_EMPTY.empty_table(), *(_named(at, shard) for at, shard in enumerate(shards))]
        )
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
        first, end = 0, len(self)
        while first < end:
            middle = (first + end) // 2
            first, end = (
                (middle + 1, end) if self.tables[middle].as_py() < table else (first, middle)
            )
        if first == len(self) or self.tables[first].as_py() != table:
            return first, first
        numbers = self.table_numbers
        return first, int(numbers.searchsorted(numbers[first], "right"))

    def column(self, table: str, label: str) -> int:
        first, end = self._range_of(table)
        at = pc.index(self.labels[first:end], label).as_py()
        return -1 if at < 0 else first + at

    def name(self, column: int) -> tuple[str, str]:
        return self.tables[column].as_py(), self.labels[column].as_py()

    def tokens(self, column: int) -> pa.LargeStringArray:
        at = int(self.shard_of[column])
        index = self.indexes[at]
        numbers = index.suffix(int(self.set_of[column]), 0)
        positions = self._text_of_token[at][numbers]
        return take_texts(index.dictionary.texts, positions).cast(pa.large_string())

    @cached_property
    def _text_of_token(self) -> tuple[np.ndarray, ...]:
        return tuple(map(text_of_token, self.indexes))


def comparable_names(labels: pa.Array) -> pa.Array:
    """Return names in lower case without separators, null where a column has no name."""
    names = pc.replace_substring_regex(pc.utf8_lower(labels), _SEPARATORS, "")
    unnamed = pc.or_(pc.match_substring_regex(labels, _POSITION), pc.equal(names, ""))
    return pc.if_else(unnamed, pa.scalar(None, names.type), names)


def are_short_numbers(tokens: pa.Array) -> np.ndarray:
    """Return which tokens are numbers of at most four digits before their point: bool (t,)."""
    return pc.match_substring_regex(tokens, _SHORT).to_numpy(zero_copy_only=False)


def text_of_token(index: OverlapIndex) -> np.ndarray:
    """Return the position of each token in the dictionary's texts: (u,) integers."""
    numbers = np.asarray(index.dictionary.numbers)
    if len(numbers) and (numbers.min() < 0 or numbers.max() >= index.n_tokens):
        raise IndexCorruptError(
            "The dictionary of an overlap index names a token that is not there: it was changed. "
            "Restore it from a copy, or build it again."
        )
    positions = np.zeros(index.n_tokens, np.int32 if index.n_tokens < 2**31 else np.int64)
    positions[numbers] = np.arange(len(numbers), dtype=positions.dtype)
    return positions


def _require_sound_offsets(index: OverlapIndex) -> None:
    """Refuse an index whose offsets lead out of it: loops follow them unchecked."""
    for offsets, n in (
        (index.token_offsets, len(index.list_sets)),
        (index.set_offsets, len(index.set_tokens)),
    ):
        offsets = np.asarray(offsets)
        if offsets[0] != 0 or offsets[-1] != n or (np.diff(offsets) < 0).any():
            raise IndexCorruptError(DAMAGED_LISTS)


_EMPTY = pa.schema(
    [("table", pa.large_string()), ("label", pa.large_string())]
    + [(name, pa.int64()) for name in ("shard", "set", "size")]
)


def _named(at: int, shard: Shard) -> pa.Table:
    n_sets = len(shard.names)
    live = np.setdiff1d(np.arange(n_sets), shard.deleted)
    sizes = np.diff(np.asarray(shard.overlap.set_offsets)).astype(np.int64)
    columns = [take_texts(texts, live) for texts in (shard.names.tables, shard.names.labels)]
    numbers = [pa.array(array) for array in (np.full(len(live), at), live, sizes[live])]
    columns = [text.cast(pa.large_string()) for text in columns]
    return pa.Table.from_arrays([*columns, *numbers], schema=_EMPTY)


def _texts(texts: pa.Array | pa.ChunkedArray) -> pa.LargeStringArray:
    texts = texts.cast(pa.large_string())
    if isinstance(texts, pa.ChunkedArray):
        texts = pa.concat_arrays(texts.chunks) if texts.num_chunks else texts.combine_chunks()
    return texts


def _codes(texts: pa.DictionaryArray) -> np.ndarray:
    return pc.fill_null(texts.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)


def max_columns_of(n_columns: int) -> int:
    """Return the most columns that have a telling token, of a lake with so many columns.

    It grows as the square root, so that what is looked up for a column stays little.
    """
    return 5 * (math.isqrt(n_columns - 1) + 1) if n_columns else 0


@dataclass(frozen=True, eq=False)
class ColumnPairs:
    """Pairs of columns, each once, with the distinct tokens that both have: int64 (p,) each."""

    left: np.ndarray
    right: np.ndarray
    shared: np.ndarray

    def __len__(self) -> int:
        return len(self.left)


@dataclass(frozen=True)
class OwnColumn:
    """A column that is compared with those of a lake."""

    table: str
    label: str
    tokens: pa.Array
    n_rows: int


def own_columns(columns: LakeColumns, tables: Sequence[str]) -> list[OwnColumn]:
    """Return the columns of tables of the lake, to be compared with those of other tables."""
    return [
        OwnColumn(*columns.name(column), columns.tokens(column), int(columns.n_rows[column]))
        for column in columns.rows_of(tables).tolist()
    ]


def pairs_from(columns: LakeColumns, own: Sequence[OwnColumn]) -> ColumnPairs:
    scratch = [_Scratch.of(len(of_set)) for of_set in columns.of_set]
    names = columns.name_numbers_of([column.label for column in own]).tolist()
    texts = [column.tokens.cast(pa.large_string()) for column in own]
    tokens = pa.concat_arrays([pa.array([], pa.large_string()), *texts])
    numbers = [index.find(tokens) for index in columns.indexes]
    frequencies = np.zeros(len(tokens), np.int64)
    for at in range(len(columns.shards)):
        frequencies += _live_lengths(columns, at, numbers[at])
    telling = (frequencies <= max_columns_of(len(columns))) & ~are_short_numbers(tokens)
    partners, end = [(np.empty(0, np.int64),) * 2], 0
    for column, name in zip(own, names, strict=True):
        part = slice(end, end := end + len(column.tokens))
        known = [shard_numbers[part] for shard_numbers in numbers]
        partners.append(_partners(columns, column, name, known, telling[part], scratch))
    right, shared = map(np.concatenate, zip(*partners, strict=True))
    left = np.repeat(np.arange(len(own)), [len(right) for right, _ in partners[1:]])
    return ColumnPairs(left, right, shared)


@dataclass(frozen=True, eq=False)
class _Scratch:
    counts: np.ndarray
    telling: np.ndarray
    met: np.ndarray

    @classmethod
    def of(cls, n_sets: int) -> _Scratch:
        return cls(np.zeros(n_sets, np.int32), np.zeros(n_sets, np.int32), np.empty(n_sets, int))


def _partners(
    columns: LakeColumns,
    own_column: OwnColumn,
    name: int,
    numbers: list[np.ndarray],
    telling: np.ndarray,
    scratch: list[_Scratch],
) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns that a given one pairs with, ascending, and the tokens that both have.

    `numbers` has the numbers of its tokens in each shard.
    """
    triples = [
        _counted(columns, at, numbers[at], telling, scratch[at])
        for at in range(len(columns.shards))
    ]
    none = (np.empty(0, np.int64),) * 3
    right, shared, n_telling = map(np.concatenate, zip(none, *triples, strict=True))
    others = columns.table_numbers[right] != columns.table_number(own_column.table)
    others &= (columns.name_numbers[right] == name) | (n_telling >= MIN_TELLING)
    right, shared, n_telling = (array[others] for array in (right, shared, n_telling))
    sizes, n_tokens = columns.sizes[right], len(telling)
    same = columns.name_numbers[right] == name
    namesakes = same & (100 * shared >= NAMESAKE_PERCENT * np.minimum(sizes, n_tokens))
    keys = _is_key(sizes, columns.n_rows[right]) | _is_key(n_tokens, own_column.n_rows)
    usable = keys & (n_telling >= MIN_TELLING)
    within = usable & (100 * shared >= CONTAINED_PERCENT * n_tokens)
    around = usable & ~within & (100 * shared >= CONTAINED_PERCENT * sizes)
    selected = np.zeros(len(right), bool)
    for chosen in (namesakes, within, around):
        at = np.flatnonzero(chosen)
        selected[at[np.lexsort([right[at], sizes[at], -shared[at]])][:MAX_PARTNERS]] = True
    order = np.flatnonzero(selected)
    order = order[np.argsort(right[order])]
    return right[order], shared[order]


def _live_lengths(columns: LakeColumns, at: int, numbers: np.ndarray) -> np.ndarray:
    index, positions = columns.indexes[at], np.flatnonzero(numbers >= 0)
    offsets = np.asarray(index.token_offsets)
    begins = offsets[numbers[positions]].astype(np.int64)
    sizes = offsets[numbers[positions] + 1] - begins
    lengths = np.zeros(len(numbers), np.int64)
    lengths[positions] = sizes
    if len(columns.shards[at].deleted):
        sets = np.asarray(index.list_sets)[ranges(begins, sizes)]
        n_deleted = offsets_of(np.isin(sets, columns.shards[at].deleted))
        lengths[positions] -= np.diff(n_deleted[offsets_of(sizes)])
    return lengths


def _counted(
    columns: LakeColumns, at: int, numbers: np.ndarray, telling: np.ndarray, scratch: _Scratch
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the columns of a shard that share tokens, how many, and how many telling ones."""
    index, mask = columns.indexes[at], numbers >= 0
    offsets = np.asarray(index.token_offsets)
    begins, ends = (offsets[numbers[mask] + step].astype(np.int64) for step in (0, 1))
    lists = np.asarray(index.list_sets)
    n = loops.count_by_lists(
        begins, ends, telling[mask], lists, scratch.counts, scratch.telling, scratch.met
    )
    if n < 0:
        raise IndexCorruptError(DAMAGED_LISTS)
    sets = scratch.met[:n].copy()
    shared, n_telling = scratch.counts[sets].astype(int), scratch.telling[sets].astype(int)
    scratch.counts[sets] = scratch.telling[sets] = 0
    partners = columns.of_set[at][sets]
    live = partners >= 0
    return partners[live], shared[live], n_telling[live]


def _is_key(sizes: np.ndarray, n_rows: np.ndarray) -> np.ndarray:
    return (np.asarray(n_rows) > 0) & (100 * np.asarray(sizes) >= KEY_PERCENT * np.asarray(n_rows))
