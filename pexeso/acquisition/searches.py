"""Searches for tables to buy or fetch, over one snapshot of an index."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pexeso.acquisition import (
    DEFAULT_LOOKED_AT,
    DEFAULT_MAX_MEMORY,
    DEFAULT_MAX_SECONDS,
    DEFAULT_MAX_TABLES,
    DEFAULT_PLANS,
)
from pexeso.acquisition.candidates import rank_candidates
from pexeso.acquisition.evaluation import Evaluator
from pexeso.acquisition.exact import Limits, find_plans
from pexeso.acquisition.lake_market import LakeMarket
from pexeso.acquisition.market_graph import TablePairs, market_graph
from pexeso.acquisition.plans import AcquisitionRequest, FoundPlans, Terminal
from pexeso.acquisition.results import AcquisitionResult
from pexeso.acquisition.row_counts import RowsOf
from pexeso.acquisition.samples import SampledPlans, with_intervals
from pexeso.acquisition.tables import CodedColumns
from pexeso.composite.key_table import read_own_table
from pexeso.errors import ColumnNotFoundError, InputError, QueryError
from pexeso.lake.columns import (
    did_you_mean,
    find_column,
    label_columns,
    names_in,
    spec_of,
    specs_in,
)
from pexeso.lake.readers.options import AS_FOUND, ReadingOptions
from pexeso.lake.rows import require_reading
from pexeso.options import parse_bytes, whole_number
from pexeso.results.query import split_spec
from pexeso.runtime.checks import named_options
from pexeso.runtime.formatting import plain_scalar, shown
from pexeso.semantic.open_index import OpenIndex

if TYPE_CHECKING:
    from pexeso.acquisition.graph import JoinGraph


@dataclass(frozen=True)
class AcquisitionSearches:
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
        """
        started = time.perf_counter()
        self.opened.require_texts()
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
        if isinstance(have, str | os.PathLike):
            reading = self.opened.reading_of(os.fspath(have), reading)
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
        own_columns = () if own_table is None else own_table.columns
        having = in_lake or tuple((own_table.name, column) for column in own_columns)
        wanted_columns = () if want is None else self._wanted(want, own_table, copy)
        if not having and not wanted_columns:
            raise InputError("There is nothing to explain and nothing wanted: name one.")
        if copy is not None and copy not in tables:
            tables = (*tables, copy)
        coded = CodedColumns(parse_bytes(max_memory))
        graph, notes = market_graph(
            self.opened,
            None if own_table is None else (own_table.name, own_table.rows),
            wanted=wanted_columns,
            have=having,
            prices=prices,
            max_tables=DEFAULT_LOOKED_AT,
            max_joins=max(max_tables - 1, 1),
            exclude=tables,
            coded=coded,
        )
        samples = None if sample_rate is None else SampledPlans(graph, sample_rate, seed, coded)
        stats = {"tables": len(graph.tables), "joins": len(graph.edges)}
        graph = self._without(graph, joins)
        market = Market(graph, coded, samples)
        to_explain = tuple(Terminal.of(graph, name, table) for table, name in having)
        if want is None:
            limits = Limits(max_seconds=seconds)
            answer = rank_candidates(
                graph, to_explain, bounds, coded, limits, seed=seed, rows_of=market.rows_of
            )
        else:
            to_get = tuple(Terminal.of(graph, name, table) for table, name in wanted_columns)
            request = AcquisitionRequest(to_explain, to_get, **bounds)
            answer = market.plans(request, seconds)
        query = {
            "file": None if own_table is None else own_table.file,
            "table": having[0][0] if having else None,
            "have": [name for _, name in having],
            "rows": None if own_table is None else own_table.rows.num_rows,
            "want": [_described(table, name) for table, name in wanted_columns] or None,
        }
        settings = {
            **{name: None if value == math.inf else value for name, value in bounds.items()},
            "prices": "listed" if isinstance(prices, Mapping) else os.fspath(prices),
            "method": "exact",
            "exclude_tables": list(tables),
            "exclude_joins": [list(pair) for pair in joins],
            "max_seconds": max_seconds,
            "max_memory": parse_bytes(max_memory),
            "sample_rate": sample_rate,
            "seed": seed,
            "k": k,
        }
        notes += _notes(copy, market, has_plans=bool(answer.plans))
        stats |= {"notes": notes, "seconds": round(time.perf_counter() - started, 6)}
        return AcquisitionResult.of(answer, market, query=query, options=settings, k=k, stats=stats)

    def _named(self, name: str) -> str | None:
        """Return the table of the lake that a name means; None where it means none."""
        table = self.opened.catalog.named(name)
        return table if self.opened.catalog.has(table) else None

    def _require(self, name: str) -> str:
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
            pairs = TablePairs.of_market(LakeMarket.of(self.opened)).of_tables([one])
            if other == one or other not in {name for ends in pairs for name in ends}:
                raise InputError(f"'{one}' and '{other}' have no join to leave out.")
        return graph.without(within)

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
        reading.require_none(f"'{name}' of the lake, which lake.toml says how to read")
        return self._columns_of(table, columns)

    def _labels(self, own_table: OwnTable | None) -> list[str]:
        labels = self.opened.catalog.columns(["label"])["label"].unique().to_pylist()
        return labels if own_table is None else [*labels, *own_table.rows.column_names]

    def _label(self, name: str, own_table: OwnTable | None) -> str:
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
    if have is None:
        if columns is not None:
            raise InputError("columns are those of have, which is not given.")
        reading.require_none("no table")
        return None
    file, columns, names, cells = read_own_table(have, columns, reading)
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


