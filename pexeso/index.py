"""The object a user holds: build an index, open it, search it."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import torch

from embed.protocol import Embedder
from embed.registry import load_embedder
from pexeso.advising.advised import Advised
from pexeso.advising.advisor import for_query
from pexeso.checking import check_index
from pexeso.contents import stored_grid_options
from pexeso.elsewhere import open_store_anywhere
from pexeso.engine.kernels import choose_kernel
from pexeso.engine.kernels.interface import KernelChoice
from pexeso.engine.stats import SearchStats
from pexeso.equal_text.searches import EqualTextSearches
from pexeso.errors import EmbedderError, InputError
from pexeso.evidence import Evidence
from pexeso.explanation import Explanation, locate_column
from pexeso.info import IndexInfo, index_info
from pexeso.join import Lake, join_match
from pexeso.joining.options import join_options
from pexeso.joining.tables import Joined
from pexeso.lake.catalog import Catalog
from pexeso.lake.normalise import Normaliser
from pexeso.opening import choose_device, require_searchable
from pexeso.options import (
    BuildOptions,
    SearchOptions,
    parse_bytes,
)
from pexeso.prepared import PreparedQuery, prepare
from pexeso.queries import QueryColumn, query_from_values
from pexeso.reranking import Opinion, reranked
from pexeso.results import Match, SearchResult
from pexeso.searching import Hit, PartitionScan, search_store
from pexeso.store.integrity import Problem
from pexeso.store.reader import Store
from pexeso.store.writer import tidy

if TYPE_CHECKING:
    from pexeso.updating import Update

_log = logging.getLogger(__name__)


class Index(Advised, EqualTextSearches):
    """An open index. Make one with `open_index` or `build_index`.

    Attributes
    ----------
    path : Path
    store : Store
        Manifest and memory-mapped files.
    device : torch.device
        Where searches run.

    Examples
    --------
    >>> import pexeso
    >>> index = pexeso.open_index("lake.pexeso")  # doctest: +SKIP
    >>> found = index.search(["Oslo", "Rome"], k=5)  # doctest: +SKIP
    """

    def __init__(
        self,
        store: Store,
        device: torch.device,
        memory_budget: int | None,
        kernel: KernelChoice,
        open_seconds: float,
        asked: Mapping[str, Any] | None = None,
    ) -> None:
        self.store, self.device = store, device
        self._asked = dict(asked or {})
        self.path = store.path
        self._open_seconds = open_seconds
        self._scan = PartitionScan(store, stored_grid_options(store.manifest), device, memory_budget, kernel)

    def __repr__(self) -> str:
        facts, n_partitions = self.store.manifest.facts, self.store.n_partitions
        partitions = f"{n_partitions} partition{'s' * (n_partitions != 1)}"
        return f"Index({str(self.path)!r}, {facts['values']:,} values, {partitions})"

    @cached_property
    def normaliser(self) -> Normaliser:
        """The normaliser that the lake went through, and every query goes through."""
        return Normaliser.from_json(self.store.manifest.options["normaliser"])

    @cached_property
    def embedder(self) -> Embedder:
        """The model that embedded the lake, and embeds every query."""
        embedder = load_embedder(self.store.embedder_folder)
        expected = self.store.manifest.fingerprints["embedder"]
        if embedder.fingerprint != expected:
            raise EmbedderError(
                f"The model in '{self.store.embedder_folder}' is not the one that the index was built with (fingerprint {embedder.fingerprint[:12]}, "
                f"expected {expected[:12]}). Restore the folder, or build the index again."
            )
        return embedder

    def prepared(self, values: Any) -> PreparedQuery:
        """Normalise and embed a query column, given as in `search`, just as the lake was."""
        return prepare(query_from_values(values), self.normaliser, self.embedder)

    def search(self, values: Any, *, exclude_self: bool = False, rerank: bool = False, **options: Any) -> SearchResult:
        """Find the columns that a query column can be joined with.

        Parameters
        ----------
        values : list, numpy.ndarray, pandas.Series, pyarrow.Array or QueryColumn
            The query column, one entry a row.
        exclude_self : bool
            Do not find the table that the query column was read from, where that lies in the lake.
        rerank : bool
            Order what is found by how likely it can be joined: see `pexeso.reranking`.
        **options
            See `pexeso.options.SearchOptions`: `max_distance` (`usual_max_distance`), `min_joinability` (0.6), `k`, `counts`, `exact`, `ignore_missing`, ...
            With ``auto=True``, or `min_precision`, thresholds that are not given are those that `advise` gives.

        Returns
        -------
        SearchResult
            Best first; equal counts by table, then column.

        Raises
        ------
        InputError
            When an option is out of its range.
        """
        return self.search_batch([values], exclude_self=exclude_self, rerank=rerank, **options)[0]

    def search_batch(
        self, queries: Iterable[Any], *, exclude_self: bool = False, rerank: bool = False, **options: Any
    ) -> list[SearchResult]:
        """Search with several query columns, sharing one pass over the partitions.

        Parameters
        ----------
        queries : iterable
            Each as `values` in `search`.
        exclude_self, rerank, **options
            As in `search`.

        Returns
        -------
        list of SearchResult
            In the order of the queries.
        """
        common = self.search_options(options)
        prepared, embed_seconds = [], []
        # All are looked at before any is embedded: one that is no column is refused at once.
        for column in [query_from_values(query) for query in queries]:
            started = time.perf_counter()
            prepared.append(self.prepared(column))
            embed_seconds.append(time.perf_counter() - started)
        each_options = [self._options_for(query.column, common, exclude_self) for query in prepared]
        found = self._search(prepared, each_options)
        results = []
        for query, chosen, seconds, (hits, stats) in zip(prepared, each_options, embed_seconds, found, strict=True):
            stats.add_seconds("open", self._open_seconds)
            stats.add_seconds("embed", seconds)
            opinions = None
            if rerank:
                hits, opinions = reranked(self._scan, query, hits, self.usual_max_distance, stats)
            results.append(self._result(query, chosen, hits, stats, opinions))
        return results

    def _search(
        self, queries: list[PreparedQuery], options: list[SearchOptions]
    ) -> list[tuple[list[Hit], SearchStats]]:
        """Search all partitions; `pexeso.distributed` does it in Spark's tasks."""
        return search_store(self._scan, queries, options)

    def explain(self, values: Any, table: str, column: str, **options: Any) -> Explanation:
        """Tell why a query column and one column of the lake match or not, however few rows do.

        Parameters
        ----------
        values
            The query column, as in `search`.
        table, column : str
            The column of the lake, as results name it.
        **options
            Of `search`: `max_distance`, `exact`, `ignore_missing`.

        Returns
        -------
        Explanation
            Pairs, joinability, and for each value without a match the nearest there is.

        Raises
        ------
        InputError
            When the lake has no such column, or it was left out of the index.
        """
        self._require_search_options(options)
        hit = locate_column(self.store, table, column)
        query = self.prepared(values)
        chosen = replace(
            self.search_options(self.advisor.pair_options(options, query, hit)), min_joinability=None, k=None
        )
        stats = SearchStats()
        evidence = self._evidence(query, chosen, [hit], stats)
        hit = replace(hit, matched=evidence.matched(0))
        match = self._matches(query, chosen, [hit], evidence)[0]
        return Explanation(query.describe(), chosen, match, match.unmatched())

    def _options_for(self, column: QueryColumn, options: SearchOptions, exclude_self: bool) -> SearchOptions:
        options = for_query(options, column)
        if not exclude_self:
            return options
        table = self.table_of(column.file) if column.file is not None else None
        if table is None:
            return options
        return replace(options, exclude_table=table)

    def _result(
        self,
        query: PreparedQuery,
        options: SearchOptions,
        hits: list[Hit],
        stats: SearchStats,
        opinions: Sequence[Opinion | None] | None,
    ) -> SearchResult:
        evidence = self._evidence(query, options, hits, stats)
        matches = self._matches(query, options, hits, evidence, opinions)
        return SearchResult(query.describe(), options, matches, stats, reranked=opinions is not None)

    def _evidence(self, query: PreparedQuery, options: SearchOptions, hits: list[Hit], stats: SearchStats) -> Evidence:
        return Evidence(self._scan, query, hits, options, stats, self.embedder, self.normaliser)

    def _matches(
        self,
        query: PreparedQuery,
        options: SearchOptions,
        hits: list[Hit],
        evidence: Evidence,
        opinions: Sequence[Opinion | None] | None = None,
    ) -> tuple[Match, ...]:
        total = query.total(options.ignore_missing)
        return tuple(
            Match(
                table=hit.table,
                column=hit.label,
                joinability=hit.matched / total if total else 0.0,
                matched=hit.matched,
                total=total,
                column_id=hit.column_id,
                _evidence=evidence,
                _place=place,
                _join=partial(self._join, query),
                opinion=None if opinions is None else opinions[place],
            )
            for place, hit in enumerate(hits)
        )

    def _join(
        self, query: PreparedQuery, match: Match, table: Any, on: str | int | None, to: str | None, **options: Any
    ) -> Joined:
        max_table_bytes = self.store.manifest.options["max_table_bytes"]
        lake = Lake(self.lake, self.normaliser, max_table_bytes, self._labels_of)
        return join_match(lake, query, match, table, on, join_options(options), to)

    def _labels_of(self, table: str) -> list[str]:
        columns = self.catalog.columns(["label", "position"], among=pa.array([table]))
        return columns.sort_by("position")["label"].to_pylist()

    @property
    def catalog(self) -> Catalog:
        """Every table and column of the lake, those left out with the reason: ``catalog.tables()`` and ``catalog.columns()`` are Arrow tables."""
        return Catalog(self.store.catalog_files)

    def info(self) -> IndexInfo:
        """Tell what is in the index: tables, columns, values, partitions, bytes, and what was left out and why."""
        return index_info(self.store)

    def append(self, lake: str | os.PathLike[str] | None = None, **options: Any) -> Update:
        """Add the tables of the lake that are new or have changed; this index then answers with them.

        Parameters
        ----------
        lake : path, optional
            Where the lake is now; by default where it was.
        **options
            See `pexeso.updating.append`: `delete_missing`, `compare`, `master`, `conf`, `progress`.
        """
        from pexeso.updating import append

        return self._updated(append(self.path, lake, **options))

    def delete(self, tables: Iterable[str]) -> Update:
        """Delete tables, by name, from the index; their files are not touched. See `pexeso.updating.delete`."""
        from pexeso.updating import delete

        return self._updated(delete(self.path, tables))

    def compact(self, **options: Any) -> Update:
        """Rewrite partitions that updates have left small or full of deleted columns.

        Parameters
        ----------
        **options
            See `pexeso.compacting.compact`: `everything`, `master`, `conf`, `progress`.
        """
        from pexeso.compacting import compact

        return self._updated(compact(self.path, **options))

    def refresh(self) -> bool:
        """Go over to the newest generation of the index; until then, an open index stays as it was when it was opened.

        Results had before keep their snapshot.

        Returns
        -------
        bool
            Whether there was a newer one.
        """
        newer = open_index(self.path, **self._asked)
        if newer.store.manifest.generation == self.store.manifest.generation:
            return False
        self.__dict__ = newer.__dict__
        return True

    def _updated(self, update: Update) -> Update:
        if self.refresh() and isinstance(self.path, Path):
            tidy(self.path)  # this index was the last to hold what the update made needless, unless others are open
        return update

    def check(self, progress: Callable[[int, int], None] | None = None) -> list[Problem]:
        """Compare every byte with its checksum, and what is in the files with what a search takes for granted.

        The list is empty, or of notes only, where all is well. See `pexeso.checking.check_index`.
        """
        return check_index(self.path, progress)


