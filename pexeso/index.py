"""The object a user holds: build an index, open it, search it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, overload

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.build.parts.metadata import build_options, models_of, require_searchable
from pexeso.build.visible import open_visible
from pexeso.errors import InputError
from pexeso.joins.graph.graphs import ColumnGraph, EdgeStream, GraphOptions, stream_edges
from pexeso.joins.match_details import MatchDetails
from pexeso.lake.catalog import Catalog
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.normalise.rules import require_reading
from pexeso.lake.readers.options import AS_FOUND, ReadingOptions
from pexeso.options import (
    DEFAULT_COLUMNS,
    DEFAULT_MIN_CONTAINMENT,
    METHODS,
    SearchOptions,
    parse_bytes,
)
from pexeso.results.matches import Explanation, Match, SearchResult
from pexeso.results.query import QueryColumn, query_from_values, require_columns
from pexeso.runtime.checks import flags, require_choice
from pexeso.runtime.formatting import Shown, facts_table, many, shown
from pexeso.runtime.progress import CountedProgress, counted_bar, with_bar
from pexeso.semantic.executor import Executor, search_store
from pexeso.semantic.open_index import OpenIndex, OpenOptions
from pexeso.semantic.search import SemanticSearch
from pexeso.store.io.location import Location
from pexeso.store.local.reader import Store
from pexeso.store.local.writer import tidy

if TYPE_CHECKING:
    import torch

    from embed.protocol import Embedder
    from pexeso.acquisition.results import AcquisitionResult
    from pexeso.acquisition.searches import AcquisitionSearches
    from pexeso.build.diagnostics.info import IndexInfo, ReasonListing
    from pexeso.build.report import Update
    from pexeso.build.updates import Added
    from pexeso.composite.key_explanation import KeyExplanation
    from pexeso.composite.results import CompositeResult
    from pexeso.composite.searches import CompositeSearches
    from pexeso.semantic.combined import CombinedResult
    from pexeso.semantic.encoded_query import EncodedQuery
    from pexeso.semantic.thresholds.advice import Advice
    from pexeso.semantic.thresholds.advisor import Advisor
    from pexeso.semantic.thresholds.labels import ColumnLabel, ValueLabel
    from pexeso.sets.part.open import Shard
    from pexeso.sets.results import TokenSearchResult
    from pexeso.sets.searches import TokenSearches
    from pexeso.store.integrity import Problem
    from pexeso.transform.search.results import TransformSearchResult
    from pexeso.transform.search.searches import TransformSearches

    AnySearchResult = SearchResult | TokenSearchResult | TransformSearchResult | CombinedResult


METHOD_OPTIONS = {
    "overlap": ("k",),
    "containment": ("k", "min_joinability", "verify"),
    "transform": ("k", "min_joinability", "max_candidates", "seed"),
}
"""Options of each method that does not take those of semantic search."""


@dataclass(frozen=True)
class Snapshot:
    """The searches of one snapshot by one model; replaced as a whole, so no call sees two of them.

    What searches in another way than semantically is loaded when it is first needed.
    """

    opened: OpenIndex
    executor: Executor = search_store
    _by_model: dict[str, Snapshot] = field(default_factory=dict)

    @cached_property
    def semantic(self) -> SemanticSearch:
        return SemanticSearch(self.opened, self.executor, MatchDetails)

    @cached_property
    def equal_text(self) -> TokenSearches:
        from pexeso.sets.searches import TokenSearches

        return TokenSearches(self.opened)

    @cached_property
    def composite(self) -> CompositeSearches:
        from pexeso.composite.searches import CompositeSearches

        return CompositeSearches(self.opened, self.executor)

    @cached_property
    def transform(self) -> TransformSearches:
        from pexeso.transform.search.searches import TransformSearches

        return TransformSearches(self.opened)

    @cached_property
    def acquisition(self) -> AcquisitionSearches:
        from pexeso.acquisition.searches import AcquisitionSearches

        return AcquisitionSearches(self.opened)

    def stream_graph(
        self, options: GraphOptions, *, passes: int = 1, progress: CountedProgress | None = None
    ) -> EdgeStream:
        """Begin to find all pairs of columns that join; see `pexeso.joins.graph.graphs`."""
        edges_on = None
        if (spark := getattr(self.executor, "spark", None)) is not None:
            from pexeso.joins.graph.spark_tasks import edges_on_spark

            edges_on = edges_on_spark(spark)
        return stream_edges(
            self.opened, options, self.executor, passes=passes, edges_on=edges_on, progress=progress
        )

    def by_model(self, model: str) -> Snapshot:
        if not isinstance(model, str):
            raise InputError(f"A model is named by a text, such as 'hashing'. Got {shown(model)}.")
        if model not in self._by_model:
            opened = OpenIndex(self.opened.whole, replace(self.opened.options, model=model))
            opened.loader  # noqa: B018  a missing model, device or kernel is refused here
            self._by_model[model] = Snapshot(opened, self.executor)
        return self._by_model[model]

    def with_readings(self, rules: Collection[str]) -> Snapshot:
        for rule in rules:
            require_reading("A rule by which codes are read", rule)
        if not rules:
            return self
        options = replace(self.opened.options, readings=tuple(rules))
        return Snapshot(replace(self.opened, options=options), self.executor)

    def require_known(self, table: str) -> None:
        """Refuse a table that a search was to leave out, and that the index does not know.

        To be called after the search, which has mapped the names of columns: the catalog, which
        has tables without columns too, takes as long to read as a small lake to search.
        """
        if self._has_columns(table):
            return
        catalog = self.opened.catalog
        if not catalog.tables(["table"], among=pa.array([table])).num_rows:
            raise InputError(f"exclude_table: {catalog.why_unknown(table, self.opened.lake)}")

    def _has_columns(self, table: str) -> bool:
        if getattr(self.executor, "spark", None) is not None:
            return False  # tasks have mapped the names, not this process
        loader = self.opened.loader
        for number in range(loader.store.n_partitions):
            has = pc.equal(loader.names(number).sound_tables, table).to_numpy(zero_copy_only=False)
            deleted = loader.store.deleted_mask(number)
            if (has if deleted is None else has & ~deleted).any():
                return True
        return False


class Index(Shown):
    """An open index. Make one with `open_index` or `build_index`.

    It can be copied, and sent to another process: that one opens the same path with the same
    options.

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

    def __init__(self, opened: OpenIndex, executor: Executor = search_store) -> None:
        self._snapshot = Snapshot(opened, executor)

    def _summary(self) -> str:
        values, partitions = self.store.manifest.facts["values"], self.store.n_partitions
        counts = f"{many(values, 'value')}, {many(partitions, 'partition')}"
        return f"{str(self.path)!r}, {counts}"

    def _shown(self) -> tuple[list[str], list[list[Any]]]:
        # The lake's name alone: its path is that of the machine that built the index.
        lake = PurePosixPath(str(self.lake)).name
        facts = {"lake": lake, "models": self.models, "parts": self.parts}
        return facts_table(facts)

    def __reduce__(self) -> tuple[Any, ...]:
        path = self.path.absolute() if isinstance(self.path, Path) else self.path
        return _reopened, (path, self._opened.options, self._snapshot.executor)

    def __copy__(self) -> Index:
        # A snapshot never changes, so that copies share it and what was learnt of it.
        return self._with(self._snapshot)

    def _with(self, snapshot: Snapshot) -> Index:
        index = Index(self._opened)
        index._snapshot = snapshot
        return index

    def __deepcopy__(self, memo: dict[int, Any]) -> Index:
        return copy(self)

    def _with_executor(self, executor: Executor) -> Index:
        """Return this index with its searches run by another executor, now and after updates."""
        return Index(self._opened, executor)

    @property
    def _opened(self) -> OpenIndex:
        return self._snapshot.opened

    @property
    def store(self) -> Store:
        """Manifest and memory-mapped files of what is searched: one snapshot, by one model."""
        return self._opened.store

    @property
    def path(self) -> Path | Location:
        """Where the index is."""
        return self.store.path

    @property
    def device(self) -> torch.device:
        """Where searches run."""
        return self._opened.device

    @property
    def normaliser(self) -> Normaliser:
        """The normaliser that the lake went through, and every query goes through."""
        return self._opened.normaliser

    @property
    def embedder(self) -> Embedder:
        """The model that embedded the lake, and embeds every query."""
        return self._opened.embedder

    @property
    def models(self) -> tuple[str, ...]:
        """The models that the index holds; the first is searched by unless another is named."""
        return models_of(self._opened.whole.manifest)

    def with_model(self, model: str) -> Index:
        """Return the same snapshot of the index, searched by another of its models.

        Raises
        ------
        InputError
            The index does not hold the model.

        Examples
        --------
        >>> import pexeso
        >>> index = pexeso.open_index("lake.pexeso")  # doctest: +SKIP
        >>> index.with_model("fasttext").search(["Oslo", "Rome"])  # doctest: +SKIP
        """
        return self._with(self._snapshot.by_model(model))

    def with_readings(self, *rules: str) -> Index:
        """Return the same snapshot, whose joins and explanations read codes by further rules.

        Raises
        ------
        InputError
            There is no such rule.

        Examples
        --------
        >>> index = pexeso.open_index("lake.pexeso")  # doctest: +SKIP
        >>> index.with_readings("leading-zeros").explain(["1001"], "t", "fips")  # doctest: +SKIP
        """
        return self._with(self._snapshot.with_readings(rules))

    @property
    def lake(self) -> Path | Location:
        """The folder, or the place on another storage, that the index was built from."""
        return self._opened.lake

    @property
    def as_of(self) -> str | None:
        """The state in which tables that keep their history are indexed; None: the last one."""
        return self._opened.as_of

    @property
    def catalog(self) -> Catalog:
        """Every table and column of the lake, those left out with the reason.

        ``catalog.tables()`` and ``catalog.columns()`` are Arrow tables.
        """
        return self._opened.catalog

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts that this index has besides semantic search, such as ``"overlap"``."""
        return self._opened.parts

    @property
    def shards(self) -> list[Shard]:
        """The open token sets of this index."""
        return self._opened.shards

    @property
    def usual_max_distance(self) -> float:
        """The `max_distance` of a search that is given none: by the sort of the model."""
        return self._opened.usual_max_distance

    @property
    def advisor(self) -> Advisor:
        """What advises on this index, and keeps what it has learnt while the index is open."""
        return self._snapshot.semantic.advisor

    def table_of(self, file: str | os.PathLike[str]) -> str | None:
        """Return the table name of a file in this lake, or None if it lies outside the lake."""
        return self._opened.table_of(file)

    def encode(self, values: Any, *, on: str | int | None = None) -> EncodedQuery:
        """Normalise and embed a query column, given as in `search`, just as the lake was."""
        return self._opened.encode(query_from_values(values, on=on))

    def search_options(self, given: Mapping[str, Any]) -> SearchOptions:
        """Return search options with the defaults of this index, or advised by ``auto=True``."""
        return self._snapshot.semantic.search_options(given)

    @overload
    def search(
        self,
        values: Any,
        *,
        method: Literal["semantic"] = "semantic",
        exclude_self: bool = False,
        rerank: bool = True,
        fold_copies: bool = True,
        **options: Any,
    ) -> SearchResult: ...
    @overload
    def search(
        self, values: Any, *, method: Literal["overlap", "containment"], **options: Any
    ) -> TokenSearchResult: ...
    @overload
    def search(
        self, values: Any, *, method: Literal["transform"], **options: Any
    ) -> TransformSearchResult: ...
    @overload
    def search(self, values: Any, *, method: Literal["all"], **options: Any) -> CombinedResult: ...
    @overload
    def search(self, values: Any, *, method: str, **options: Any) -> AnySearchResult: ...

    def search(
        self,
        values: Any,
        *,
        on: str | int | None = None,
        method: str = "semantic",
        exclude_self: bool = False,
        rerank: bool = True,
        fold_copies: bool = True,
        **options: Any,
    ) -> AnySearchResult:
        """Find the columns that a query column can be joined with.

        Parameters
        ----------
        values : column or table
            The query column, one entry a row: a list, tuple, iterator or set, a NumPy array, a
            Series of pandas or polars, an Arrow array. Or a table with the column `on`: see
            `pexeso.results.query.query_from_values`.
        on : str or int, optional
            The column of a table, by its name or by its position from 0.
        method : {"semantic", "overlap", "containment", "transform", "all"}
            By values alike; by equal ones; by a learned program that writes the values of one
            column in the form of the other's; or all of these.
        exclude_self : bool
            Do not find the table that the query column was read from, where that lies in the lake.
        rerank : bool
            Order what semantic search finds by the similarity of all values
            (`pexeso.semantic.similarity`), else by joinability.
        fold_copies : bool
            Fold columns of the same values, or nearly the same, into one: the others are its
            `copies` (`pexeso.results.copies`).
        **options
            See `pexeso.options.SearchOptions`: `max_distance` (`usual_max_distance`; 0 for columns
            of dates, numbers or codes), `min_joinability` (0.5), `joinability_of` ("values"; or
            "rows"), `k` (20; ``"all"`` for every column that meets the thresholds), `counts`,
            `exact`, ... A number `k` without `min_joinability` gives the k best, however few values
            match. With ``auto=True``, or `min_precision`, thresholds that are not given are those
            that `advise` gives. Other methods take `k` and `min_joinability`; by programs also
            `max_candidates`, columns that are learned from (100).

        Returns
        -------
        SearchResult
            Best first; equal ones by joinability, then table and column. ``n_more`` says how
            many more there are, and ``hints()``, where there is none, what came near. By another
            method a `TokenSearchResult`, `TransformSearchResult` or `CombinedResult`.

        Raises
        ------
        InputError
            When an option is out of its range.
        """
        column = query_from_values(values, on=on)
        if method == "semantic":
            return self._search([column], exclude_self, rerank, fold_copies, options)[0]
        require_choice("method", method, METHODS)
        # A copy keeps its snapshot, also where another thread refreshes this index meanwhile.
        snapshot, excluded = copy(self), options.get("exclude_table")
        options |= flags(exclude_self=exclude_self, fold_copies=fold_copies)
        if method == "all":
            from pexeso.semantic.combined import search_combined

            result: AnySearchResult = search_combined(snapshot, column, **options)
        else:
            result = snapshot._search_by_method(column, method, options)
        if excluded is not None:
            snapshot._snapshot.require_known(excluded)
        return result

    def _search_by_method(
        self, column: QueryColumn, method: str, options: dict[str, Any]
    ) -> AnySearchResult:
        allowed = METHOD_OPTIONS[method]
        if unknown := sorted(set(options) - {*allowed, "exclude_self", "fold_copies"}):
            raise InputError(
                f"A search by the method {method} has the options {', '.join(allowed)}. Got "
                f"{', '.join(unknown)}."
            )
        if method == "transform":
            return self.transform_searches.search(column, **options)
        if method == "overlap":
            return self.overlap(column, **options)
        if "min_joinability" in options:
            options["min_containment"] = options.pop("min_joinability")
        return self.contain(column, **options)

    def search_batch(
        self,
        queries: Iterable[Any],
        *,
        exclude_self: bool = False,
        rerank: bool = True,
        fold_copies: bool = True,
        **options: Any,
    ) -> list[SearchResult]:
        """Search with several query columns, sharing one pass over the partitions.

        Parameters
        ----------
        queries : iterable
            Each a column, as `values` in `search`; no table.
        exclude_self, rerank, fold_copies, **options
            As in `search`.

        Returns
        -------
        list of SearchResult
            In the order of the queries.
        """
        return self._search(require_columns(queries), exclude_self, rerank, fold_copies, options)

    def _search(
        self,
        queries: Iterable[Any],
        exclude_self: bool,
        rerank: bool,
        fold_copies: bool,
        options: dict[str, Any],
    ) -> list[SearchResult]:
        snapshot = self._snapshot  # another thread may refresh this index meanwhile
        chosen = flags(exclude_self=exclude_self, rerank=rerank, fold_copies=fold_copies)
        results = snapshot.semantic.search_batch(queries, given=options, **chosen)
        if (table := options.get("exclude_table")) is not None:
            snapshot.require_known(table)
        return results

    def explain(
        self, values: Any, table: str, column: str, *, on: str | int | None = None, **options: Any
    ) -> Explanation:
        """Explain why a query column and one column of the lake match, however few values do.

        Parameters
        ----------
        values, on
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
        query = query_from_values(values, on=on)
        return self._snapshot.semantic.explain(query, table, column, options)

    def advise(
        self,
        values: Any = None,
        table: str | None = None,
        column: str | None = None,
        *,
        on: str | int | None = None,
        min_precision: float | None = None,
        min_joinability: float | None = None,
    ) -> Advice:
        """Advise on thresholds from the distances in the index, without labels.

        ``search(values, auto=True)`` uses this advice.

        Parameters
        ----------
        values, on : optional
            The query column, as in `search`: of few values, more must match than chance would.
        table, column : str, optional
            A column of the lake that `values` are to be joined with: then the advice is about the
            distance alone.
        min_precision : float, optional
            In (0, 1], the share that must be right, as estimated: of the columns found, 0.9 by
            default; of the rows joined with one column, any by default.
        min_joinability : float, optional
            In (0, 1], where it is settled which share of distinct values makes a column
            joinable.

        Returns
        -------
        Advice
            ``max_distance``, ``min_joinability``, ``why``, ``evidence``; the same for the same
            index. What it rests on is learnt once, in seconds, while the index is open, from at
            most 32,768 of its values.

        Raises
        ------
        InputError
            An argument is out of its range, or `table`, `column` and `values` do not come together;
            the lake has no such column.

        Examples
        --------
        >>> import pexeso
        >>> index = pexeso.open_index("lake.pexeso")  # doctest: +SKIP
        >>> index.advise().max_distance  # doctest: +SKIP
        0.31
        """
        query = None if values is None else query_from_values(values, on=on)
        from pexeso.semantic.thresholds.advisor import advise  # brings scipy

        return advise(
            self._opened, self.advisor, query, table, column, min_precision, min_joinability
        )

    def tune(
        self,
        labels: str | os.PathLike[str] | Iterable[ValueLabel] | Iterable[ColumnLabel] | None = None,
        *,
        min_precision: float | None = None,
        reading: ReadingOptions = AS_FOUND,
    ) -> Advice:
        """Choose thresholds from labelled pairs, and from `advise` where these are too few to tell.

        Parameters
        ----------
        labels : path, or iterable of ValueLabel or of ColumnLabel, optional
            A table as `pexeso.semantic.thresholds.labels.read_labels` reads it, or its rows, both
            answers among them; by default the pairs of the lake's columns that were judged.
        min_precision : float, optional
            In (0, 1], that must hold on the labels; by default F1 on them is to be as high as can
            be.
        reading : ReadingOptions
            How to read a file of labels, where it is delimited text; what is not set is found.

        Returns
        -------
        Advice
            Pairs of values choose `max_distance` alone; `min_joinability` is then that of `advise`.

        Raises
        ------
        InputError, TableReadError
            The labels cannot be used or read, or name a column that does not exist.

        Examples
        --------
        >>> import pexeso
        >>> index = pexeso.open_index("lake.pexeso")  # doctest: +SKIP
        >>> index.tune("labels.csv").max_distance  # doctest: +SKIP
        0.34
        """
        from pexeso.semantic.thresholds.tuning import tune

        return tune(self._opened, self.advisor, labels, min_precision, reading)

    def overlap(
        self,
        values: Any,
        *,
        on: str | int | None = None,
        k: int | str = DEFAULT_COLUMNS,
        exclude_self: bool = False,
        fold_copies: bool = True,
    ) -> TokenSearchResult:
        """Find the k columns that share most distinct values with a query column, as equal texts.

        Values are compared as `pexeso.lake.tokens` says: 1, "1" and 1.0 are equal, "01" is another;
        case counts.

        Parameters
        ----------
        values, on
            As in `search`; columns of numbers too.
        k : int or "all"
            From 1 on; ``"all"``: every column that shares a value.
        exclude_self : bool
            Do not find the table that the query column was read from, where that lies in the lake.
        fold_copies : bool
            As in `search`.

        Returns
        -------
        TokenSearchResult
            Exact, best first; equal overlaps by table, then column.

        Raises
        ------
        InputError
            When an option is out of its range, or the index has no part for this: the message says
            how to add it.

        Examples
        --------
        >>> import pexeso
        >>> index = pexeso.open_index("lake.pexeso")  # doctest: +SKIP
        >>> index.overlap([101, 102, 205], k=3).to_pandas()  # doctest: +SKIP
        """
        query = query_from_values(values, on=on)
        return self._snapshot.equal_text.overlap(query, k, exclude_self, fold_copies)

    def overlap_batch(
        self,
        queries: Iterable[Any],
        *,
        k: int | str = DEFAULT_COLUMNS,
        exclude_self: bool = False,
        fold_copies: bool = True,
        device: str | None = None,
    ) -> list[TokenSearchResult]:
        """Search with several query columns as `overlap` does, and count posting lists once.

        Parameters
        ----------
        queries : iterable
            Each as `values` in `overlap`.
        k, exclude_self, fold_copies
            As in `overlap`.
        device : str, optional
            Of torch, such as ``"cuda"``; by default that of the index. The posting lists are held
            there: 4 bytes a pair of column and value.

        Returns
        -------
        list of TokenSearchResult
            In the order of the queries; the same answers as those of `overlap`.

        Raises
        ------
        InputError
            As for `overlap`.
        DeviceError
            The device is not there, or its memory does not suffice.
        """
        return self._snapshot.equal_text.overlap_batch(
            require_columns(queries), k, exclude_self, device, fold_copies
        )

    def contain(
        self,
        values: Any,
        *,
        on: str | int | None = None,
        min_containment: float = DEFAULT_MIN_CONTAINMENT,
        verify: bool = True,
        k: int | str = DEFAULT_COLUMNS,
        exclude_self: bool = False,
        fold_copies: bool = True,
    ) -> TokenSearchResult:
        """Find the columns that contain at least a share of a query column's distinct values.

        Values are compared as equal texts.

        Parameters
        ----------
        values, on, exclude_self, fold_copies
            As in `overlap`.
        min_containment : float
            In (0, 1], inclusive.
        verify : bool
            Of an index with bands: count the values of each candidate. Without it what bands find
            is a guess from signatures, and its containment an estimate.
        k : int or "all"
            The k best; ``"all"``: every column that has enough.

        Returns
        -------
        TokenSearchResult
            Best first. The answer is exact; where an index has the part bands, and they are read, a
            column that has enough is missed with a probability of at most 0.02.

        Raises
        ------
        InputError
            As for `overlap`.
        """
        return self._snapshot.equal_text.contain(
            query_from_values(values, on=on), min_containment, verify, k, exclude_self, fold_copies
        )

    def search_composite(
        self, table: Any, columns: str | Iterable[str] | None = None, **options: Any
    ) -> CompositeResult:
        """Find the tables that a table can be joined with on several columns at once, exactly.

        Parameters
        ----------
        table : table, str or path
            In memory, as `pexeso.lake.frames.tables.frame_of` takes it. A text is
            ``FILE:COLUMN,COLUMN`` or, with `columns`, a file.
        columns : str or iterable of str, optional
            Two to ten columns of the key, by name or as ``#3`` by position; with ``~`` behind it
            (``"country~"``) the values of a column match similar ones, in columns of the lake that
            semantic search holds: see `pexeso.composite.similar_keys`.
        **options
            `k` (20; ``"all"``), `min_joinability` (None: any), `exclude_self` (False); `reading`,
            a `pexeso.ReadingOptions`, says how a file of delimited text is read;
            `max_distance` of columns marked ``~`` (`usual_max_distance`); without such a column
            `row_filter` ("auto"), which changes the time alone: see
            `pexeso.composite.search.search_keys`.

        Returns
        -------
        CompositeResult
            Tables by the number of distinct keys that they join in the best choice of columns,
            equal ones by name. Cells are compared as `pexeso.lake.tokens` says.

        Raises
        ------
        InputError
            An option is out of its range, the columns are those of no composite key, or the index
            has no part for this: the message says how to add it.

        Examples
        --------
        >>> import pexeso
        >>> index = pexeso.open_index("lake.pexeso")  # doctest: +SKIP
        >>> index.search_composite("gdp.csv", ["country", "year"])[0].fan_out  # doctest: +SKIP
        """
        return self._snapshot.composite.search(table, columns, **options)

    @property
    def transform_searches(self) -> TransformSearches:
        """What searches for columns that join after a program."""
        return self._snapshot.transform

    def explain_composite(
        self,
        table: Any,
        columns: str | Iterable[str] | None,
        lake_table: str,
        lake_columns: str | Iterable[str] | None = None,
        *,
        reading: ReadingOptions = AS_FOUND,
    ) -> KeyExplanation:
        """Explain why a key of several columns is joined with a table of the lake or not.

        Parameters
        ----------
        table, columns, reading
            As in `search_composite`.
        lake_table : str
            As results name it; it is read whole. The index needs no part for this.
        lake_columns : str or iterable of str, optional
            One for each column of the key; by default those that join most keys.

        Raises
        ------
        InputError
            The columns make no key, or the index knows no such table.
        TableReadError, PlaceError
            The table cannot be read.
        """
        from pexeso.composite.key_evidence import explain_keys

        pair = self._snapshot.composite.pair(table, columns, lake_table, reading=reading)
        return explain_keys(pair, lake_columns)

    def acquire(self, have: Any, want: Any = None, **options: Any) -> AcquisitionResult:
        """Find tables to buy; see `pexeso.acquisition.searches.AcquisitionSearches`."""
        return self._snapshot.acquisition.acquire(have, want, **options)

    @with_bar(partial(counted_bar, "comparing", unit=" columns"))
    def graph(self, *, progress: CountedProgress | None = None, **options: Any) -> ColumnGraph:
        """Find all pairs of columns of different tables of the lake that join, in one pass.

        Parameters
        ----------
        progress : callable, optional
            Called with the columns that are compared, and how many there are.
        **options
            `method`, `min_joinability`, `max_distance`, `k`, `fold_copies`: see
            `pexeso.joins.graph.graphs.GraphOptions`.
        """
        return ColumnGraph.of(self.stream_graph(progress=progress, **options))

    def duckdb(self, connection: Any, matches: Match | Iterable[Match]) -> tuple[str, ...]:
        """Register what a search found; see `pexeso.joins.sql.register_found`."""
        from pexeso.joins.sql import register_found

        return register_found(connection, matches)

    def stream_graph(
        self, *, passes: int = 1, progress: CountedProgress | None = None, **options: Any
    ) -> EdgeStream:
        """Find the edges of `graph` while they are read; see `pexeso.joins.graph.graphs`."""
        return self._snapshot.stream_graph(
            GraphOptions.of(options), passes=passes, progress=progress
        )

    def add_parts(self, parts: Iterable[str] = ("overlap",), **options: Any) -> Added:
        """Add parts to this index; see `pexeso.build.updates.add_parts`."""
        from pexeso.build.updates import add_parts

        added = add_parts(self._writable, parts, **options)
        self.refresh()
        return added

    def add_model(self, model: str, **options: Any) -> Update:
        """Add a model to this index; see `pexeso.build.updates.add_model`."""
        from pexeso.build.updates import add_model

        return self._updated(add_model(self._writable, model, **options))

    def info(self) -> IndexInfo:
        """Return counts of tables, columns, values and bytes, and of what was left out and why."""
        from pexeso.build.diagnostics.info import index_info

        return index_info(self._opened.whole)

    def left_out(self) -> ReasonListing:
        """List every file and column that is not in the index, those of one reason together.

        Rows have ``table``, ``column`` and ``reason``; see `ReasonListing`.
        """
        from pexeso.build.diagnostics.info import list_reasons

        return list_reasons(self._opened.whole)

    def notes(self) -> ReasonListing:
        """List what was repaired, or guessed, while tables were read; see `left_out`."""
        from pexeso.build.diagnostics.info import list_reasons

        return list_reasons(self._opened.whole, notes=True)

    def append(self, lake: str | os.PathLike[str] | None = None, **options: Any) -> Update:
        """Add the tables of the lake that are new or have changed; searches then find them.

        Parameters
        ----------
        lake : path, optional
            Where the lake is now; by default where it was.
        **options
            See `pexeso.build.updates.append`: `delete_missing`, `compare`, `engine`, `master`,
            `conf`, `progress`.
        """
        from pexeso.build.updates import append

        return self._updated(append(self._writable, lake, **options))

    def delete(self, tables: Iterable[str]) -> Update:
        """Delete tables, by name, from the index; their files are not touched."""
        from pexeso.build.updates import delete

        return self._updated(delete(self._writable, tables))

    def compact(self, **options: Any) -> Update:
        """Merge small partitions, purge deleted columns, and weigh words again.

        Parameters
        ----------
        **options
            See `pexeso.build.updates.compact`: `everything`, `engine`, `master`, `conf`,
            `progress`.
        """
        from pexeso.build.updates import compact

        return self._updated(compact(self._writable, **options))

    def refresh(self) -> bool:
        """Switch to the newest generation of the index; return whether there was a newer one.

        Until then, an open index stays as it was when it was opened; results keep their snapshot.
        """
        if self._opened.whole.is_newest():
            return False
        newer = _open(self.path, self._opened.options)
        # An index that was built again in the same place begins with the first generation.
        if newer.whole.manifest.snapshot == self._opened.whole.manifest.snapshot:
            return False
        self._snapshot = Snapshot(newer, self._snapshot.executor)
        return True

    def _updated(self, update: Update) -> Update:
        if self.refresh() and isinstance(self.path, Path):
            # This index was the last to hold what the update made needless, unless others are open.
            tidy(self.path)
        return update

    def check(self, progress: Callable[[int, int], None] | None = None) -> list[Problem]:
        """Check every byte against its checksum, and the contents for what a search assumes."""
        from pexeso.build.diagnostics.info import check_index

        return check_index(self._writable, progress=progress)

    @property
    def _writable(self) -> Path | Location:
        """Where the index is, for what needs all of it; refused where a part may be seen."""
        if self.store.rights is not None:
            raise InputError("This needs all of the index, of which a part may be seen (visible).")
        return self.path


