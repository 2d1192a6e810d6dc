"""What every search returns: columns found, in order; each kind adds the measure of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.columns import spec_of
from pexeso.lake.frames.tables import Tabular
from pexeso.lake.normalise.rules import RULES
from pexeso.lake.readings import LOSSY, read_columns
from pexeso.lake.tokens import joined_parts
from pexeso.runtime.formatting import MAX_ROWS, Shown, html_table, many, named, percent, plain

if TYPE_CHECKING:
    from pexeso.index import Index
    from pexeso.lake.left_out import ReasonGroup
    from pexeso.semantic.open_index import OpenIndex


SMALL_DOMAIN = 3
"""Distinct values of a column that says little about its rows, such as a flag or a sex."""


def relation_of(most_query_rows: float, most_rows: float) -> str:
    """Return how many rows of two tables meet: "1:1", "1:N", "N:1" or "N:M"."""
    if most_rows > 1 and most_query_rows > 1:
        return "N:M"
    return f"{'N' if most_query_rows > 1 else 1}:{'N' if most_rows > 1 else 1}"


_CASE_CHANGE = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NAME_WORD = re.compile(r"[^\W\d_]+")


def common_names(query: Mapping[str, Any], table: str, column: str) -> tuple[bool, bool]:
    """Return whether a column's name, and that of its table, have a word of those of a query.

    Examples
    --------
    >>> common_names({"column": "homeCity", "file": "old/games.csv"}, "b/games_2.csv", "city")
    (True, True)
    >>> common_names({"column": "city", "file": None}, "cities.csv", "citizens")
    (False, False)
    """
    by_column = not _words(query["column"]).isdisjoint(_words(column))
    return by_column, not _file_words(query["file"]).isdisjoint(_file_words(table))


@lru_cache(maxsize=1 << 12)
def _words(name: str | None) -> frozenset[str]:
    return frozenset(_NAME_WORD.findall(_CASE_CHANGE.sub(" ", name or "").casefold()))


@lru_cache(maxsize=1 << 12)
def _file_words(path: str | None) -> frozenset[str]:
    return _words(None if path is None else PurePath(path).name.partition(".")[0])


def join_rank(n_rows: int, n_distinct: int) -> tuple[bool, bool, int]:
    """Return what columns that match alike are ordered by: the join that they make, better first.

    Columns of few distinct values come last, and keys before others; then it counts how few values
    there are beside those that match, in powers of ten. `n_rows` are those with a value.
    """
    return n_distinct <= SMALL_DOMAIN, not 0 < n_rows <= n_distinct, len(str(n_distinct))


def fan_out_text(relation: str, mean: float) -> str:
    """Write how many rows a join makes of one."""
    number = f"{mean:.2g}" if mean < 100 else f"{mean:,.0f}"
    return relation if number == "1" else f"{relation}, {number} rows for each row"


class ShownMatch(Shown):
    """A match in a line, with what `_measured` says, and in a notebook as a table of one row."""

    _measured: Callable[[], str]

    def _summary(self) -> str:
        return f"{plain(_name_of(self))}, {self._measured()}"

    def _shown(self) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        row = {name: _for_people(name, cell) for name, cell in self.to_dict().items()}
        row = {name: cell for name, cell in row.items() if not isinstance(cell, dict)}
        return list(row), [list(row.values())]


@dataclass(frozen=True, repr=False)
class ColumnMatch(ShownMatch):
    """A column of the lake that a search found.

    Attributes
    ----------
    table : str
        Path of the table, relative to the lake.
    column : str
        The column's name, or ``#position`` where the header repeats or lacks it.
    copies : tuple of ColumnMatch
        Other columns found that hold the same values, or nearly (`pexeso.engine.copies`), best
        first; none where the search was asked not to fold them.
    """

    table: str
    column: str
    copies: tuple[Any, ...] = field(default=(), repr=False, compare=False, kw_only=True)
    _columns: TableColumns | None = field(default=None, repr=False, compare=False, kw_only=True)

    @property
    def brings(self) -> tuple[str, ...]:
        """The other columns of the table, in its order: what a join with it brings."""
        return () if self._columns is None else self._columns.others(self.table, self.column)

    @property
    def rows_per_value(self) -> float | None:
        """Mean rows of the table with one value of the column: 1 where it is a key.

        A row of yours that is joined becomes so many. None where they are not known.
        """
        n_rows, n_distinct = self._sizes
        return None if not n_distinct else max(1.0, n_rows / n_distinct)

    @property
    def is_small_domain(self) -> bool:
        """Whether the column has so few values that they say little about a row, such as flags."""
        return 0 < self._sizes[1] <= SMALL_DOMAIN

    @property
    def _sizes(self) -> tuple[int, int]:
        return (0, 0) if self._columns is None else self._columns.sizes(self.table, self.column)


@dataclass(frozen=True)
class NearColumn:
    """A column that was not found, but came near.

    Attributes
    ----------
    table, column : str
        As of `ColumnMatch`.
    share : float
        ``matched / total``: what was short of the threshold.
    matched, total : int
        Values, or rows, of the query column that match, of those that count; or distinct values
        that both columns have, of those of the query column.
    max_distance : float or None
        The distance within which they match, which may be larger than that asked for; None where
        equal values are counted.
    """

    table: str
    column: str
    share: float
    matched: int
    total: int
    max_distance: float | None = None


@dataclass(frozen=True)
class WouldMatch:
    """A column of which an index with another rule would find more values.

    Attributes
    ----------
    rule : str
        Its name, as ``pexeso rules`` lists it.
    does : str
        What it does.
    table, column : str
    matched, total : int
        Distinct values that would be equal, and all.
    """

    rule: str
    does: str
    table: str
    column: str
    matched: int
    total: int

    @classmethod
    def of(cls, rule: str, table: str, column: str, matched: int, total: int) -> WouldMatch:
        does = next(one.does for one in RULES if one.name == rule)
        return cls(rule, does, table, column, matched, total)

    def sentence(self) -> str:
        column, does = f"{self.table}:{self.column}", self.does.split(".")[0]
        return (
            f"{self.matched:,} of {self.total:,} would match {column} with --rule {self.rule}, "
            f"which {does}: of join and explain, or of index for searches."
        )


# Share of the values without a match that a reading must match to be named, inclusive.
MIN_SHARE_OF_REST = 0.1


def pair_would_match(
    table: str,
    column: str,
    ours: Sequence[pa.Array],
    theirs: Sequence[pa.Array],
    readings: Collection[str],
) -> tuple[WouldMatch, ...]:
    """Return the readings that are off by which more keys of a table are yours, the best first.

    A side has a column for each part of a key, as `pexeso.lake.tokens.key_texts` returns them.
    """
    matched, total = _n_shared(ours, theirs)
    if matched == total:
        return ()
    lines = []
    for name in LOSSY:
        if name in readings:
            continue
        n_matched, n_keys = _n_shared(
            *([read_columns(part, [name]) for part in side] for side in (ours, theirs))
        )
        if n_matched - matched >= max(1, MIN_SHARE_OF_REST * (total - matched)):
            lines.append(WouldMatch.of(name, table, column, n_matched, n_keys))
    return tuple(sorted(lines, key=lambda line: -line.matched))


def _n_shared(ours: Sequence[pa.Array], theirs: Sequence[pa.Array]) -> tuple[int, int]:
    """Count the distinct keys of one table that the other has, and all."""
    keys, others = map(joined_parts, (ours, theirs))
    keys = pc.unique(keys).drop_null()
    return pc.sum(pc.is_in(keys, value_set=others), min_count=0).as_py(), len(keys)


@dataclass(frozen=True, repr=False)
class Hints(Shown):
    """What helps where a search found nothing.

    Attributes
    ----------
    nearest : tuple of NearColumn
        At most `MAX_NEAREST`, best first.
    left_out : tuple of ReasonGroup
        Tables and columns that were not indexed, by reason, the largest group first.
    readings : tuple of WouldMatch
        Rules that are off and would make more values equal, the best first.
    """

    nearest: tuple[NearColumn, ...] = ()
    left_out: tuple[ReasonGroup, ...] = ()
    readings: tuple[WouldMatch, ...] = ()

    def _summary(self) -> str:
        nearest = named([_name_of(column) for column in self.nearest])
        return f"nearest: {nearest}; left out: {many(len(self.left_out), 'group')}"

    def _shown(self) -> tuple[list[str], list[list[Any]]]:
        names = list(NearColumn.__dataclass_fields__)
        return names, [[getattr(column, name) for name in names] for column in self.nearest]

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form."""
        return {
            "nearest": [asdict(column) for column in self.nearest],
            "left_out": [group.to_dict() for group in self.left_out],
            **({"readings": [asdict(one) for one in self.readings]} if self.readings else {}),
        }


