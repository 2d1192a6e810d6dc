"""Results of searches by composite keys: tables, best first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from pexeso.results.column_matches import Hints, Matches, ShownMatch
from pexeso.runtime.formatting import percent

if TYPE_CHECKING:
    from pexeso.composite.searches import CompositeSearches
    from pexeso.composite.similar_keys import SimilarPair
    from pexeso.joins.tables import Joined

    FindPairs = Callable[[int | None], Mapping[int, tuple[SimilarPair, ...]]]


@dataclass(frozen=True)
class FanOut:
    """How many rows a join by equal keys makes of one, of the rows that are joined at all.

    Attributes
    ----------
    relation : str
        Rows of the query to rows of the table: ``"1:1"``, ``"1:N"`` (a key is in several rows
        of the table), ``"N:1"`` (of the query) or ``"N:M"``.
    joined_rows : int
        Rows of the inner join.
    rows_per_query_row, query_rows_per_row : float
        Mean number of rows of the table that a joined row of the query meets, and of the query
        that a joined row of the table meets; at least 1.
    max_rows_per_query_row, max_query_rows_per_row : int
        The largest of these numbers.
    """

    relation: str
    joined_rows: int
    rows_per_query_row: float
    query_rows_per_row: float
    max_rows_per_query_row: int
    max_query_rows_per_row: int


@dataclass(frozen=True, repr=False)
class CompositeMatch(ShownMatch):
    """A table of the lake that joins keys of the query.

    Attributes
    ----------
    joinability : float
        ``matched_keys / total_keys``, in (0, 1].
    """

    table: str
    columns: tuple[str, ...]
    matched_keys: int
    total_keys: int
    joinability: float
    rows: int
    query_rows: int
    fan_out: FanOut
    brings: tuple[str, ...] = field(compare=False)
    _searches: CompositeSearches = field(repr=False, compare=False)
    _key: tuple[str, ...] = field(repr=False, compare=False)
    _find_pairs: FindPairs | None = field(default=None, repr=False, compare=False)

    copies = ()  # of no dataclass field: tables are not folded

    def _measured(self) -> str:
        keys = f"{self.matched_keys:,} of {self.total_keys:,} keys match"
        return f"{keys} ({percent(self.joinability)}), {self.fan_out.relation}"

    def join(
        self,
        table: Any,
        columns: str | Iterable[str] | None = None,
        *,
        how: str = "left",
        aggregate: str | Mapping[str, str] | None = None,
        suffix: str | None = None,
        provenance: Sequence[str] = ("value", "distance"),
        many_to_many: bool = False,
        to: str | None = None,
    ) -> Any:
        """Join the found table to `table`, on these columns: rows meet whose keys are equal.

        Parameters
        ----------
        table : table, str or path
            Yours, or another with the same key. Rows without a value in every part meet none.
        columns : str or iterable of str, optional
            The columns of the key in `table`; by default those that were searched with.
        how, aggregate, suffix, provenance, many_to_many
            As in `pexeso.Match.join`. ``match_value`` has the cells of the key in the found table,
            and ``match_column`` its columns, each as a line of CSV; ``match_distance`` is 0.
        to : {"pandas", "arrow", "polars"}, optional
            The kind of table given back; by default that of `table`, else Arrow's.

        Returns
        -------
        pandas.DataFrame, pyarrow.Table or polars.DataFrame
            As `pexeso.Match.join` gives it. Both tables are in memory meanwhile.

        Raises
        ------
        InputError
            An option is not one of those allowed, or a name cannot be had.
        ColumnNotFoundError
            There is no such column, in `table` or in the found one.
        TableReadError, PlaceError
            The found table cannot be read.
        """
        return self.join_with_report(
            table,
            columns,
            how=how,
            aggregate=aggregate,
            suffix=suffix,
            provenance=provenance,
            many_to_many=many_to_many,
            to=to,
        ).table

    def join_with_report(
        self,
        table: Any,
        columns: str | Iterable[str] | None = None,
        *,
        to: str | None = None,
        **options: Any,
    ) -> Joined:
        """Join as `join` does, and tell what the join did.

        Parameters
        ----------
        table, columns, to
            As in `join`.
        **options
            The others of `join`.

        Returns
        -------
        Joined
            ``table``, what `join` gives; ``report``, a `pexeso.joins.report.JoinReport`.
        """
        pair = self._searches.pair(table, self._key if columns is None else columns, self.table)
        return pair.join(pair.theirs(self.columns), options, table=table, to=to)

    def sql(
        self,
        table: Any,
        columns: str | Iterable[str] | None = None,
        *,
        name: str = "your_table",
        how: str = "left",
    ) -> str:
        """Write the join of the found table with `table` as a statement for DuckDB.

        It has the columns and rows of ``join(table, provenance=())``, in any order. Keys whose
        texts differ are listed in it. The table of the lake is read by DuckDB's own readers where
        these give the rows that `join` does, and is otherwise to be registered by its name.

        Examples
        --------
        >>> found = index.search_composite(mine, ["city", "year"])  # doctest: +SKIP
        >>> duckdb.sql(found[0].sql(mine, name="mine"))  # doctest: +SKIP
        """
        pair = self._searches.pair(table, self._key if columns is None else columns, self.table)
        return pair.sql(pair.theirs(self.columns), how=how, names=(name, None)).sql

    def similar_pairs(self, limit: int | None = 10) -> dict[str, tuple[SimilarPair, ...]]:
        """Return what is joined by similarity, the nearest first, without equal texts.

        Parameters
        ----------
        limit : int, optional
            Pairs for each column; None for all.
        """
        if self._find_pairs is None:
            return {}
        return {self.columns[i]: pairs for i, pairs in self._find_pairs(limit).items()}

    def to_dict(self, *, explain: bool = False) -> dict[str, Any]:
        """Return the plain JSON form; with `explain`, and similar values, some of these pairs."""
        names = (
            "table", "columns", "matched_keys", "total_keys", "joinability", "rows", "query_rows",
            "fan_out", "brings",
        )  # fmt: skip
        document = {name: getattr(self, name) for name in names}
        document |= {name: list(document[name]) for name in ("columns", "brings")}
        document["fan_out"] = asdict(self.fan_out)
        if explain and self._find_pairs is not None:
            document["similar_pairs"] = {
                column: [asdict(pair) for pair in pairs]
                for column, pairs in self.similar_pairs().items()
            }
        return document


@dataclass(frozen=True, repr=False)
class CompositeResult(Matches[CompositeMatch]):
    """The tables that a search found, those that join most keys first, equal ones by name.

    Attributes
    ----------
    query : dict
        Where the query came from, its key ``columns``, its ``rows``, how many of these have a
        value in every key column (``complete_rows``), and its distinct ``keys``.
    options : dict
        What was asked for, defaults filled in.
    matches : tuple of CompositeMatch
    n_more : int or None
        None where there may be more.
    stats : dict
        What was read and compared, and by how many shards which filter of rows was taken.
    """

    stats: dict[str, Any] = field(compare=False)

    noun = "table"
    # What `to_pandas` and CSV tell of each table.
    fields = (
        "table", "columns", "matched_keys", "total_keys", "joinability", "rows", "relation",
        "rows_per_query_row", "query_rows_per_row", "joined_rows", "brings",
    )  # fmt: skip

    def hints(self) -> Hints:
        """Find the rules that are off by which more keys would match, where few do."""
        return self._find_hints()

    def rows(self) -> list[dict[str, Any]]:
        """Return the values of `fields` for each table found."""
        rows = map(self._row_of, self.matches)
        return [{name: row[name] for name in self.fields} for row in rows]

    def _row_of(self, match: CompositeMatch) -> dict[str, Any]:
        return {**match.to_dict(), **vars(match.fan_out)}
