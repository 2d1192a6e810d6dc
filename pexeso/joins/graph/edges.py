"""Edges of a join graph, by equal values and by values alike.

By values alike each column of the lake is a query column of a shared pass. Values and vectors are
those that the index holds; no table is read, and no value embedded. Equal texts have equal vectors,
so that the answer is that of a search with the column itself. The size of a column is that of the
catalog: values that the model knows nothing about count, and match nothing.

Equal values are found for all columns of a lake in one pass. A column that has k of the n tokens of
another has one of any n - k + 1 of them, so the rarest are looked up (prefix filter), and
candidates are counted exactly. What a limit leaves out of each column is dropped before the next is
looked at. Memory: about 100 bytes for each of `CHUNK_TOKENS` tokens; 24 bytes for each pair of
their columns that is kept, in each shard and of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.engine.copies import ColumnSets, fold, foldable_sizes
from pexeso.engine.lists import damage_made_plain, offsets_of, ranges
from pexeso.engine.vector_space import count_needed
from pexeso.errors import IndexCorruptError
from pexeso.options import SearchOptions
from pexeso.results.query import EXACT_KINDS, Hit, QueryColumn
from pexeso.runtime.compiled import compiled
from pexeso.runtime.ranges import merge_ranges, ranges_of
from pexeso.semantic.batch_file import MAX_CHUNK_QUERIES
from pexeso.semantic.encoded_query import EncodedQuery
from pexeso.semantic.executor import Executor
from pexeso.semantic.open_index import OpenIndex
from pexeso.semantic.partition_loader import PartitionLoader, loader_of, sets_of_hits
from pexeso.sets.lake_columns import DAMAGED_LISTS, LakeColumns
from pexeso.sets.overlap.dictionary import find_texts
from pexeso.sets.overlap.index import OverlapIndex
from pexeso.store.arrays import take_texts, take_wide

loops = compiled("pexeso.joins.loops")

# Tokens of columns that are taken at a time; a larger column is taken by itself.
CHUNK_TOKENS = 1 << 21


def chunks(sizes: np.ndarray, max_tokens: int | None = None) -> Iterator[slice]:
    """Yield runs of columns with some `CHUNK_TOKENS` tokens together, or at most so many."""
    max_tokens = CHUNK_TOKENS if max_tokens is None else min(max_tokens, CHUNK_TOKENS)
    ends = np.cumsum(sizes)
    first = 0
    while first < len(sizes):
        before = ends[first - 1] if first else 0
        last = int(np.searchsorted(ends, before + max_tokens, "right"))
        last = max(last, first + 1)
        yield slice(first, last)
        first = last


@dataclass(frozen=True, eq=False)
class LakeTokens:
    """Numbers that are the same in all shards.

    common: tuple of integer arrays, one a shard, the common number of each token of the shard;
    by_common: tuple of integer arrays, one a shard, its tokens in the order of their common
    numbers; frequencies: int32 (t,), the columns that hold each token; deleted ones do not count.
    """

    columns: LakeColumns
    common: tuple[np.ndarray, ...]
    by_common: tuple[np.ndarray, ...]
    frequencies: np.ndarray

    @classmethod
    def of(cls, columns: LakeColumns) -> LakeTokens:
        indexes = columns.indexes
        common, n_tokens = _common_numbers(indexes)
        frequencies = np.zeros(n_tokens, np.int32)
        for index, of_set, numbers in zip(
            indexes, columns.of_set, common or [slice(None)] * len(indexes), strict=True
        ):
            frequencies[numbers] += _live(index, of_set >= 0)
        by_common = tuple(
            np.argsort(array, kind="stable").astype(array.dtype, copy=False) for array in common
        )
        return cls(columns, tuple(common), by_common, frequencies)

    def of_columns(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the tokens of some columns, one after the other, by common numbers."""
        sizes = self.columns.sizes[chosen]
        offsets, tokens = offsets_of(sizes), np.empty(int(sizes.sum()), np.int64)
        for at, index in enumerate(self.columns.indexes):
            positions = np.flatnonzero(self.columns.shard_of[chosen] == at)
            if len(positions):
                begins = np.asarray(index.set_offsets)[self.columns.set_of[chosen[positions]]]
                numbers = np.asarray(index.set_tokens)[ranges(begins, sizes[positions])]
                if len(numbers) and (numbers.min() < 0 or numbers.max() >= index.n_tokens):
                    raise IndexCorruptError(DAMAGED_LISTS)
                numbers = self.common[at][numbers] if self.common else numbers
                tokens[ranges(offsets[positions], sizes[positions])] = numbers
        return offsets, tokens

    def containers(
        self, chosen: np.ndarray, needed: np.ndarray, limit: int
    ) -> Iterator[tuple[np.ndarray, ...]]:
        """Yield, shard by shard, columns, those that contain them, and the tokens shared.

        Of a shard the `limit` that share most are kept; the first three arrays are empty.

        needed: int64 (c,), how many tokens of each chosen column one that contains it has.
        """
        yield (np.empty(0, np.int64),) * 3
        offsets, numbers = self.of_columns(chosen)
        sizes = self.columns.sizes[chosen]
        owner = np.repeat(np.arange(len(chosen)), sizes)
        numbers = numbers[np.lexsort([numbers, self.frequencies[numbers], owner])]
        for at, index in enumerate(self.columns.indexes):
            of_tokens, of_sets = map(np.asarray, (index.token_offsets, index.set_offsets))
            wide = np.result_type(of_tokens, of_sets)
            is_sound, *triple = loops.find_containers(
                chosen,
                offsets,
                self.in_shard(at, numbers),
                np.maximum(sizes - needed + 1, 0),
                needed,
                of_tokens.astype(wide, copy=False),
                np.asarray(index.list_sets),
                of_sets.astype(wide, copy=False),
                np.asarray(index.set_tokens),
                self.columns.of_set[at],
                self.columns.table_numbers,
                self.columns.sizes,
                limit,
            )
            if not is_sound:
                raise IndexCorruptError(DAMAGED_LISTS)
            yield tuple(triple)

    def in_shard(self, at: int, tokens: np.ndarray) -> np.ndarray:
        """Return the shard's own numbers of tokens, -1 where it lacks one: int64."""
        if not self.common:
            return tokens
        ordered = self.common[at][self.by_common[at]]
        positions = np.minimum(np.searchsorted(ordered, tokens), max(len(ordered) - 1, 0))
        if not len(ordered):
            return np.full(len(tokens), -1, np.int64)
        numbers = self.by_common[at][positions].astype(np.int64)
        return np.where(ordered[positions] == tokens, numbers, -1)