# Columns that came near which are named where nothing was found.
MAX_NEAREST = 3

_NAMED_IN_REPR = 3

_SHARES = ("joinability", "containment", "share", "transformed")
# Fields that are left out where results are shown in a notebook.
_NOT_SHOWN = ("brings", "joinability_of")

_FIELDS = {
    pa.string(): "table column joinability_of program direction relation",
    pa.list_(pa.string()): "columns brings found_by",
    pa.int64(): "matched total n_copies overlap equal matched_keys total_keys rows joined_rows",
    pa.float64(): "similarity rows_per_query_row query_rows_per_row " + " ".join(_SHARES),
    pa.bool_(): "estimated",
}
# Types of the fields that results have.
_TYPES = {name: kind for kind, names in _FIELDS.items() for name in names.split()}

SomeMatch = TypeVar("SomeMatch")
AnyMatch = TypeVar("AnyMatch", bound=ColumnMatch)


@dataclass(frozen=True, repr=False)
class Matches(Tabular, Sequence[SomeMatch], Generic[SomeMatch]):
    """What a search found, best first.

    Attributes
    ----------
    query : dict
        Where the query came from, and what was counted in it.
    options : object
        The options of the search, with defaults filled in.
    matches : tuple
        At most `k`.
    n_more : int or None
        How many more were found, copies not counted; None where there may be more and they were
        not counted.
    """

    query: dict[str, Any]
    options: Any
    matches: tuple[SomeMatch, ...]
    n_more: int | None = field(default=0, kw_only=True)
    _find_hints: Callable[[], Hints] = field(default=Hints, repr=False, compare=False, kw_only=True)

    noun = "column"  # what is found; of no dataclass field

    def _summary(self) -> str:
        if not self.matches:
            return f"no {self.noun} found"
        measure = self.fields[2]
        best = [
            f"{plain(_name_of(match))} ({_for_people(measure, self._row_of(match)[measure])})"
            for match in self.matches[:_NAMED_IN_REPR]
        ]
        dots = [] if len(self.matches) <= _NAMED_IN_REPR else ["..."]
        return f"{self._counted()}: {', '.join([*best, *dots])}"

    def _repr_html_(self) -> str:
        shown = [name for name in self.fields if name not in _NOT_SHOWN]
        first = f", the first {MAX_ROWS}" if len(self.matches) > MAX_ROWS else ""
        rows = (
            [_for_people(name, row.get(name)) for name in shown]
            for row in map(self._row_of, self.matches[:MAX_ROWS])
        )
        return html_table(f"{self._counted()} found{first}", shown, rows)

    def _counted(self) -> str:
        count = many(len(self), self.noun)
        if self.n_more is None:
            return f"{count} and maybe more"
        return f"{count} of {len(self) + self.n_more:,}" if self.n_more else count

    def _row_of(self, match: Any) -> dict[str, Any]:
        return {**match.to_dict(), "n_copies": len(match.copies)}

    def _field_types(self) -> dict[str, pa.DataType]:
        return _TYPES

    @overload
    def __getitem__(self, position: int) -> SomeMatch: ...

    @overload
    def __getitem__(self, position: slice) -> tuple[SomeMatch, ...]: ...

    def __getitem__(self, position: int | slice) -> SomeMatch | tuple[SomeMatch, ...]:
        return self.matches[position]

    def __len__(self) -> int:
        return len(self.matches)

    def __iter__(self) -> Iterator[SomeMatch]:
        return iter(self.matches)

    def hints(self) -> Hints:
        """Find what helps where nothing was found: the nearest columns, and what was left out.

        Searches once more, and reads the catalog. Empty where something was found.
        """
        return Hints() if self.matches else self._find_hints()

    def to_dict(self, *, explain: bool = False, hints: bool = False) -> dict[str, Any]:
        """Return the plain JSON form that the command line prints.

        Parameters
        ----------
        explain : bool
            Add to each result the values that match, and the programs that join it. Of more than
            100,000 pairs the nearest of each value are listed, and ``"pairs_left_out"`` says how
            many are not.
        hints : bool
            Add ``"hints"`` where nothing was found; see `hints`.
        """
        return {
            "query": self.query,
            "options": self.options if isinstance(self.options, dict) else self.options.to_dict(),
            "results": [self._as_json(match, explain) for match in self.matches],
            "n_more": self.n_more,
            **self._hints_as_json(hints),
            "stats": self.stats,  # type: ignore[attr-defined]  # which all have
        }

    def _as_json(self, match: Any, explain: bool) -> dict[str, Any]:
        return match.to_dict(explain=explain)

    def _hints_as_json(self, wanted: bool) -> dict[str, Any]:
        hints = self.hints() if wanted else None
        if hints is None or (self.matches and not hints.readings):
            return {}
        return {"hints": hints.to_dict()}


