"""Enrichment of a table: lake search with its key, joins, and the columns worth having.

The tables found are joined, and the columns worth having are added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pexeso.errors import InputError
from pexeso.joins.enrichment.gathering import (
    COPY,
    JOIN_COLUMN,
    SAID,
    AddedColumn,
    EnrichmentRules,
    JoinedTable,
    LeftOutColumn,
    gather,
    split_rules,
)
from pexeso.joins.tables import position_of
from pexeso.lake.frames.tables import Frame, Tabular, put_beside, table_in_memory
from pexeso.options import ALL, VALUES, whole_number
from pexeso.results.query import query_from_values
from pexeso.runtime.checks import require_flag
from pexeso.runtime.formatting import listed_names, many, percent, shown

if TYPE_CHECKING:
    from pexeso.index import Index
    from pexeso.results.matches import Match


def table_to_enrich(table: Any) -> tuple[Frame, dict[str, Any]]:
    frame = table_in_memory(table, "to enrich")
    twice = sorted({name for name in frame.names if frame.names.count(name) > 1})
    if twice:
        raise InputError(
            "Each column of the table to enrich must have a name of its own. Got several of "
            f"{', '.join(map(repr, twice))}."
        )
    if not len(frame.table):
        raise InputError("The table to enrich has no rows.")
    return frame, dict(zip(frame.names, frame.columns(), strict=True))


DEFAULT_MAX_TABLES = 50
MOST_TABLES = 10**9
_TYPES = {
    "distinct": pa.int64(),
    **dict.fromkeys(("joinability", "coverage", "gain"), pa.float64()),
}
_SHARES = ("joinability", "coverage")
_SHOWN = 3


@dataclass(frozen=True, repr=False)
class Enrichment(Tabular):
    """A table with what the lake knows about its key.

    Attributes
    ----------
    table : pandas.DataFrame, pyarrow.Table or polars.DataFrame
        The user's rows and columns as they were, then those added: float64 or text, missing where
        there is none.
    on : str
        The key.
    target : str or None
    columns : tuple of AddedColumn
        What was added, in the order of the table: with a target those that say most of it first,
        otherwise by the tables that they are from.
    left_out : tuple of LeftOutColumn
        The other columns of the tables that were joined, with the rule.
    tables : tuple of JoinedTable
        The tables found, best first.
    rules : EnrichmentRules
    options : dict
        Those of the search; empty where the tables were given.
    """

    table: Any
    on: str
    target: str | None
    columns: tuple[AddedColumn, ...]
    left_out: tuple[LeftOutColumn, ...]
    tables: tuple[JoinedTable, ...]
    rules: EnrichmentRules
    options: Mapping[str, Any] = field(default_factory=dict)

    fields = tuple(AddedColumn.__dataclass_fields__)  # of `to_pandas`; of no dataclass field

    def _summary(self) -> str:
        added, tables = many(len(self.columns), "column"), many(len(self.tables), "table")
        return f"{many(len(self.table), 'row')}, {added} added, {tables} found"

    @property
    def report(self) -> str:
        """What was added and from where, and what was left out and why, for people."""
        counted = self.options.get("joinability_of", VALUES)
        if not self.tables:
            return self._nothing_found()
        used = sum(table.added > 0 for table in self.tables)
        lines = [
            f"{many(len(self.columns), 'column')} added from {used:,} of "
            f"{many(len(self.tables), 'table')} found."
        ]
        for table in self.tables:
            lines.append(
                f"{table.table}, joined on {table.key}: {table.joinability:.1%} of the {counted} "
                "match"
            )
            if table.reason is not None:
                lines.append(f"    left out as a whole: {table.reason}")
                continue
            lines += [
                f"    + {_shown(column)}" for column in self.columns if column.table == table.table
            ]
            out = [
                column
                for column in self.left_out
                if column.table == table.table and column.rule != JOIN_COLUMN
            ]
            lines += _left_out_lines(out)
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return what was done as plain JSON, without the table itself."""
        return {
            "on": self.on,
            "target": self.target,
            "rows": len(self.table),
            "columns": [asdict(column) for column in self.columns],
            "left_out": [asdict(column) for column in self.left_out],
            "tables": [asdict(table) for table in self.tables],
            "rules": asdict(self.rules),
            "options": dict(self.options),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return the values of `fields` for each column added: where it is from, its coverage."""
        return [asdict(column) for column in self.columns]

    def _field_types(self) -> dict[str, pa.DataType]:
        return {**dict.fromkeys(self.fields, pa.string()), **_TYPES}

    def _shown(self) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        return self.fields, (
            [percent(cell) if name in _SHARES else cell for name, cell in row.items()]
            for row in self.rows()
        )

    def _nothing_found(self) -> str:
        opening = "No table of the lake was found"
        if "max_distance" not in self.options:
            return f"{opening} to join '{self.on}' with; nothing was added."
        share, counted = (self.options[name] for name in ("min_joinability", "joinability_of"))
        few = "any" if share is None else f"at least {share:.0%}"
        return (
            f"{opening} with a match within distance {self.options['max_distance']:g} for {few} "
            f"of the {counted} of '{self.on}'; nothing was added. "
            "Try a larger max_distance or a smaller min_joinability."
        )


def enrich(
    index: Index,
    table: Any,
    on: str | int,
    *,
    target: str | int | None = None,
    max_tables: int = DEFAULT_MAX_TABLES,
    exclude_tables: Sequence[str] = (),
    exclude_self: bool = True,
    **options: Any,
) -> Enrichment:
    """Enrich a table with the columns that the lake has for its key.

    The lake is searched, the tables found are joined, and the columns worth having are kept.

    Each row of `table` stays one. The best column of each found table is joined, each key with the
    nearest value there; where several rows of the found table have it, their numbers are averaged
    and of their texts the first that is not empty is taken.

    Memory: `table`, the columns added, the pairs of values that match, and one found table at a
    time.

    Parameters
    ----------
    index : Index
    table : table
        Of pandas, Arrow or polars, whose kind the result has; of what else
        `pexeso.lake.frames.tables.frame_of` takes, a LazyFrame becomes a DataFrame, and the rest an
        Arrow table.
    on : str or int
        The key: name or position of a column of text in `table`.
    target : str or int, optional
        The column that is to be predicted, by name or position. It takes no part in the search;
        columns of the lake that say the same are left out, and those that say most of it beyond
        chance come first.
    max_tables : int
        At most so many tables are joined, those with most matches first: 1 to 1,000,000,000.
    exclude_tables : sequence of str
        Tables of the lake that are not used.
    exclude_self : bool
        Leave out a table that holds a copy of every column of `table`, the key apart: `table`
        itself, or a version of it.
    **options
        Of the search (`max_distance`, `min_joinability`, ...; see `pexeso.options.SearchOptions`)
        and the rules for columns (`min_coverage`, ...; see
        `pexeso.joins.enrichment.gathering.EnrichmentRules`).

    Returns
    -------
    Enrichment
        With the table as it was where nothing is found.

    Raises
    ------
    InputError, ColumnNotFoundError
        An argument is none of those allowed, or there is no such column.
    TableReadError, PlaceError
        None of the tables found can be read.

    Examples
    --------
    >>> import pandas as pd
    >>> import pexeso
    >>> index = pexeso.open_index("lake.pexeso")  # doctest: +SKIP
    >>> mine = pd.DataFrame({"country": ["Norway", "Korea, Rep."], "sales": [7, 12]})
    >>> print(pexeso.enrich(index, mine, on="country", target="sales").report)  # doctest: +SKIP
    """
    max_tables = whole_number("max_tables", max_tables, 1, MOST_TABLES)
    if isinstance(exclude_tables, str) or not isinstance(exclude_tables, Iterable):
        raise InputError(
            "exclude_tables must be a list of tables of the lake, such as ['cities.csv']. Got "
            f"{shown(exclude_tables)} instead."
        )
    if not hasattr(index, "search_options"):
        raise InputError(
            "index must be an open index, as pexeso.open_index('lake.pexeso') gives it. Got "
            f"{shown(index)} instead."
        )
    exclude = frozenset(_excluded(index, name) for name in exclude_tables)
    rules, search_options = split_rules(options)
    chosen = index.search_options(search_options).to_dict()

    def matches(keys: Any) -> list[Match]:
        return _best_of_each_table(index, keys, search_options, max_tables, exclude)

    return _enriched(table, on, target, matches, rules, exclude_self, chosen)


def enrich_from(
    matches: Match | Iterable[Match],
    table: Any,
    on: str | int,
    *,
    target: str | int | None = None,
    exclude_self: bool = True,
    **rules: Any,
) -> Enrichment:
    """Enrich a table from tables that are already found.

    They may come from `Index.search` or from elsewhere; all else is as in `enrich`.

    Parameters
    ----------
    matches : Match or iterable of Match
        Best first; of a table only the first is used.
    table, on, target, exclude_self
        As in `enrich`.
    **rules
        Of `pexeso.joins.enrichment.gathering.EnrichmentRules`.

    Returns
    -------
    Enrichment
    """
    chosen, unknown = split_rules(rules)
    if unknown:
        raise InputError(
            f"Rules are {', '.join(EnrichmentRules.__dataclass_fields__)}. Got "
            f"{', '.join(sorted(unknown))}."
        )
    first = _first_of_each_table(matches)
    return _enriched(table, on, target, lambda _: first, chosen, exclude_self, {})


def _first_of_each_table(found_tables: Match | Iterable[Match]) -> list[Match]:
    first: dict[str, Match] = {}
    matches: list[Any] = (
        list(found_tables) if isinstance(found_tables, Iterable) else [found_tables]
    )
    for match in matches:
        if not all(hasattr(match, name) for name in ("table", "column", "joinability", "join")):
            raise InputError(
                "What a table is enriched from are columns found by similar values, as "
                f"Index.search gives them. Got {shown(match)} instead."
            )
        first.setdefault(match.table, match)
    return list(first.values())


def _enriched(
    table: Any,
    on: str | int,
    target: str | int | None,
    matches: Callable[[Any], Iterable[Match]],
    rules: EnrichmentRules,
    exclude_self: bool,
    options: Mapping[str, Any],
) -> Enrichment:
    require_flag("exclude_self", exclude_self)
    frame, columns = table_to_enrich(table)
    names = list(columns)
    key = names[position_of(names, on)]
    target_name = None if target is None else names[position_of(names, target)]
    if target_name == key:
        raise InputError(
            f"The target is what is to be predicted, and cannot be the key {key!r} that is "
            "searched with."
        )
    matched = matches(query_from_values(columns[key], key))
    gathered = gather(columns, key, target_name, matched, rules, exclude_self=exclude_self)
    added = pa.Table.from_arrays(gathered.cells, names=[column.name for column in gathered.added])
    return Enrichment(
        put_beside(frame.table, frame.kind, added),
        key,
        target_name,
        tuple(gathered.added),
        tuple(gathered.left_out),
        tuple(gathered.tables),
        rules,
        options,
    )


def _best_of_each_table(
    index: Index, values: Any, options: Mapping[str, Any], max_tables: int, exclude: frozenset[str]
) -> list[Match]:
    """Return the best column of each table, searching for more until there are enough tables."""
    limit = None if options.get("k") == ALL else options.get("k")
    min_joinability = index.search_options(options).min_joinability
    k = 2 * (max_tables + len(exclude))
    while True:
        requested = k if limit is None else min(k, limit)
        settings = {**options, "k": requested, "min_joinability": min_joinability}
        (result,) = index.search_batch([values], rerank=False, fold_copies=False, **settings)
        best: dict[str, Match] = {}
        for match in result:
            if match.table not in exclude:
                best.setdefault(match.table, match)
        if len(best) >= max_tables or len(result) < requested or requested == limit:
            return list(best.values())[:max_tables]
        k *= 2


def _excluded(index: Index, name: Any) -> str:
    """Return the table that a name means; a misspelt one would be let in, and is refused."""
    if not isinstance(name, str):
        raise InputError(f"exclude_tables are names of tables of the lake. Got {shown(name)}.")
    catalog = index.catalog
    table = catalog.named(name)
    if not catalog.tables(["table"], among=pa.array([table])).num_rows:
        raise InputError(f"exclude_tables: {catalog.why_unknown(name, index.lake)}")
    return table


def _shown(column: AddedColumn) -> str:
    what = "numbers" if column.kind == "number" else "texts"
    gain_note = ""
    if column.gain is not None:
        gain_note = (
            f"; gain {column.gain:.3g}" if column.gain > 0 else "; explains no more than chance"
        )
    return (
        f"{column.column}: {what}, {column.distinct:,} different, in {column.coverage:.1%} of "
        f"the rows{gain_note}"
    )


def _left_out_lines(left_out: Sequence[LeftOutColumn]) -> list[str]:
    # Which column another says the same as is worth telling; of the other rules their name is
    # enough.
    reasons = {
        column: column.detail.removesuffix(".") if column.rule == COPY else SAID[column.rule]
        for column in left_out
    }
    lines = []
    for reason in sorted(set(reasons.values())):
        names = [column.column for column in left_out if reasons[column] == reason]
        lines.append(f"    - {listed_names(names, _SHOWN, str)}: {reason}")
    return lines