def _live(index: OverlapIndex, live: np.ndarray) -> np.ndarray:
    if live.all():
        return np.diff(np.asarray(index.token_offsets)).astype(np.int32)
    counts = np.empty(index.n_tokens, np.int32)
    offsets, lists = np.asarray(index.token_offsets), np.asarray(index.list_sets)
    if not loops.live_frequencies(offsets, lists, live, counts):
        raise IndexCorruptError(DAMAGED_LISTS)
    return counts


def _common_numbers(indexes: Sequence[OverlapIndex]) -> tuple[list[np.ndarray], int]:
    """Return common numbers by shard, none for a single one, and how many there are."""
    if len(indexes) < 2:
        return [], sum(index.n_tokens for index in indexes)
    kind = np.int32 if sum(index.n_tokens for index in indexes) < 2**31 else np.int64
    numbers: list[np.ndarray] = []
    n = 0
    for at, index in enumerate(indexes):
        common = np.full(index.n_tokens, -1, kind)
        own_numbers = np.asarray(index.dictionary.numbers)
        for before in range(at):
            other = indexes[before]
            positions = find_texts(other.dictionary.texts, index.dictionary.texts)
            matches = np.flatnonzero(positions >= 0)
            other_numbers = np.asarray(other.dictionary.numbers)[positions[matches]]
            common[own_numbers[matches]] = numbers[before][other_numbers]
        new = np.flatnonzero(common < 0)
        common[new] = n + np.arange(len(new))
        n += len(new)
        numbers.append(common)
    return numbers, n