def shown_lines(
    lines: Sequence[Sequence[AnyMatch]], opened: OpenIndex | Index, k: int | None
) -> tuple[AnyMatch, ...]:
    """Return the first match of each of `k` lines, with the others as its copies."""
    columns = TableColumns(opened, {line[0].table for line in lines[:k]})
    shown = []
    for line in lines[:k]:
        first, *copies = (replace(match, _columns=columns) for match in line)
        shown.append(replace(first, copies=tuple(copies)))
    return tuple(shown)


def _name_of(match: Any) -> str:
    columns = getattr(match, "columns", None)
    return f"{match.table}:{match.column if columns is None else spec_of(columns)}"


def _for_people(name: str, value: Any) -> Any:
    """Return a field of a match as people read it: shares as percentages."""
    if value is None or name not in (*_SHARES, "similarity"):
        return value
    return f"{value:.2f}" if name == "similarity" else percent(value)


@dataclass(frozen=True, repr=False)
class ColumnMatches(Matches[AnyMatch]):
    """The columns that a search found, best first.

    Attributes
    ----------
    query, options, n_more
        See `Matches`.
    matches : tuple of ColumnMatch
        Each represents its copies too.
    folded : bool
        Whether copies were folded.
    """

    folded: bool = field(default=False, kw_only=True)

    @property
    def fields(self) -> tuple[str, ...]:  # type: ignore[override]  # read only here
        """The columns of `to_pandas` and CSV."""
        measures = self.measures  # type: ignore[attr-defined]  # which all have
        return (*measures, *(("n_copies",) if self.folded else ()), "brings")

    def rows(self) -> list[dict[str, Any]]:
        rows = [{**self._row_of(match), "brings": list(match.brings)} for match in self.matches]
        return [{name: row[name] for name in self.fields if name in row} for row in rows]

    def _fan_out(self, match: AnyMatch) -> str:
        """Return what a join with a column makes of a row; empty where it makes one with each."""
        few = ", few values" if match.is_small_domain else ""
        return self._relation(match) + few if self._multiplies else ""

    def _relation(self, match: AnyMatch, n_nearest: int | None = None) -> str:
        """Return how many rows meet, where values join with so many different ones of the lake."""
        mean = match.rows_per_value
        if mean is None:
            return ""
        query = self.query
        most_query_rows = (query["rows"] - query["empty"]) / max(
            1, query.get("distinct", query.get("values", 1))
        )
        if n_nearest and n_nearest < match.matched:
            most_query_rows = max(most_query_rows, match.matched / n_nearest)
        return fan_out_text(relation_of(most_query_rows, mean), mean)

    @cached_property
    def _multiplies(self) -> bool:
        return any((match.rows_per_value or 1) > 1 or match.is_small_domain for match in self)

    def _as_json(self, match: Any, explain: bool) -> dict[str, Any]:
        named = {"copies": [copy.to_dict() for copy in match.copies]} if self.folded else {}
        sizes = {name: getattr(match, name) for name in ("rows_per_value", "is_small_domain")}
        described = self._described(match, explain)
        return {**described, **named, "brings": list(match.brings), **sizes}

    def _described(self, match: Any, explain: bool) -> dict[str, Any]:
        return match.to_dict(explain=explain)