def open_index(
    path: str | os.PathLike[str],
    *,
    device: str = "auto",
    memory_budget: str | int | None = None,
    kernel: str = "auto",
    model: str | None = None,
    keep_files: bool = False,
    visible: str | os.PathLike[str] | Mapping[str, Iterable[str] | None] | None = None,
) -> Index:
    """Open an index, read-only, in milliseconds: files are memory-mapped.

    Parameters
    ----------
    path : path
        What `build_index` wrote.
    device : {"auto", "cpu", "cuda"}
        ``"auto"`` takes a CUDA device where there is one, ``"cuda:1"`` names one. The logger
        ``pexeso.index`` says once what is searched on the CPU instead, and why.
    memory_budget : str or int, optional
        Most bytes that a search may take, such as ``"8GiB"``: of a device for partitions, as many
        as fit, and the pairs compared there (by default four fifths of what is free), of the host
        for pairs of vectors, at least 140 MiB. On the CPU lexical models take none: refused.
    kernel : {"auto", "compiled", "torch", "triton"}
        What does the heavy steps; the answer does not depend on it. ``"auto"`` takes the fastest
        for the device.
    model : str, optional
        Of the models that the index holds, the one to search by; by default the first.
    keep_files : bool
        Let what is open be searched even when the index is deleted: see `Store.links`.
    visible : path or mapping, optional
        What may be seen: a CSV file with the columns ``table`` and ``column``, or for each table a
        list of its columns, None for all. What PEXESO_VISIBLE hides stays hidden.

    Raises
    ------
    InputError
        The index does not hold the model, or the budget cannot be kept.
    IndexNotFoundError, IndexVersionError, IndexCorruptError
        When there is no index that this version can search.
    DeviceError
        When the device asked for is not there.
    """
    budget = None if memory_budget is None else parse_bytes(memory_budget)
    options = OpenOptions(device, budget, kernel, model, keep_files, visible=visible)
    return Index(_open(path, options))