@dataclass(frozen=True, eq=False)
class Nodes:
    """The n columns of a lake between which edges are looked for, by table, then name.

    totals: int64 (n,), distinct values; unique: bool (n,); n_copies: int64 (n,), copies that each
    represents besides itself.
    """

    tables: pa.LargeStringArray
    labels: pa.LargeStringArray
    totals: np.ndarray
    unique: np.ndarray
    n_copies: np.ndarray

    def __len__(self) -> int:
        return len(self.totals)

    def take(self, rows: np.ndarray) -> Nodes:
        at = pa.array(rows, pa.int64())
        names = [take_wide(names, at) for names in (self.tables, self.labels)]
        return Nodes(*names, self.totals[rows], self.unique[rows], self.n_copies[rows])


def fold_nodes(
    names: Sequence[pa.LargeStringArray],
    totals: np.ndarray,
    unique: np.ndarray,
    sets: ColumnSets | None,
) -> tuple[np.ndarray, Nodes, pa.Table]:
    """Return the columns that are no copies: their rows, and as nodes.

    The third is ``table, column, of_table, of_column`` of the others, which are copies by `sets`.
    """
    rows = np.arange(len(totals))
    first_of = rows if sets is None else fold(sets)
    n_copies = np.bincount(first_of, minlength=len(rows)) - 1
    nodes = Nodes(*names, totals, unique, n_copies)
    kept, folded = np.flatnonzero(first_of == rows), np.flatnonzero(first_of != rows)
    copies, first = nodes.take(folded), nodes.take(first_of[folded])
    columns = [copies.tables, copies.labels, first.tables, first.labels]
    table = pa.table(columns, names=["table", "column", "of_table", "of_column"])
    return kept, nodes.take(kept), table


# Left and right nodes and the values that match, int64 (e,), by left node and those that match
# most first; and how many left nodes are done.
Edges = tuple[np.ndarray, np.ndarray, np.ndarray, int]


@dataclass(frozen=True, eq=False)
class EqualValues:
    columns: LakeColumns
    nodes: Nodes
    copies: pa.Table

    @classmethod
    def of(cls, columns: LakeColumns, missing: np.ndarray, *, folds: bool) -> EqualValues:
        unique = (missing >= 0) & (columns.sizes == columns.n_rows - missing)
        sets = None
        if folds:
            sizes = foldable_sizes(columns.sizes)
            _, members = LakeTokens.of(columns).of_columns(np.flatnonzero(sizes))
            sets = ColumnSets(offsets_of(sizes), members)
        names = columns.tables, columns.labels
        rows, nodes, copies = fold_nodes(names, columns.sizes, unique, sets)
        return cls(take_columns(columns, rows), nodes, copies)

    def edges(self, min_joinability: float, limit: int | None) -> Iterator[Edges]:
        return edges_between(self.columns, min_joinability, limit, 0, len(self.columns))


def edges_between(
    columns: LakeColumns,
    min_joinability: float,
    limit: int | None,
    begin: int,
    end: int,
    tokens: LakeTokens | None = None,
) -> Iterator[Edges]:
    """Yield the edges from some columns to all, of each the `limit` that share most values."""
    needed = count_needed(min_joinability, columns.sizes)
    tokens = LakeTokens.of(columns) if tokens is None else tokens
    max_edges = np.iinfo(np.int64).max if limit is None else limit
    for part in chunks(columns.sizes[begin:end]):
        chosen = np.arange(begin + part.start, begin + part.stop)
        triples = tokens.containers(chosen, needed[chosen], max_edges)
        left, right, shared = map(np.concatenate, zip(*triples, strict=True))
        order = np.lexsort([right, -shared, left])
        rank = np.arange(len(order)) - np.searchsorted(left[order], left[order])
        best = order[rank < max_edges]
        yield left[best], right[best], shared[best], part.stop