@dataclass(frozen=True)
class Unmatched:
    """A text of the query column that has no match in the lake column.

    Attributes
    ----------
    query : str
    reason : {"too far", "apart", "unknown", "empty"}
        Its nearest lake value is too far; a rule tells that value apart, whatever its words; the
        model knows nothing about it; nothing is left of it by normalisation.
    value : str or None
        The nearest lake value by its words, where the reason is ``"too far"`` or ``"apart"``.
    distance : float or None
        How far that is, in [0, 1].
    because : str or None
        The words that tell the two apart, such as ``11 against 13``.
    """

    query: str
    reason: str
    value: str | None = None
    distance: float | None = None
    because: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form."""
        return asdict(self)


@dataclass(eq=False, repr=False)
class TableColumns:
    """Labels and sizes of the columns of tables, read together when one is asked for.

    `opened` is a snapshot of an index. Tables not among `wanted` are read one by one.
    """

    opened: OpenIndex | Index
    wanted: Collection[str]
    # By table and label: cells that are not missing, and distinct values.
    known: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)

    def __deepcopy__(self, memo: dict[int, Any]) -> TableColumns:
        return self

    def others(self, table: str, column: str) -> tuple[str, ...]:
        return tuple([label for label in self._of_table(table) if label != column])

    def sizes(self, table: str, column: str) -> tuple[int, int]:
        return self._of_table(table).get(column, (0, 0))

    def _of_table(self, table: str) -> dict[str, tuple[int, int]]:
        if table not in self.known:
            self._read({table, *self.wanted} - self.known.keys())
        return self.known[table]

    def _read(self, tables: set[str]) -> None:
        names = ["table", "label", "position", "n_rows", "n_missing", "n_distinct"]
        rows = self.opened.catalog.columns(names, among=pa.array(sorted(tables), pa.string()))
        self.known |= {table: {} for table in tables}
        for row in rows.sort_by([("table", "ascending"), ("position", "ascending")]).to_pylist():
            n_cells = (row["n_rows"] or 0) - (row["n_missing"] or 0)
            self.known[row["table"]][row["label"]] = (n_cells, row["n_distinct"] or 0)
