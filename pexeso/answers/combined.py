"""Combined answer: one list of the columns that semantic, exact-value or program search finds.

The list says which of the searches found each column.

Shares are comparable enough to rank by: semantically that of the query column's distinct values
with a match, by equal values that of those which the other column has, by programs that of those
with an equal value after one. A column is ranked by the largest of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from pexeso.errors import InputError
from pexeso.options import ALL, columns_wanted
from pexeso.results import Match
from pexeso.runtime.formatting import percent
from pexeso.search.column_matches import ColumnMatch, ColumnMatches
from pexeso.search.copies import fold, lines_compared, lines_of
from pexeso.search.query import query_from_values
from pexeso.search.table_columns import TableColumns
from pexeso.token_search.copies import sets_of_matches
from pexeso.token_search.overlap_search import overlap_with
from pexeso.token_search.query import token_query
from pexeso.token_search.results import TokenMatch

if TYPE_CHECKING:
    from pexeso.index import Index
    from pexeso.transform_search.results import TransformMatch

MEANING, OVERLAP, CONTAINMENT, TRANSFORM = "meaning", "overlap", "containment", "transform"
"""The searches whose answers are put together; those by several models have the models' names."""

CANDIDATES = 32
"""Columns from which programs are learned, unless another number is asked for: fewer than where
programs alone are searched for, so that the other searches need not wait long for it."""

_joinability = attrgetter("joinability")

FIELDS = (
    "table",
    "column",
    "share",
    "found_by",
    "joinability",
    "matched",
    "total",
    "joinability_of",
    "overlap",
    "containment",
    "transformed",
    "program",
)


@dataclass(frozen=True, repr=False)
class CombinedMatch(ColumnMatch):
    """A column found, with its evidence.

    Attributes
    ----------
    table, column : str
    found_by : tuple of str
        Which searches found it: ``"meaning"``, or of an index of several models their names;
        ``"overlap"``, ``"containment"``, ``"transform"``.
    meaning : Match or None
        None where semantic search did not find it; of several models that of the largest
        joinability.
    equal_text : TokenMatch or None
        None where it shares no value with the query, or is no token set of the index.
    by_model : dict of str to Match or None
        Of an index of several models what each found, by its name; else empty.
    transform : TransformMatch or None
        None where no program was found that joins it.
    """

    found_by: tuple[str, ...]
    meaning: Match | None
    equal_text: TokenMatch | None
    by_model: Mapping[str, Match | None] = field(default_factory=dict)
    transform: TransformMatch | None = None

    def _measured(self) -> str:
        return f"{percent(self.share)} by {', '.join(self.found_by)}"

    @property
    def share(self) -> float:
        """Return the share that the column is ranked by, in [0, 1].

        It is the largest of semantic joinability, exact-value containment, and joinability after
        a program.
        """
        return max(self._shares)

    @property
    def rank(self) -> tuple[float, float, str, str]:
        """What results are ordered by: the largest share, and that without a program, then names.

        Of the share without a program the smaller one counts, of values alike and of equal ones.
        """
        return -max(self._shares), -min(self._shares[:2]), self.table, self.column

    @property
    def _shares(self) -> tuple[float, float, float]:
        return (
            self.meaning.joinability if self.meaning else 0.0,
            self.equal_text.containment if self.equal_text else 0.0,
            self.transform.joinability if self.transform else 0.0,
        )

    def to_dict(self, *, explain: bool = False) -> dict[str, Any]:
        """Return the plain JSON form.

        It has the keys `FIELDS`, null where a search has nothing to say; see
        `CombinedResult.to_dict`.
        """
        by_meaning = dict.fromkeys(("joinability", "matched", "total", "joinability_of"))
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
        told["transformed"] = self.transform.joinability if self.transform else None
        told["program"] = self.transform.program if self.transform else None
        if self.by_model:
            found = self.by_model.items()
            told["models"] = {name: match and match.joinability for name, match in found}
        if explain:
            told["pairs"] = (
                [pair.to_list() for pair in self.meaning.pairs()] if self.meaning else []
            )
            told |= self.equal_text.explained() if self.equal_text else {"shared": []}
            if self.transform is not None:
                told["transform"] = self.transform.to_dict(explain=True)
        return told