def missing_cells(columns: LakeColumns, opened: OpenIndex) -> np.ndarray:
    """Return for each column how many rows have no value there, -1 where that is not known."""
    rows = opened.catalog.columns(["table", "label", "n_missing"])
    numbered_columns = pa.table(
        {"table": columns.tables, "label": columns.labels, "at": pa.array(np.arange(len(columns)))}
    )
    typed = rows.cast(pa.schema([*list(numbered_columns.schema)[:2], ("n_missing", pa.int64())]))
    joined = numbered_columns.join(typed, ["table", "label"], join_type="left outer").sort_by("at")
    return pc.fill_null(joined["n_missing"], -1).to_numpy()


def take_columns(columns: LakeColumns, rows: np.ndarray) -> LakeColumns:
    if len(rows) == len(columns):
        return columns
    at = pa.array(rows, pa.int64())
    arrays = {
        name: getattr(columns, name)[rows] for name in ("shard_of", "set_of", "sizes", "n_rows")
    }
    return replace(
        columns, tables=columns.tables.take(at), labels=columns.labels.take(at), **arrays
    )


# A pass ends with the column that takes its values above this.
MAX_CHUNK_VALUES = 1 << 16

_TYPES = {"table": pa.large_string(), "label": pa.large_string(), "kind": pa.string()}
_PLACED = pa.table(
    {name: pa.array([], pa.int64()) for name in ("column_id", "partition", "position")}
)


@dataclass(frozen=True, eq=False)
class ValuesAlike:
    """Columns of an index that are compared by values alike.

    ids, partitions, positions: int64 (n,), the number of each in the index, and where its values
    are.
    """

    loader: PartitionLoader
    executor: Executor
    nodes: Nodes
    ids: np.ndarray
    partitions: np.ndarray
    positions: np.ndarray
    exact: np.ndarray
    copies: pa.Table

    @classmethod
    def of(cls, opened: OpenIndex, executor: Executor, *, folds: bool) -> ValuesAlike:
        rows = _columns(opened)
        none = pa.array([], pa.large_string())
        names = [pa.concat_arrays([none, *rows[name].chunks]) for name in ("table", "label")]
        totals, filled = (rows[name].to_numpy() for name in ("n_distinct", "filled"))
        ids, *where = (rows[name].to_numpy() for name in ("column_id", "partition", "position"))
        exact = pc.is_in(rows["kind"], pa.array(EXACT_KINDS)).to_numpy()
        sets = _sets_of(opened, totals, ids, *where) if folds else None
        kept, nodes, copies = fold_nodes(names, totals, totals == filled, sets)
        loader = _without(opened, np.delete(ids, kept)) if folds else opened.loader
        ids, *where, exact = (array[kept] for array in (ids, *where, exact))
        return cls(loader, executor, nodes, ids, *where, exact, copies)

    def edges(
        self,
        min_joinability: float,
        max_distance: float,
        limit: int | None,
        passes: int = 1,
        *,
        by_kind: bool = False,
    ) -> Iterator[Edges]:
        order = np.argsort(self.ids)
        common = SearchOptions(max_distance, min_joinability, k=limit)
        for part in self._chunks(passes):
            tables = self.nodes.tables.take(pa.array(part, pa.int64())).to_pylist()
            options = [
                replace(common, exclude_table=table, **({"max_distance": 0.0} if exact else {}))
                for table, exact in zip(tables, by_kind & self.exact[part], strict=True)
            ]
            queries = [self._query(row) for row in part]
            answers = self.executor(self.loader, queries, options)
            left = np.repeat(np.array(part, np.int64), [len(hits) for hits, _ in answers])
            ids, matched = (
                np.array([getattr(hit, name) for hits, _ in answers for hit in hits], np.int64)
                for name in ("column_id", "matched")
            )
            yield left, order[np.searchsorted(self.ids[order], ids)], matched, part[-1] + 1

    def _chunks(self, passes: int) -> Iterator[list[int]]:
        chunk: list[int] = []
        n_values = 0
        for row, size in enumerate(self.nodes.totals.tolist()):
            chunk.append(row)
            n_values += size
            if len(chunk) == MAX_CHUNK_QUERIES * passes or n_values > MAX_CHUNK_VALUES * passes:
                yield chunk
                chunk, n_values = [], 0
        if chunk:
            yield chunk

    def _query(self, row: int) -> EncodedQuery:
        loader, number = self.loader, int(self.partitions[row])
        partition = loader.mapped(number)
        values = np.asarray(partition.column_lists[int(self.positions[row])])
        texts = take_texts(loader.store.texts(number, "values"), values).cast(pa.string())
        return EncodedQuery(
            QueryColumn(texts),
            texts,
            pa.array(np.arange(len(texts))),
            loader.space.stored(partition, values),
            np.ones(len(texts), np.int64),
            n_unstored=int(self.nodes.totals[row]) - len(texts),
        )