def _described(table: str | None, name: str) -> str:
    column = spec_of([name])
    return column if table is None else f"{table}:{column}"


def _notes(copy: str | None, market: Market, *, has_plans: bool) -> Iterator[str]:
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


Prices = str | os.PathLike[str] | Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class OwnTable:
    name: str
    rows: pa.Table
    columns: tuple[str, ...]
    file: str | None = None


@dataclass(frozen=True)
class Market:
    graph: JoinGraph
    coded: CodedColumns
    samples: SampledPlans | None = None

    @property
    def rows_of(self) -> RowsOf | None:
        """Which rows of the tables of a plan are measured; None for all."""
        is_sampled = self.samples is not None and self.samples.rate < 1
        return self.samples.rows_of if is_sampled else None

    def plans(self, request: AcquisitionRequest, max_seconds: float) -> FoundPlans:
        evaluator = Evaluator(self.graph, self.coded, rows_of=self.rows_of)
        limits = Limits(max_seconds=max_seconds)
        answer = find_plans(self.graph, request, self.coded, limits, evaluator)
        return answer if self.samples is None else with_intervals(answer, self.samples)


def require_prices(prices: Any) -> None:
    """Raise InputError unless prices are a name or file, or prices by table and column."""
    if isinstance(prices, str | os.PathLike):
        return
    if not isinstance(prices, Mapping):
        raise InputError(
            "prices must be 'free', 'entropy', the file of a list, or prices by table and column, "
            f"such as {{'a.csv': {{'rain': 2.5}}}}. Got {shown(prices)}."
        )
    for table, columns in prices.items():
        if not isinstance(columns, Mapping) or not all(
            isinstance(name, str) for name in (table, *columns)
        ):
            raise InputError(
                "prices of a table are those of its columns, by their names, such as "
                f"{{'a.csv': {{'rain': 2.5}}}}. Got {shown({table: columns})}."
            )
        for column, price in columns.items():
            if not is_number(price, -math.inf, sys.float_info.max) or price < 0:
                raise InputError(
                    f"The price of {column!r} of '{table}' must be a finite number from 0. Got "
                    f"{shown(price)}."
                )


def require_rate(sample_rate: Any) -> None:
    if sample_rate is not None and not is_number(sample_rate, 0, 1):
        raise InputError(
            "sample_rate must be a number above 0 and at most 1 (inclusive): the share of the "
            f"keys that samples have. Got {shown(sample_rate)}."
        )


def names_given(names: Iterable[str], option: str) -> tuple[str, ...]:
    all_names = _listed(names, option, "names, such as ['a.csv']")
    for name in all_names:
        if not isinstance(name, str):
            raise InputError(f"{option} must be a list of names. Got {shown(name)} among them.")
    return tuple(dict.fromkeys(all_names))


def pairs_given(pairs: Iterable[Sequence[str]]) -> tuple[tuple[str, str], ...]:
    table_pairs = []
    for pair in _listed(pairs, "exclude_joins", "pairs of tables, such as [('a.csv', 'b.csv')]"):
        several = list(pair) if isinstance(pair, Iterable) else []
        names = names_in(pair) if isinstance(pair, str) else several
        if len(names) != 2 or not all(isinstance(name, str) for name in names):
            raise InputError(
                f"exclude_joins are pairs of tables, such as ('a.csv', 'b.csv'). Got {shown(pair)}."
            )
        table_pairs.append((names[0], names[1]))
    return tuple(table_pairs)


def _listed(values: Any, option: str, what: str) -> list[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"{option} must be a list of {what}. Got {shown(values)}.")
    return list(values)


def limit(value: Any, name: str) -> float:
    """Return an upper bound; infinite for None."""
    if value is None:
        return math.inf
    number = plain_scalar(value)
    if isinstance(number, bool) or not isinstance(number, int | float) or not number >= 0:
        raise InputError(f"{name} must be a number from 0. Got {shown(value)}.")
    return float(min(number, sys.float_info.max)) if isinstance(number, int) else number


def share(value: Any, name: str) -> float:
    number = plain_scalar(value)
    if not is_number(number, -math.inf, 1) or number < 0:
        raise InputError(f"{name} must be a number from 0 to 1. Got {shown(value)}.")
    return float(number)


def fan_out(value: Any, want: Any) -> float:
    """Return the most rows of a key in a table that a join leads to."""
    if value is None:
        return math.inf if want is not None else 1.0
    number = limit(value, "max_fan_out")
    if number < 1:
        raise InputError(f"max_fan_out must be a number from 1. Got {shown(value)}.")
    return number


def is_number(value: Any, above: float, maximum: float) -> bool:
    number = plain_scalar(value)
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    return is_number and above < number <= maximum