@dataclass(frozen=True, repr=False)
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
    """

    stats: dict[str, Any]

    @property
    def fields(self) -> tuple[str, ...]:  # type: ignore[override]  # read only here
        """What `to_pandas` and CSV tell of each column found."""
        return (*FIELDS, *(("n_copies",) if self.folded else ()), "brings")

    def to_dict(self, *, explain: bool = False, hints: bool = False) -> dict[str, Any]:
        """Return the plain JSON form that the command line prints.

        Parameters
        ----------
        explain : bool
            Add ``"pairs"``, values that match semantically, and ``"shared"``, values that both
            columns have, to each result; ``"transform"``, with SQL, Python and pairs, where a
            program joins it.
        hints : bool
            Add ``"hints"`` where nothing was found; see `hints`.
        """
        results = [
            self._with_copies(match.to_dict(explain=explain), match) for match in self.matches
        ]
        return {**self._as_json(results, hints=hints), "stats": self.stats}


def search_combined(
    index: Index,
    values: Any,
    *,
    on: str | int | None = None,
    k: int | str | None = None,
    min_containment: float | None = None,
    exclude_self: bool = False,
    fold_copies: bool = True,
    models: Iterable[str] | None = None,
    max_candidates: int = CANDIDATES,
    **options: Any,
) -> CombinedResult:
    """Combine semantic, overlap, containment and program search in one ranked list.

    Containment search takes part only where the index has that part.

    Parameters
    ----------
    index : Index
    values, on
        As in `Index.search`.
    k : int or "all", optional
        The k best of the whole list, to which each search gives its k best. Without k they are
        `DEFAULT_COLUMNS`, of all that semantic and containment search find and as many by overlap.
    min_containment : float, optional
        In (0, 1]; by default the smallest joinability that was asked for.
    exclude_self : bool
    fold_copies : bool
        Fold columns that hold the same values, as equal texts, or nearly the same.
    models : iterable of str, optional
        Of the models that the index holds those to search by; by default all of them.
    max_candidates : int
        Columns that programs are learned from, at least 1.
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
    column, wanted = query_from_values(values, on=on), columns_wanted(k)
    alike = {"exclude_self": exclude_self, "fold_copies": fold_copies}
    # Without k the thresholds say what is found.
    given = {"k": ALL if k is None else k, **options}
    by_overlap = index.overlap(column, k=ALL if wanted is None else wanted, **alike)
    # The list has an order of its own.
    semantic = {
        name: each.search(column, method="semantic", **{"rerank": False, **alike, **given})
        for name, each in _by_model(index, models).items()
    }
    by_meaning = next(iter(semantic.values()))
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for name, each in (*semantic.items(), (OVERLAP, by_overlap)):
        _add(found, name, each)
    told = {name: each.options.to_dict() for name, each in semantic.items()}
    told[OVERLAP] = by_overlap.options
    stats = {name: each.stats for name, each in (*semantic.items(), (OVERLAP, by_overlap))}
    are_counted = [each.n_more == 0 for each in (*semantic.values(), by_overlap)]
    if "containment" in index.parts:
        least = min_containment
        if least is None:
            least = by_meaning.options.min_joinability or 1.0
        contained = index.contain(column, min_containment=least, k=given["k"], **alike)
        _add(found, CONTAINMENT, contained)
        told[CONTAINMENT], stats[CONTAINMENT] = contained.options, contained.stats
        are_counted.append(contained.n_more == 0)
    elif min_containment is not None:
        raise InputError(
            f"The index '{index.path}' has no part for searches by containment, so "
            "min_containment has no meaning: add it with "
            f"'pexeso contain build {index.path}', or leave min_containment out."
        )
    transformed = index.search(
        column,
        method="transform",
        k=given["k"],
        min_joinability=by_meaning.options.min_joinability,
        max_candidates=max_candidates,
        **alike,
    )
    _add(found, TRANSFORM, transformed)
    told[TRANSFORM], stats[TRANSFORM] = transformed.options, transformed.stats
    are_counted.append(transformed.n_more == 0)
    query = token_query(column, index.normaliser)
    matches = _with_overlaps(index, query, found, list(semantic))
    lines = _lines(matches, wanted) if fold_copies else [[match] for match in matches]
    columns = TableColumns(index, (line[0].table for line in lines[:wanted]))
    shown = []
    for line in lines[:wanted]:
        first, *copies = (replace(match, _columns=columns) for match in line)
        shown.append(replace(first, copies=tuple(copies)))
    return CombinedResult(
        {**by_meaning.query, "values": by_overlap.query["values"]},
        told,
        tuple(shown),
        stats,
        n_more=len(lines) - len(shown) if all(are_counted) else None,
        folded=fold_copies,
        _find_hints=by_meaning.hints,
    )


def _by_model(index: Index, models: Iterable[str] | None) -> dict[str, Index]:
    """Return the index as it searches by each model, by the name of the search."""
    there = index.models
    if len(there) == 1 and models is None:
        return {MEANING: index}
    names = there if models is None else tuple(dict.fromkeys(models))
    if not names:
        raise InputError(
            f"models must name some of those that the index holds, {', '.join(there)}. Got none."
        )
    by_model = {name: index.with_model(name) for name in names}
    return by_model if len(there) > 1 else {MEANING: index}


def _add(found: dict[tuple[str, str], dict[str, Any]], how: str, result: Iterable[Any]) -> None:
    """Add the columns that a search found, copies too."""
    for match in (each for line in result for each in (line, *line.copies)):
        found.setdefault((match.table, match.column), {})[how] = match


def _lines(matches: Sequence[CombinedMatch], limit: int | None) -> list[list[CombinedMatch]]:
    """Fold columns that hold nearly the same equal texts; those of no text stand alone."""
    texts = {n: match.equal_text for n, match in enumerate(matches) if match.equal_text is not None}
    at = list(texts)
    first_of = np.arange(len(matches))
    if len(at) > 1:
        sets = sets_of_matches(list(texts.values()))
        first_of[at] = np.array(at)[fold(sets, lines_compared(limit))]
    return [[matches[position] for position in line] for line in lines_of(first_of)]


def _with_overlaps(
    index: Index, query: Any, found: dict[tuple[str, str], dict[str, Any]], semantic: list[str]
) -> tuple[CombinedMatch, ...]:
    """Add to each column what it shares as equal values, where semantic search alone found it.

    `semantic` names the semantic searches.
    """
    lacking = [name for name, by in found.items() if OVERLAP not in by and CONTAINMENT not in by]
    counted = dict(zip(lacking, overlap_with(index.shards, query, lacking), strict=True))
    matches = []
    for name, by in found.items():
        equal_text = by.get(OVERLAP) or by.get(CONTAINMENT) or counted.get(name)
        by_model = {model: by.get(model) for model in semantic}
        best = max(filter(None, by_model.values()), key=_joinability, default=None)
        ways = (*semantic, OVERLAP, CONTAINMENT, TRANSFORM)
        found_by = tuple(how for how in ways if how in by)
        told = {} if semantic == [MEANING] else by_model
        transform = by.get(TRANSFORM)
        matches.append(CombinedMatch(*name, found_by, best, equal_text, told, transform))
    return tuple(sorted(matches, key=lambda match: match.rank))
