"""Combined answer: one list of the columns found by semantic, overlap and containment search.

The list says which of the searches found each column.

Shares are comparable enough to rank by: semantically that of the query column's rows with a match,
by equal values that of its distinct values which the other column has. A column is ranked by the
larger of the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pexeso.errors import InputError
from pexeso.options import DEFAULT_OVERLAP_COLUMNS
from pexeso.results import Match
from pexeso.search.column_matches import ColumnMatch, ColumnMatches
from pexeso.search.query import query_from_values
from pexeso.token_search.overlap_search import overlap_with
from pexeso.token_search.query import token_query
from pexeso.token_search.results import TokenMatch

if TYPE_CHECKING:
    from pexeso.index import Index

MEANING, OVERLAP, CONTAINMENT = HOWS = ("meaning", "overlap", "containment")
"""The searches whose answers are put together."""

FIELDS = (
    "table",
    "column",
    "share",
    "found_by",
    "joinability",
    "matched",
    "total",
    "overlap",
    "containment",
)


@dataclass(frozen=True)
class CombinedMatch(ColumnMatch):
    """A column found, with its evidence.

    Attributes
    ----------
    table, column : str
    found_by : tuple of str
        Which searches found it, of `HOWS`.
    meaning : Match or None
        None where semantic search did not find it.
    equal_text : TokenMatch or None
        None where it shares no value with the query, or is no token set of the index.
    """

    found_by: tuple[str, ...]
    meaning: Match | None
    equal_text: TokenMatch | None

    @property
    def share(self) -> float:
        """Return the share that the column is ranked by, in [0, 1].

        It is the larger of semantic joinability and exact-value containment.
        """
        return max(self._shares)

    @property
    def rank(self) -> tuple[float, float, str, str]:
        """What results are ordered by: the larger share, the smaller one, table and column."""
        return -max(self._shares), -min(self._shares), self.table, self.column

    @property
    def _shares(self) -> tuple[float, float]:
        return self.meaning.joinability if self.meaning else 0.0, (
            self.equal_text.containment if self.equal_text else 0.0
        )

    def to_dict(self, *, explain: bool = False) -> dict[str, Any]:
        """Return the plain JSON form.

        It has the keys `FIELDS`, null where a search has nothing to say; see
        `CombinedResult.to_dict`.
        """
        by_meaning = dict.fromkeys(("joinability", "matched", "total"))
        if self.meaning is not None:
            by_meaning = {name: getattr(self.meaning, name) for name in by_meaning}
        by_text = dict.fromkeys(("overlap", "containment"))
        if self.equal_text is not None:
            by_text = {name: getattr(self.equal_text, name) for name in by_text}
        told = {
            "table": self.table,
            "column": self.column,
            "share": self.share,
            "found_by": list(self.found_by),
        }
        told |= by_meaning | by_text
        if explain:
            told["pairs"] = (
                [pair.to_list() for pair in self.meaning.pairs()] if self.meaning else []
            )
            told["shared"] = self.equal_text.shared() if self.equal_text else []
        return told


@dataclass(frozen=True)
class CombinedResult(ColumnMatches[CombinedMatch]):
    """The columns found by any search, best first; see `CombinedMatch.rank`.

    Attributes
    ----------
    query : dict
        What `pexeso.results.SearchResult` tells of the query, and ``values``: its distinct ones as
        equal texts.
    options : dict
        What each search was asked for.
    matches : tuple of CombinedMatch
    stats : dict
        Of each search.
    fields : tuple of str
        What `to_dict` and CSV tell of each column found.
    """

    stats: dict[str, Any]
    fields: ClassVar[tuple[str, ...]] = FIELDS

    def to_dict(self, *, explain: bool = False) -> dict[str, Any]:
        """Return the plain JSON form that the command line prints.

        Parameters
        ----------
        explain : bool
            Add ``"pairs"``, values that match semantically, and ``"shared"``, values that both
            columns have, to each result.
        """
        results = [match.to_dict(explain=explain) for match in self.matches]
        return {
            "query": self.query,
            "options": self.options,
            "results": results,
            "stats": self.stats,
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return `fields` of each column found, null where a search has nothing to say."""
        return [match.to_dict() for match in self.matches]


def search_combined(
    index: Index,
    values: Any,
    *,
    k: int | None = None,
    min_containment: float | None = None,
    exclude_self: bool = False,
    **options: Any,
) -> CombinedResult:
    """Combine semantic search, overlap search and containment search in one ranked list.

    Containment search takes part only where the index has that part.

    Parameters
    ----------
    index : Index
    values
        As in `Index.search`.
    k : int, optional
        Only the k best of the whole list. Each search gives its k best to it, that by overlap
        `DEFAULT_OVERLAP_COLUMNS` without k.
    min_containment : float, optional
        In (0, 1]; by default the smallest joinability that was asked for.
    exclude_self : bool
    **options
        Of semantic search; see `Index.search`.

    Returns
    -------
    CombinedResult
        Joinability is exact for what semantic search found, overlap and containment for every
        column.

    Raises
    ------
    InputError
        As for `Index.search` and `Index.overlap`.
    """
    column = query_from_values(values)
    given = options if k is None else {"k": k, **options}
    by_overlap = index.overlap(
        column, k=DEFAULT_OVERLAP_COLUMNS if k is None else k, exclude_self=exclude_self
    )
    # The list has an order of its own.
    by_meaning = index.search(column, exclude_self=exclude_self, **{"rerank": False, **given})
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for match in by_meaning:
        found.setdefault((match.table, match.column), {})[MEANING] = match
    for match in by_overlap:
        found.setdefault((match.table, match.column), {})[OVERLAP] = match
    told = {MEANING: by_meaning.options.to_dict(), OVERLAP: by_overlap.options}
    stats = {MEANING: by_meaning.stats, OVERLAP: by_overlap.stats}
    if "containment" in index.parts:
        least = min_containment
        if least is None:
            least = by_meaning.options.min_joinability or 1.0
        contained = index.contain(column, min_containment=least, k=k, exclude_self=exclude_self)
        for match in contained:
            found.setdefault((match.table, match.column), {})[CONTAINMENT] = match
        told[CONTAINMENT], stats[CONTAINMENT] = contained.options, contained.stats
    elif min_containment is not None:
        raise InputError(
            f"The index '{index.path}' has no part for searches by containment, so "
            "min_containment has no meaning: add it with "
            f"'pexeso contain build {index.path}', or leave min_containment out."
        )
    matches = _with_overlaps(index, token_query(column), found)
    query = {**by_meaning.query, "values": by_overlap.query["values"]}
    return CombinedResult(query, told, matches[:k], stats)


def _with_overlaps(
    index: Index, query: Any, found: dict[tuple[str, str], dict[str, Any]]
) -> tuple[CombinedMatch, ...]:
    """Add to each column what it shares as equal values, where semantic search alone found it."""
    lacking = [name for name, by in found.items() if OVERLAP not in by and CONTAINMENT not in by]
    counted = dict(zip(lacking, overlap_with(index.shards, query, lacking), strict=True))
    matches = []
    for name, by in found.items():
        equal_text = by.get(OVERLAP) or by.get(CONTAINMENT) or counted.get(name)
        matches.append(
            CombinedMatch(
                *name, tuple(how for how in HOWS if how in by), by.get(MEANING), equal_text
            )
        )
    return tuple(sorted(matches, key=lambda match: match.rank))