def _without(opened: OpenIndex, ids: np.ndarray) -> PartitionLoader:
    """Return the partitions of an index as if some columns of it were deleted."""
    manifest, options = opened.store.manifest, opened.options
    deleted = merge_ranges(manifest.deleted_columns, ranges_of(np.sort(ids)))
    store = replace(opened.store, manifest=replace(manifest, deleted_columns=tuple(deleted)))
    return loader_of(store, options.device, options.memory_budget, options.kernel)


def _columns(opened: OpenIndex) -> pa.Table:
    """Return the columns that have values in a partition, by table, then name.

    ``table, label, column_id, n_distinct, kind, filled, partition, position``.
    """
    store, parts = opened.store, []
    for number in range(store.n_partitions):
        ids, deleted = np.asarray(store.array(number, "column_ids")), store.deleted_mask(number)
        filled = np.diff(opened.loader.mapped(number).column_lists.offsets) > 0
        positions = np.flatnonzero(filled if deleted is None else filled & ~deleted)
        at = [ids[positions], np.full(len(positions), number, np.int64), positions]
        parts.append(pa.table(at, names=["column_id", "partition", "position"]))
    names = ["table", "label", "column_id", "n_distinct", "kind", "n_rows", "n_missing"]
    rows = opened.catalog.columns(names)
    rows = rows.filter(pc.is_valid(rows["column_id"]))
    filled = pc.subtract(rows["n_rows"], rows["n_missing"])
    rows = rows.append_column("filled", filled).drop_columns(["n_rows", "n_missing"])
    schema = pa.schema([(name, _TYPES.get(name, pa.int64())) for name in rows.column_names])
    placed = pa.concat_tables([_PLACED, *parts])
    columns = rows.cast(schema).join(placed, "column_id", join_type="inner")
    order = [("table", "ascending"), ("label", "ascending")]
    return columns.sort_by(order)


def _sets_of(
    opened: OpenIndex,
    totals: np.ndarray,
    ids: np.ndarray,
    partitions: np.ndarray,
    positions: np.ndarray,
) -> ColumnSets:
    chosen = np.flatnonzero(foldable_sizes(totals))
    hits = [
        Hit(*row)
        for row in zip(
            ids[chosen].tolist(),
            totals[chosen].tolist(),
            partitions[chosen].tolist(),
            positions[chosen].tolist(),
            strict=True,
        )
    ]
    with damage_made_plain("the index"):
        some = sets_of_hits(opened.loader, hits)
    sizes = np.zeros(len(totals), np.int64)
    sizes[chosen] = some.sizes
    return ColumnSets(offsets_of(sizes), some.members)