def _open(path: str | os.PathLike[str] | Location, options: OpenOptions) -> OpenIndex:
    """Open the newest snapshot of an index.

    A device or kernel that is not available is refused immediately.
    """
    started = time.perf_counter()
    store = open_visible(path, keep_files=options.keep_files, visible=options.visible)
    require_searchable(store)
    opened = OpenIndex(store, options, time.perf_counter() - started)
    opened.value_key  # noqa: B018  without its key an index answers nothing
    if replace(options, keep_files=False, visible=None) != OpenOptions():
        opened.loader  # noqa: B018  a model, device or kernel that is not there is refused here
    return opened


def _reopened(path: Path | Location, options: OpenOptions, executor: Executor) -> Index:
    return Index(_open(path, options), executor)


def build_index(
    lake: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    engine: Literal["auto", "local", "spark"] = "auto",
    master: str | None = None,
    conf: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
    preset: Literal["published"] | None = None,
    **options: Any,
) -> Index:
    """Index a lake of tables.

    Parameters
    ----------
    lake : path
        A folder of tables (CSV, Excel, SQLite, JSON, Parquet ...), searched through all its
        sub-folders; or one table.
    path : path
        The index folder to write.
    overwrite : bool
        Replace an existing index; it stays in use until the new one is complete.
    engine : {"auto", "local", "spark"}
        ``"local"`` runs the tasks in processes of this machine, one for each processor; memory is
        about four times the largest partition or file for each. ``"spark"`` runs the same tasks on
        Spark, to the same index. ``"auto"`` is Spark where `master` or `conf` is given or a session
        is active, else local.
    master : str, optional
        The Spark master: ``"local[*]"`` by default, or the address of a cluster.
    conf : mapping, optional
        Spark settings.
    progress : callable, optional
        Called with the name of each stage as it starts; see `pexeso.build.job.stage_names`.
    preset : {"published"}, optional
        The system of the PEXESO paper.
    **options
        See `pexeso.options.BuildOptions`: `model` ("lexical"), `dimensions`, `metric`,
        `n_partitions`, `rules`, `parts` (for joins by equal values), ...

    Returns
    -------
    Index

    Raises
    ------
    InputError
        When an option is out of its range, or contradicts the preset.
    LakeError, OutputError, SparkError, EmbedderError, MissingPackageError
        See `pexeso.errors`.
    """
    chosen = build_options(options, preset)
    from pexeso.build.job import build

    build(
        lake, path, chosen, overwrite=overwrite, engine=engine, master=master, conf=conf,
        progress=progress,
    )  # fmt: skip
    return open_index(path)
