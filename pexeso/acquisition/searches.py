"""Searches for tables to buy or fetch, over one snapshot of an index."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pexeso.acquisition import market_search
from pexeso.acquisition.defaults import (
    DEFAULT_LOOKED_AT,
    DEFAULT_MAX_MEMORY,
    DEFAULT_MAX_SECONDS,
    DEFAULT_MAX_TABLES,
    DEFAULT_PLANS,
)
from pexeso.acquisition.market_search import (
    MarketOptions,
    OwnTable,
    Prices,
    fan_out,
    limit,
    names_given,
    pairs_given,
    priced,
    require_prices,
    require_rate,
    share,
)
from pexeso.acquisition.plans import AcquisitionRequest, Terminal
from pexeso.acquisition.results import AcquisitionResult
from pexeso.composite.lake.query import columns_of
from pexeso.errors import ColumnNotFoundError, InputError, QueryError
from pexeso.lake.columns import did_you_mean, find_column, label_columns
from pexeso.lake.containers.reader import read_table
from pexeso.lake.key_columns import names_in, spec_of, specs_in
from pexeso.lake.readers.options import AS_FOUND, ReadingOptions
from pexeso.lake.rows import require_reading
from pexeso.options import parse_bytes, whole_number
from pexeso.results.query import split_spec
from pexeso.runtime.checks import named_options
from pexeso.runtime.formatting import shown
from pexeso.semantic.open_index import OpenIndex

if TYPE_CHECKING:
    from pexeso.acquisition.graph import JoinGraph


@dataclass(frozen=True)
class AcquisitionSearches:
    """Searches of one snapshot; see `pexeso.Index.acquire`."""

    opened: OpenIndex

    @named_options("a search for tables to buy")
    def acquire(
        self,
        have: Any,
        want: str | Iterable[str] | None = None,
        *,
        columns: str | Iterable[str] | None = None,
        budget: float | None = None,
        min_quality: float = 0.0,
        max_informativeness: float | None = None,
        prices: Prices | None = None,
        max_tables: int = DEFAULT_MAX_TABLES,
        max_fan_out: float | None = None,
        exclude_tables: Iterable[str] = (),
        exclude_joins: Iterable[Sequence[str]] = (),
        max_seconds: float | None = DEFAULT_MAX_SECONDS,
        max_memory: str | int = DEFAULT_MAX_MEMORY,
        seed: int = 0,
        sample_rate: float | None = None,
        k: int = DEFAULT_PLANS,
        reading: ReadingOptions = AS_FOUND,
    ) -> AcquisitionResult:
        """Find the tables to buy or fetch so that their columns explain yours, for a budget.

        Parameters
        ----------
        have : str, path, table in memory, or None
            What is to be explained: ``FILE:COLUMN`` or ``FILE:COLUMN,COLUMN``, or a table with
            `columns`. ``TABLE:COLUMN`` of the lake is to be bought too. None: the wanted columns
            are to explain each other.
        want : str or iterable of str, optional
            The columns that are wanted, each ``TABLE:COLUMN``, ``TABLE:COLUMN,COLUMN``, or
            ``COLUMN,COLUMN`` of any tables. Without it any column that joins reach may be bought,
            and the plans rank them.
        columns : str or iterable of str, optional
            Those of `have` that are to be explained.
        budget : float, optional
            The largest price of a plan; no limit by default.
        min_quality : float
            In [0, 1]: the least share of the rows of the join that break no dependency.
        max_informativeness : float, optional
            The largest sum of the informativeness of the joins (smaller is better).
        prices : {"free", "entropy"}, path or mapping, optional
            What columns cost: nothing, one unit for each bit of their entropy, or as listed: in a
            table with the columns ``table``, ``column`` and ``price``, or by table and column. With
            a budget entropy if not given, otherwise nothing.
        max_tables : int
            Most tables of a plan, yours included.
        max_fan_out : float, optional
            The most rows of one key in a table that a join leads to, at least 1. By default there
            is no limit if columns are wanted; without `want` it is 1: each row of yours finds one
            row at most, and none multiplies.
        exclude_tables : iterable of str
            Tables of the lake that are not to be used. The table that `have` was read from is left
            out where it lies in the lake.
        exclude_joins : iterable of (str, str)
            Pairs of tables that are not to be joined.
        max_seconds : float, optional
            Ends the search early; the answer is then not proved.
        max_memory : str or int
            For columns, such as ``"2GiB"``.
        seed : int
            Of samples, at least 0.
        sample_rate : float, optional
            Above 0, at most 1: measure correlation and quality on samples in which this share of
            the keys is. Joins with at most 1,000 keys in a table are not sampled.
        k : int
            Most plans.
        reading : ReadingOptions
            How to read the file of `have`, where it is delimited text; what is not set is found.

        Returns
        -------
        AcquisitionResult
            Highest correlation first. Without `want` one plan for each column, first what tells
            most beyond chance, for the share of your rows that find a partner. Without a plan it
            has the reason.

        Raises
        ------
        InputError
            An option is out of its range, or there is no such table, column or join.
        TableReadError, PlaceError
            A table cannot be read.

        Examples
        --------
        >>> import pexeso
        >>> index = pexeso.open_index("lake.pexeso")  # doctest: +SKIP
        >>> index.acquire("sales.csv:amount", ["weather.csv:rain"], budget=20)  # doctest: +SKIP
        """
        started = time.perf_counter()
        max_tables = whole_number("max_tables", max_tables, 1)
        bounds = {
            "budget": limit(budget, "budget"),
            "max_informativeness": limit(max_informativeness, "max_informativeness"),
            "min_quality": share(min_quality, "min_quality"),
            "max_tables": max_tables,
            "max_fan_out": fan_out(max_fan_out, want),
        }
        seconds = limit(max_seconds, "max_seconds")
        k, seed = whole_number("k", k, 1), whole_number("seed", seed, 0)
        require_rate(sample_rate)
        if prices is None:  # a budget without prices would bound nothing
            prices = "free" if budget is None else "entropy"
        require_prices(prices)
        tables, joins = names_given(exclude_tables, "exclude_tables"), pairs_given(exclude_joins)
        tables = tuple(dict.fromkeys(map(self._require, tables)))
        require_reading(reading)
        in_lake = self._in_lake(have, columns, reading)
        own_table = None if in_lake else _owned(have, columns, self._named, reading)
        copy = (
            None
            if own_table is None or own_table.file is None
            else self.opened.table_of(own_table.file)
        )
        if copy is not None:
            copy = self._named(copy)
        joins = self._joins_named(joins, own_table, copy)
        having = in_lake or _having(own_table)
        wanted_columns = () if want is None else self._wanted(want, own_table, copy)
        if not having and not wanted_columns:
            raise InputError("There is nothing to explain and nothing wanted: name one.")
        if copy is not None and copy not in tables:
            tables = (*tables, copy)
        options = MarketOptions(
            own_table,
            wanted_columns,
            having,
            tables,
            max_tables,
            DEFAULT_LOOKED_AT,
            prices,
            sample_rate,
            seed,
            parse_bytes(max_memory),
        )
        market = market_search.market_of(self.opened, options)
        market = replace(market, graph=self._without(market.graph, joins))
        to_explain = tuple(Terminal.of(market.graph, name, table) for table, name in having)
        if want is None:
            answer = market_search.candidates_of(market, to_explain, bounds, seconds, seed)
        else:
            request = AcquisitionRequest(
                to_explain,
                tuple(Terminal.of(market.graph, name, table) for table, name in wanted_columns),
                **bounds,
            )
            answer = market_search.plans_of(market, request, seconds)
        query = {
            "file": None if own_table is None else own_table.file,
            "table": having[0][0] if having else None,
            "have": [name for _, name in having],
            "rows": None if own_table is None else own_table.rows.num_rows,
            "want": [_described(table, name) for table, name in wanted_columns] or None,
        }
        settings = {
            **{name: None if value == math.inf else value for name, value in bounds.items()},
            "prices": priced(prices),
            "method": "exact",
            "exclude_tables": list(tables),
            "exclude_joins": [list(pair) for pair in joins],
            "max_seconds": max_seconds,
            "max_memory": options.max_bytes,
            "sample_rate": sample_rate,
            "seed": seed,
            "k": k,
        }
        notes = [*market.stats["notes"], *_notes(copy, market, has_plans=bool(answer.plans))]
        seconds = round(time.perf_counter() - started, 6)
        stats = {**market.stats, "notes": notes, "seconds": seconds}
        return AcquisitionResult.of(answer, market, query=query, options=settings, k=k, stats=stats)

    def _named(self, name: str) -> str | None:
        """Return the table of the lake that a name means; None where it means none."""
        catalog = self.opened.catalog
        table = catalog.named(name)
        return table if catalog.columns(["label"], among=pa.array([table])).num_rows else None

    def _require(self, name: str) -> str:
        """Return the table of the lake that a name means."""
        table = self._named(name)
        if table is None:
            raise InputError(self.opened.catalog.why_unknown(name, self.opened.lake))
        return table

    def _joins_named(
        self, joins: tuple[tuple[str, str], ...], own_table: OwnTable | None, copy: str | None
    ) -> tuple[tuple[str, str], ...]:
        """Return pairs of tables with the user's table by its name, however they call it."""
        called = {} if own_table is None or copy is None else {copy: own_table.name}

        def table_of(name: str) -> str:
            if own_table is not None and name == own_table.name:
                return name
            table = self._require(name)
            return called.get(table, table)

        return tuple((table_of(one), table_of(other)) for one, other in joins)

    def _without(self, graph: JoinGraph, joins: tuple[tuple[str, str], ...]) -> JoinGraph:
        """Return a graph without joins, which must exist: within reach, or in the lake."""
        within = [pair for pair in joins if set(pair) <= set(graph.tables)]
        for one, other in joins:
            of_lake = [self._named(name) is not None for name in (one, other)]
            if (one, other) in within or not all(of_lake):
                continue  # of yours all that it joins is looked at
            if other not in market_search.joins_of(self.opened, one):
                raise InputError(f"'{one}' and '{other}' have no join to leave out.")
        return graph.without((), within)

    def _wanted(
        self, want: str | Iterable[str], own_table: OwnTable | None, copy: str | None
    ) -> tuple[tuple[str | None, str], ...]:
        """Return the table, or None for any, and the label of each wanted column."""
        if not isinstance(want, Iterable):
            raise InputError(
                f"want must be the wanted columns, such as ['b.csv:rain']. Got {shown(want)}."
            )
        specs = [want] if isinstance(want, str) else list(want)
        wanted_columns: list[tuple[str | None, str]] = []
        for spec in specs:
            if not isinstance(spec, str) or not spec:
                raise InputError(
                    f"A wanted column is TABLE:COLUMN, or COLUMN of any table. Got {shown(spec)}."
                )
            name, columns = self.opened.catalog.split(spec)
            if columns is None or (self._named(name) is None and spec in self._labels(own_table)):
                names = names_in(spec) if columns is None else [spec]
                wanted_columns += [(None, self._label(column, own_table)) for column in names]
                continue
            table = self._require(name)
            if table == copy:
                raise InputError(
                    f"'{table}' is the table that you have: there is nothing to get from it. Name "
                    "a column of another table."
                )
            wanted_columns += self._columns_of(table, columns)
        return tuple(wanted_columns)

    def _columns_of(self, table: str, columns: str | Iterable[str]) -> tuple[tuple[str, str], ...]:
        """Return a table of the lake with the label of each column that is named."""
        labels = self.opened.labels_of(table)
        is_one = isinstance(columns, str) and (not columns or columns in labels)
        specs = [columns] if is_one else specs_in(columns)
        try:
            return tuple((table, labels[find_column(labels, spec)]) for spec in specs)
        except ColumnNotFoundError as error:
            raise ColumnNotFoundError(f"'{table}': {error}") from None

    def _in_lake(
        self, have: Any, columns: str | Iterable[str] | None, reading: ReadingOptions
    ) -> tuple[tuple[str, str], ...]:
        """Return the columns of the lake that `have` names; none where it is a file or a table."""
        if not isinstance(have, str | os.PathLike):
            return ()
        name = os.fspath(have)
        if os.path.exists(split_spec(name)[0] if columns is None else name):
            return ()
        if columns is None:
            name, columns = self.opened.catalog.split(name)
        table = self._named(name)
        if table is None or columns is None:
            return ()
        reading.require_none(f"'{name}' of the lake, which lake.toml tells how to read")
        return self._columns_of(table, columns)

    def _labels(self, own_table: OwnTable | None) -> list[str]:
        """Return the names of columns that any table of the lake has, and yours."""
        labels = self.opened.catalog.columns(["label"])["label"].unique().to_pylist()
        return labels if own_table is None else [*labels, *own_table.rows.column_names]

    def _label(self, name: str, own_table: OwnTable | None) -> str:
        """Return the name of a column that any table has."""
        labels = self._labels(own_table)
        if name in labels:
            return name
        meant = did_you_mean(labels, name)
        raise InputError(
            f"No table of the lake has a column {name!r}{f' ({meant})' if meant else ''}."
        )