def open_index(
    path: str | os.PathLike[str],
    *,
    device: str = "auto",
    memory_budget: str | int | None = None,
    kernel: str = "auto",
) -> Index:
    """Open an index, read-only, in milliseconds: files are memory-mapped.

    Parameters
    ----------
    path : path
        What `build_index` wrote.
    device : {"auto", "cpu", "cuda"}
        ``"auto"`` takes a CUDA device where there is one, and else the CPU, which it says once (logger ``pexeso.index``, level INFO);
        ``"cuda:1"`` names one.
    memory_budget : str or int, optional
        Most bytes that a search may take, such as ``"8GiB"``: of a device for a partition and the pairs compared there, of the host
        for the pairs, where it takes 140 MiB however small the budget is. On the CPU partitions are memory-mapped and take none.
    kernel : {"auto", "compiled", "torch", "triton", "faiss"}
        What does the heavy steps; the answer does not depend on it. ``"auto"`` takes the fastest for the device.

    Returns
    -------
    Index

    Raises
    ------
    IndexNotFoundError, IndexVersionError, IndexCorruptError
        When there is no index that this version can search.
    DeviceError
        When the device asked for is not there.
    """
    started = time.perf_counter()
    store = open_store_anywhere(path)
    require_searchable(store)
    budget = None if memory_budget is None else parse_bytes(memory_budget)
    chosen = choose_device(device)
    asked = {"device": device, "memory_budget": memory_budget, "kernel": kernel}
    return Index(store, chosen, budget, choose_kernel(kernel, chosen), time.perf_counter() - started, asked)


