"""Edges by values alike: each column of the lake is a query column of a shared pass.

Values and vectors are those that the index holds; no table is read, and no value embedded. Equal
texts have equal vectors, so that the answer is that of a search with the column itself. The size of
a column is that of the catalog: values that the model knows nothing about count, and match nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.joins.graph.equal_values import Edges
from pexeso.joins.graph.nodes import Folded, Nodes
from pexeso.options import SearchOptions
from pexeso.results.copies import ColumnSets, foldable_sizes, sets_of_hits
from pexeso.results.query import EXACT_KINDS, QueryColumn
from pexeso.results.ranking import Hit
from pexeso.semantic.batch_file import MAX_CHUNK_QUERIES
from pexeso.semantic.encoded_query import EncodedQuery
from pexeso.semantic.executor import Executor
from pexeso.semantic.loader import loader_of
from pexeso.semantic.open_index import OpenIndex
from pexeso.semantic.partition_loader import PartitionLoader
from pexeso.store.id_ranges import merge_ranges, ranges_of
from pexeso.store.texts import take_texts

MAX_CHUNK_VALUES = 1 << 16
"""A pass ends with the column that takes its values above this."""

_TYPES = {"table": pa.large_string(), "label": pa.large_string(), "kind": pa.string()}
_PLACED = pa.table(
    {name: pa.array([], pa.int64()) for name in ("column_id", "partition", "position")}
)


@dataclass(frozen=True, eq=False)
class ValuesAlike:
    """Columns of an index that are compared by values alike.

    Attributes
    ----------
    ids, partitions, positions : int64 (n,)
        The number of each in the index, and where its values are.
    """

    loader: PartitionLoader
    executor: Executor
    nodes: Nodes
    ids: np.ndarray
    partitions: np.ndarray
    positions: np.ndarray
    exact: np.ndarray
    folded: Folded
    copies: pa.Table

    @classmethod
    def of(cls, opened: OpenIndex, executor: Executor, *, folds: bool) -> ValuesAlike:
        """Return the columns of an open index as nodes; arguments as of `EqualValues.of`."""
        rows = _columns(opened)
        texts = [_one_array(rows[name]) for name in ("table", "label")]
        totals, filled = (rows[name].to_numpy() for name in ("n_distinct", "filled"))
        nodes = Nodes(*texts, totals, totals == filled)
        ids, *where = (rows[name].to_numpy() for name in ("column_id", "partition", "position"))
        exact = pc.is_in(rows["kind"], pa.array(EXACT_KINDS)).to_numpy()
        if not folds:
            folded = Folded.none(len(nodes))
            copies = folded.copies(nodes)
            return cls(opened.loader, executor, nodes, ids, *where, exact, folded, copies)
        folded = Folded.of(_sets_of(opened, nodes, ids, *where))
        indices, copies = folded.kept, folded.copies(nodes)
        loader = _without(opened, np.delete(ids, indices))
        ids, *where, exact = (array[indices] for array in (ids, *where, exact))
        return cls(loader, executor, nodes.take(indices), ids, *where, exact, folded, copies)

    def edges(
        self,
        min_joinability: float,
        max_distance: float,
        limit: int | None,
        passes: int = 1,
        *,
        by_kind: bool = False,
    ) -> Iterator[Edges]:
        """Yield all edges, at most so many of each left node."""
        order = np.argsort(self.ids)
        common = SearchOptions(max_distance, min_joinability, k=limit)
        for part in self._chunks(passes):
            tables = self.nodes.tables.take(pa.array(part, pa.int64())).to_pylist()
            options = [
                replace(common, exclude_table=table, **({"max_distance": 0.0} if exact else {}))
                for table, exact in zip(tables, by_kind & self.exact[part], strict=True)
            ]
            queries = [self._query(row) for row in part]
            answers = self.executor.search(self.loader, queries, options)
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


def _one_array(texts: pa.ChunkedArray) -> pa.LargeStringArray:
    return pa.concat_arrays([pa.array([], pa.large_string()), *texts.chunks])


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
    nodes: Nodes,
    ids: np.ndarray,
    partitions: np.ndarray,
    positions: np.ndarray,
) -> ColumnSets:
    """Read the values of the columns that can have copies."""
    chosen = np.flatnonzero(foldable_sizes(nodes.totals))
    hits = [
        Hit(*row, table=None, label=None)
        for row in zip(
            ids[chosen].tolist(),
            nodes.totals[chosen].tolist(),
            partitions[chosen].tolist(),
            positions[chosen].tolist(),
            strict=True,
        )
    ]
    some = sets_of_hits(opened.loader, hits)
    sizes = np.zeros(len(nodes), np.int64)
    sizes[chosen] = some.sizes
    return ColumnSets(np.concatenate([[0], np.cumsum(sizes)]), some.members)