def _owned(
    have: Any,
    columns: str | Iterable[str] | None,
    named: Callable[[str], str | None],
    reading: ReadingOptions,
) -> OwnTable | None:
    """Return the user's table."""
    if have is None:
        if columns is not None:
            raise InputError("columns are those of have, which is not given.")
        reading.require_none("no table")
        return None
    file: str | None = None
    if isinstance(have, str | os.PathLike):
        file = os.fspath(have)
        if columns is None:
            file, columns = split_spec(file)
        read = read_table(file, options=reading)
        names, cells = tuple(read.names), tuple(read.columns)
    else:
        reading.require_none("a table in memory")
        names, cells = columns_of(have)
    labels = label_columns(names)
    if columns is None:
        raise QueryError(
            "Name the columns that are to be explained, as FILE:COLUMN,COLUMN or with columns. The "
            f"columns are {', '.join(map(repr, labels[:20]))}."
        )
    specs = [columns] if isinstance(columns, str) and columns in names else columns
    chosen = [labels[find_column(names, spec)] for spec in specs_in(specs)]
    twice = sorted({label for label in chosen if chosen.count(label) > 1})
    if not chosen or twice:
        raise QueryError(
            "The columns to be explained are different ones, at least one. Got "
            f"{', '.join(map(repr, chosen)) or 'none'}."
        )
    rows = pa.Table.from_arrays(list(cells), names=labels)
    if not rows.num_rows:
        raise QueryError(f"{'The table' if file is None else repr(file)} has no rows.")
    name = "yours" if file is None else os.path.basename(file)
    while named(name):
        name = f"{name} (yours)"
    return OwnTable(name, rows, tuple(chosen), file)


def _having(own_table: OwnTable | None) -> tuple[tuple[str, str], ...]:
    return (
        () if own_table is None else tuple((own_table.name, column) for column in own_table.columns)
    )


def _described(table: str | None, name: str) -> str:
    column = spec_of([name])
    return column if table is None else f"{table}:{column}"


def _notes(copy: str | None, market: market_search.Market, *, has_plans: bool) -> Iterator[str]:
    """Yield what is to be known of the answer; `copy` is the table of the lake that you have."""
    if copy is not None:
        yield f"'{copy}' of the lake is left out: it is the table that you have."
    if market.rows_of is not None:
        yield (
            "Correlation, quality and rows are those of samples, and correlation comes out too "
            "high; the 95 % intervals are those of all rows."
        )
        if not has_plans:
            yield "Samples of more keys may have a plan: try a larger sample_rate."