def build_index(
    lake: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    master: str | None = None,
    conf: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
    **options: Any,
) -> Index:
    """Index a lake of tables; runs on Spark, which needs Java 17 or newer (one comes with the package).

    Parameters
    ----------
    lake : path
        A folder of CSV, TSV, Parquet and JSON-lines tables, searched through all its sub-folders; or one table.
    path : path
        The index folder to write.
    overwrite : bool
        Replace an index that is there; it stays in use until the new one is complete.
    master : str, optional
        ``"local[*]"`` by default, or the address of a Spark cluster.
    conf : mapping, optional
        Spark settings.
    progress : callable, optional
        Called with the name of each stage as it starts; see `pexeso.pipeline.STAGES`.
    **options
        See `pexeso.options.BuildOptions`: `model` ("hashing"), `dimensions`, `metric`, `n_partitions`, `rules`, `parts` (for joins by equal text), ...

    Returns
    -------
    Index

    Raises
    ------
    InputError
        When an option is out of its range.
    LakeError, OutputError, SparkError, EmbedderError, MissingPackageError
        See `pexeso.errors`.
    """
    unknown = sorted(set(options) - set(BuildOptions.__dataclass_fields__))
    if unknown:
        raise InputError(f"Build options are {', '.join(BuildOptions.__dataclass_fields__)}. Got {', '.join(unknown)}.")
    chosen = BuildOptions(**options)
    from pexeso.pipeline import build

    build(lake, path, chosen, overwrite=overwrite, master=master, conf=conf, progress=progress)
    return open_index(path)
