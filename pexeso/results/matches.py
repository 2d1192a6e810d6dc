"""What a search returns: columns, best first, each with its matching values on demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
import pyarrow as pa

from pexeso.errors import InputError
from pexeso.lake.frames.tables import Tabular
from pexeso.options import VALUES, SearchOptions, whole_number
from pexeso.results.column_matches import (
    ColumnMatch,
    ColumnMatches,
    Hints,
    Unmatched,
    WouldMatch,
    common_names,
    join_rank,
)
from pexeso.results.match_kinds import MAX_CURVES, KindCounts, Pair, plot_curves, plot_kinds
from pexeso.runtime.formatting import many, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pexeso.engine.stats import SearchStats
    from pexeso.joins.match_details import MatchDetails
    from pexeso.joins.sql import JoinSql
    from pexeso.joins.tables import Joined
    from pexeso.semantic.word_contributions import WordContributions

__all__ = ["Explanation", "Match", "Pair", "SearchResult", "Unmatched"]

PAIR_FIELDS = ("query", "value", "distance", "key", "kind")


# Pairs of a column of which it is said in what forms they are compared.
MAX_FORMS = 1000

# Pairs of a column that JSON and a text for people list.
MAX_LISTED_PAIRS = 100_000


@dataclass(frozen=True, repr=False)
class Match(ColumnMatch, Tabular):
    """A column that the query column can be joined with.

    Attributes
    ----------
    table : str
        Path of the table, relative to the lake.
    column : str
        The column's name, or ``#position`` where the header repeats or lacks it.
    joinability : float
        ``matched / total``: a lower bound where the search was asked to ``counts="decide"``.
    matched : int
        Distinct values of the query column, or its rows, that match a value of this column: by
        `pexeso.options.SearchOptions.joinability_of`.
    total : int
        Values, or rows, of the query column that count: the paper's |Q|.
    column_id : int
        Number of the column in the index.
    joinability_of : {"values", "rows"}
        What `matched` and `total` count.
    similarity : float or None
        How near the values of the query column are to this column, on average: 1 where each has an
        equal one (`pexeso.semantic.similarity`). None where the search was not asked to
        re-rank, and beyond the first 200 columns found.
    """

    joinability: float
    matched: int
    total: int
    column_id: int
    _details: MatchDetails = field(repr=False, compare=False)
    _position: int = field(repr=False, compare=False)
    similarity: float | None = field(default=None, compare=False)
    joinability_of: str = VALUES

    fields = PAIR_FIELDS  # of `to_pandas`; of no dataclass field

    def rows(self) -> list[dict[str, Any]]:
        """Return the values of `fields` for each of `pairs`."""
        return [{name: getattr(pair, name) for name in self.fields} for pair in self.pairs()]

    def _field_types(self) -> dict[str, pa.DataType]:
        return {name: pa.float64() if name == "distance" else pa.string() for name in self.fields}

    def _measured(self) -> str:
        of = f"{self.matched:,} of {self.total:,} {self.joinability_of}"
        return f"{of} match ({percent(self.joinability)})"

    def pairs(self, limit: int | None = None) -> list[Pair]:
        """Return every pair of matching values: in the query's order, nearest first.

        The list holds the first `limit` pairs, or all.
        """
        if limit is not None:
            limit = min(whole_number("limit", limit, 0), self.n_pairs)
        return self._details.pairs(self._position, limit)

    @property
    def n_pairs(self) -> int:
        """How many pairs of values match."""
        return self._details.n_pairs(self._position)

    def streamed_pairs(self) -> Iterator[Pair]:
        """Yield `pairs` one after the other, without a list of all of them."""
        return self._details.streamed_pairs(self._position)

    def listed_pairs(self) -> list[Pair]:
        """Return `pairs`, or of more than 100,000 of them the nearest of each value that fit."""
        return self._details.nearest_of_each(self._position, MAX_LISTED_PAIRS)

    def kinds(self) -> KindCounts:
        """Count pairs and values by what makes them match; see `pexeso.results.match_kinds`."""
        return self._details.kinds(self._position)

    def forms(self, limit: int = MAX_FORMS) -> dict[str, str]:
        """Return the forms in which texts of the first pairs are compared, if they are others.

        A form is another where it has other words: ``mount everest`` of ``Mt. Everest``, or
        ``moskva (Latin spelling)`` of ``Москва``.
        """
        return self._details.forms(self._position, limit)

    def word_contributions(self, n: int = 10) -> WordContributions:
        """Find the words that carry the match, at most `n`, heaviest first.

        Of each query value the nearest pair is looked at. A word weighs what the distance of its
        pair grows by without it, each pair counting alike. At most 4,096 texts are embedded for
        that: of a column with more, pairs evenly spread over it are looked at, and `pairs_read`
        says how many.
        """
        whole_number("n", n, 0)
        return self._details.word_contributions(self._position, n)

    def unmatched(self, limit: int | None = None) -> tuple[Unmatched, ...]:
        """List the query texts without a match here, with their nearest lake values.

        The list holds the first `limit` texts, or all.
        """
        if limit is not None:
            whole_number("limit", limit, 0)
        return self._details.unmatched(self._position, limit)

    def join(
        self,
        table: Any,
        on: str | int | None = None,
        *,
        values: str = "nearest",
        how: str = "left",
        aggregate: str | Mapping[str, str] | None = None,
        suffix: str | None = None,
        provenance: Sequence[str] = ("value", "distance"),
        many_to_many: bool = False,
        to: str | None = None,
    ) -> Any:
        """Join this column's table to `table`.

        Parameters
        ----------
        table : pandas.DataFrame, pyarrow.Table, polars.DataFrame or pyspark.sql.DataFrame
            Yours; it holds the query column. Rows are joined by the text that the query column had.
            Also a LazyFrame of polars, which is collected, and what else
            `pexeso.lake.frames.tables.frame_of` takes, which becomes an Arrow table.
        on : str or int, optional
            Name or position of the query column in `table`; the query's own name by default.
        values : {"nearest", "one-to-one", "all"}
            Which of the lake values that match a query value are joined: the nearest; none of them
            twice, as many as possible and with the least total distance; or all.
        how : {"left", "inner"}
            Keep the rows of `table` without a match, or drop them.
        aggregate : str or mapping, optional
            Without it a row is repeated where several rows of the found table match. With
            ``first``, ``list``, ``distinct``, ``count``, ``mean``, ``sum``, ``min`` or ``max``, for
            all columns of the found table or for those named
            (``{"people": "mean", "*": "first"}``), it stays one.
        suffix : str, optional
            What is put behind names of the found table that are taken; by default they become
            ``table:column``.
        provenance : sequence of str
            Which of the columns ``match_table``, ``match_column``, ``match_value`` and
            ``match_distance`` are added: ``table``, ``column``, ``value``, ``distance``. A column
            of your table with such a name stays, and the added ones are called ``match_value_2``
            and so on.
        many_to_many : bool
            Allow a join of more than ten rows for each row of `table` and more than 5,000, which is
            refused otherwise unless rows are aggregated; see `pexeso.joins.report`.
        to : {"pandas", "arrow", "polars"}, optional
            The kind of table given back; by default that of `table`.

        Returns
        -------
        pandas.DataFrame, pyarrow.Table, polars.DataFrame or pyspark.sql.DataFrame
            The columns of `table`, in its order of rows (Spark keeps no order), numbered from 0 in
            pandas: `reset_index` makes a column of an index; those of
            provenance; those of the found table, with the types of its file, as text where it has
            none, unless aggregated.

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
            on,
            values=values,
            how=how,
            aggregate=aggregate,
            suffix=suffix,
            provenance=provenance,
            many_to_many=many_to_many,
            to=to,
        ).table

    def join_with_report(
        self, table: Any, on: str | int | None = None, *, to: str | None = None, **options: Any
    ) -> Joined:
        """Join as `join` does, with its options, and report what the join did.

        Returns
        -------
        Joined
            ``table``, what `join` returns; ``report``, a `pexeso.joins.report.JoinReport`: rows
            joined, and where the join had to choose.
        """
        return self._details.join(self, table, on, to, options)

    def sql(
        self,
        table: str = "your_table",
        on: str | None = None,
        *,
        values: str = "nearest",
        how: str = "left",
    ) -> str:
        """Write the join of this column's table with your table as a statement for DuckDB.

        It has the columns and rows of ``join(..., provenance=())``, in any order, for the values
        that were searched with; texts that differ are listed in it. The table of the lake is read
        by DuckDB's own readers where these give the rows that `join` does, and is otherwise named
        as `pexeso.Index.duckdb` registers it.

        Parameters
        ----------
        table : str
            The name of your table. Its cells are compared as DuckDB casts them to text.
        on : str, optional
            The query column there; the query's own name by default.
        values, how
            As in `join`.

        Raises
        ------
        MissingPackageError
            Duckdb is not installed.
        InputError
            An option is not one of those allowed, a name has characters that are not seen, or the
            index was built from Spark's tables.
        TableReadError, PlaceError
            The found table cannot be read.

        Examples
        --------
        >>> import duckdb
        >>> mine = pd.read_csv("mine.csv")  # doctest: +SKIP
        >>> duckdb.sql(found[0].sql("mine", on="city"))  # doctest: +SKIP
        """
        return self.sql_with_pairs(table, on, values=values, how=how).sql

    def sql_with_pairs(
        self,
        table: str = "your_table",
        on: str | None = None,
        *,
        lake_table: str | None = None,
        **options: Any,
    ) -> JoinSql:
        """Write the join as `sql` does, with what the statement rests on.

        `lake_table` is what the table of the lake is called in the statement, in place of what
        reads it; duckdb need not be installed then.
        """
        return self._details.sql(self, on, options, (table, lake_table))

    def curve(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the joinability within each distance, up to that of the search.

        Returns
        -------
        distances : float64 (n,)
            Those at which a value of the query column gets its first match, ascending.
        joinability : float64 (n,)
            Within each of them; the last is that of the search, unless it was asked to
            ``counts="decide"``.
        """
        distances, matched = self._details.curve(self._position)
        return distances, matched / self.total if self.total else np.zeros(len(distances))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw how many values, or rows, match by which kind, with matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Raises
        ------
        MissingPackageError
            Matplotlib is not installed.
        """
        return plot_kinds(
            f"{self.table}:{self.column}", self.kinds().matched, self.joinability_of, ax
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form that the command line prints."""
        names = ("table", "column", "joinability", "matched", "total", "joinability_of")
        similarity = {} if self.similarity is None else {"similarity": self.similarity}
        return {name: getattr(self, name) for name in names} | similarity


def pairs_document(match: Match) -> dict[str, Any]:
    """Return the pairs that are listed of a match as plain JSON, and how many are not, if any."""
    pairs = match.listed_pairs()
    left_out = match.n_pairs - len(pairs)
    return {
        "pairs": [pair.to_list() for pair in pairs],
        **({"pairs_left_out": left_out} if left_out else {}),
    }


@dataclass(frozen=True, repr=False)
class SearchResult(ColumnMatches[Match]):
    """The columns found, best first.

    They are ordered by joinability, ties by table, then column, or first by similarity.

    Attributes
    ----------
    query : dict
        The query: where it came from, its rows, distinct values, and how many could not match and
        why.
    options : SearchOptions
        What was asked for, defaults filled in.
    matches : tuple of Match
    reranked : bool
        Whether the search was asked to re-rank: the first 200 matches then have a `similarity`.
    """

    options: SearchOptions
    _stats: SearchStats = field(repr=False, compare=False)
    reranked: bool = False

    @property
    def stats(self) -> dict[str, Any]:
        """Work counters and seconds by phase: see `pexeso.engine.stats.SearchStats`."""
        return self._stats.to_dict()

    # Of no dataclass field.
    measures = ("table", "column", "joinability", "matched", "total", "joinability_of")

    @property
    def fields(self) -> tuple[str, ...]:  # type: ignore[override]  # read only here
        """The columns of `to_pandas` and CSV."""
        return (*super().fields, *(("similarity",) if self.reranked else ()))

    def join(self, table: Any, on: str | int | None = None, **options: Any) -> Any:
        """Join the table of the best column to `table`; see `Match.join`.

        Raises
        ------
        InputError
            Nothing was found, so there is nothing to join with.
        """
        if not self.matches:
            raise InputError(
                f"No column was found within distance {self.options.max_distance:g}, so there is "
                "none to join with. "
                "Try a larger max_distance, a smaller min_joinability, or k=1 for the best there "
                "is."
            )
        return self.matches[0].join(table, on, **options)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the joinability of the columns found over the distance, with matplotlib.

        The first 8 are drawn, up to the distance of the search, beyond which nothing is known: to
        see more, search with a larger `max_distance`.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Raises
        ------
        MissingPackageError
            Matplotlib is not installed.
        """
        curves = [
            (f"{match.table}:{match.column}", *match.curve()) for match in self.matches[:MAX_CURVES]
        ]
        options = self.options
        n_found = len(self.matches) + (self.n_more or 0)
        return plot_curves(curves, n_found, options.max_distance, options.joinability_of, ax)

    def to_html(self, stream: TextIO | None = None) -> str | None:
        """Create a self-contained HTML page of the columns found.

        For each column it shows why it was found, its pairs, and the two tables side by side.

        At most 24 columns are shown in full and 200 listed, with 100 pairs, 25 values without a
        match and 20 rows each; what is left out is counted on the page. A page of a usual result
        has some hundred kilobytes, and none has more than 20 MB.

        Parameters
        ----------
        stream : text stream, optional
            Open for writing as UTF-8; the page is written to it piece by piece.

        Returns
        -------
        str or None
            The page, where no stream was given.

        Examples
        --------
        >>> with open("report.html", "w", encoding="utf-8") as stream:  # doctest: +SKIP
        ...     index.search(["Oslo", "Rome"]).to_html(stream)
        """
        from pexeso.results.pages.page import results_page, written

        return written(results_page([self]), stream)

    def _tie_break(self, match: Match) -> str:
        """Return which name puts a column before others that are as good; empty where none does.

        It is ``"column name"`` or ``"table name"``: it has a word of yours.
        """
        ours = common_names(self.query, match.table, match.column)
        for other in self._tied[self._tie_of(match)]:
            theirs = common_names(self.query, other.table, other.column)
            if ours > theirs:
                return "column name" if ours[0] > theirs[0] else "table name"
        return ""

    @cached_property
    def _tied(self) -> dict[tuple[Any, ...], list[Match]]:
        tied: dict[tuple[Any, ...], list[Match]] = {}
        for match in self.matches:
            tied.setdefault(self._tie_of(match), []).append(match)
        return tied

    def _tie_of(self, match: Match) -> tuple[Any, ...]:
        """Return what columns are ordered by before their names decide."""
        similarity = None if match.similarity is None else round(match.similarity, 2)
        return similarity, match.matched, join_rank(*match._sizes)

    def _described(self, match: Match, explain: bool) -> dict[str, Any]:
        result = match.to_dict()
        if self.reranked:  # each result has the same members, looked at or not
            result["similarity"] = match.similarity
        if explain:
            result["kinds"] = match.kinds().to_dict()
            result |= pairs_document(match)
        return result


@dataclass(frozen=True, repr=False)
class Explanation(Tabular):
    """How a query column and one column of the lake compare.

    Attributes
    ----------
    query : dict
        The query, as in `SearchResult`.
    options : SearchOptions
    match : Match
        Joinability and pairs; a joinability of 0 where nothing matches.
    readings : tuple of WouldMatch
        Rules that are off by which more codes would be equal.
    is_rejected : bool
        Whether a judgement says that the columns do not join, so that no search finds them.
    """

    query: dict[str, Any]
    options: SearchOptions
    match: Match
    readings: tuple[WouldMatch, ...] = ()
    is_rejected: bool = False

    fields = ("query", "value", "distance", "kind", "reason")  # of no dataclass field

    @cached_property
    def note(self) -> str | None:
        """How dates are read of which a column does not say what they mean."""
        return self.match._details.note_on_dates(self.match._position)

    @cached_property
    def unmatched(self) -> tuple[Unmatched, ...]:
        """The texts without a match, in the query's order, each once.

        Their nearest values are found when they are first asked for.
        """
        return self.match.unmatched()

    def _summary(self) -> str:
        return f"{self.match._summary()}, {many(len(self.unmatched), 'text')} without a match"

    def rows(self) -> list[dict[str, Any]]:
        """Return the values of `fields` for each pair, then for each text without a match.

        Pairs have a ``kind``, and the others a ``reason``: ``value`` and ``distance`` are then of
        the nearest lake value, where that is known.
        """
        pairs = [{**vars(pair), "reason": None} for pair in self.match.pairs()]
        others = [{**unmatched.to_dict(), "kind": None} for unmatched in self.unmatched]
        return [{name: row[name] for name in self.fields} for row in [*pairs, *others]]

    def _field_types(self) -> dict[str, pa.DataType]:
        return {name: pa.float64() if name == "distance" else pa.string() for name in self.fields}

    def to_html(self, stream: TextIO | None = None) -> str | None:
        """Create a self-contained HTML page of it, as `SearchResult.to_html` does.

        It shows up to 1,000 pairs, 200 values without a match, and 50 rows.

        Parameters
        ----------
        stream : text stream, optional
            As in `SearchResult.to_html`.
        """
        from pexeso.results.pages.page import explanation_page, written

        return written(explanation_page(self), stream)

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form that the command line prints."""
        return {
            "query": self.query,
            "options": self.options.to_dict(),
            **self.match.to_dict(),
            "kinds": self.match.kinds().to_dict(),
            "word_contributions": self.match.word_contributions().to_dict(),
            **pairs_document(self.match),
            "compared_as": self.match.forms(),
            "unmatched": [unmatched.to_dict() for unmatched in self.unmatched],
            **({"hints": Hints(readings=self.readings).to_dict()} if self.readings else {}),
            **({"rejected": True} if self.is_rejected else {}),
            **({} if self.note is None else {"note": self.note}),
        }
