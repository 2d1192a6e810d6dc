"""Combined answer: one list of the columns that semantic, exact-value or program search finds.

Shares are comparable enough to rank by: semantically that of the query column's distinct values
with a match, by equal values that of those which the other column has, by programs that of those
with an equal value after one. A column is ranked by the largest of them.

A column's rank rests on what all lists say, and each search lists columns by its own share: of two
columns with the largest share that there is, the one with the larger other share comes first, and
that may be far down in both lists. So lists are read as deep as need be, and no deeper (the
threshold algorithm of Fagin, Lotem and Naor, PODS 2001): what is read of one list is looked up in
the others, and a column in none of the parts read cannot be better than the last columns read are
together. What is better than that is surely in its place.

No column with a share below that of the k-th best is needed, so that the work is bounded by the
columns with at least that share, four times, however many more the lake has. Of columns with equal
shares only those are read that can come before the k-th.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pexeso.engine.copies import first_request, fold, lines_of, next_request
from pexeso.engine.stats import SearchStats
from pexeso.errors import InputError
from pexeso.options import ALL, columns_wanted, require_min_containment
from pexeso.results.column_matches import ColumnMatch, ColumnMatches, TableColumns
from pexeso.results.matches import Match, pairs_document
from pexeso.results.query import order_of_dates, query_from_values
from pexeso.runtime.formatting import percent, plain_scalar
from pexeso.semantic.explanation import locate_columns
from pexeso.semantic.search import semantic_hints
from pexeso.sets.results import TokenMatch
from pexeso.sets.searches import OverlapList, sets_of_matches

if TYPE_CHECKING:
    from pexeso.index import Index
    from pexeso.results.query import Hit, QueryColumn
    from pexeso.semantic.search import SemanticSearch
    from pexeso.sets.results import TokenMatch, TokenSearchResult
    from pexeso.sets.searches import OverlapList
    from pexeso.transform.search.results import TransformMatch

Name = tuple[str, str]
Rank = tuple[float, float, str, str]

CHUNK_SIZE = 16
"""Columns whose pairs with the query are held at a time, where they are counted."""


class SemanticList:
    """The columns that one model finds for a query column.

    With `min_joinability` every column that meets it is found at once, however many are wanted.
    """

    def __init__(
        self,
        search: SemanticSearch,
        column: QueryColumn,
        exclude_self: bool,
        user_options: Mapping[str, Any],
    ) -> None:
        common = search.search_options(user_options)
        started = time.perf_counter()
        orders = search.opened.orders(column)
        self._search, self._query = search, orders[0]
        self.stats = SearchStats()
        self.stats.add_seconds("open", search.opened.seconds)
        self.stats.add_seconds("embed", time.perf_counter() - started)
        self.options = search.options_for(self._query, common, exclude_self, user_options)
        if len(orders) > 1:
            # Dates that may have the day or the month first are read as more of them match.
            best = [self.options.with_limit(1)] * len(orders)
            answers = search.executor(search.opened.loader, orders, best)
            n_matched = [max([0, *(hit.matched for hit in hits)]) for hits, _ in answers]
            self._query = orders[n_matched.index(max(n_matched))]
        self._total = self._query.total(self.options)
        self._hits: list[Hit] = []
        self.is_whole = False  # whether all columns that the search finds are read
        self._counted: dict[Name, Hit | None] = {}
        self.describe = self._query.describe
        self.find_hints = partial(semantic_hints, search.opened, self._query, self.options)

    def read(self, n: int | None) -> None:
        """Search for the first n columns at least; None: for all."""
        if self.is_whole or (n is not None and n <= len(self._hits)):
            return
        limit = None if self.options.min_joinability is not None else n
        [(self._hits, spent)] = self._search.executor(
            self._search.opened.loader, [self._query], [self.options.with_limit(limit)]
        )
        self.stats.add(spent)
        self.is_whole = limit is None or len(self._hits) < limit
        self._counted |= {_name(hit): hit for hit in self._hits}

    def first(self, n: int | None) -> list[Name]:
        return [_name(hit) for hit in self._hits[:n]]

    def last_read(self, n: int | None) -> tuple[float, Name] | None:
        """Return share and name of the last of the first n columns; None where no more follow."""
        if self.is_whole and (n is None or len(self._hits) <= n):
            return None
        if not self._hits:
            return 0.0, ("", "")
        last = self._hits[-1 if n is None else min(n, len(self._hits)) - 1]
        return self._share(last), _name(last)

    def shares(self, names: Sequence[Name]) -> list[float]:
        """Return the joinability of named columns, 0 where the search would not find them."""
        unknown = [name for name in names if name not in self._counted]
        if self.is_whole:
            self._counted |= dict.fromkeys(unknown)
        else:
            self._count(unknown)
        hits = [self._counted[name] for name in names]
        return [0.0 if hit is None else self._share(hit) for hit in hits]

    def matches(self, names: Sequence[Name], columns: TableColumns) -> list[Match | None]:
        """Return the matches of named columns, whose evidence is found for all of them together."""
        self.shares(names)
        hits = [hit for name in names if (hit := self._counted[name]) is not None]
        matches = self._search.matches_of(self._query, self.options, hits, self.stats, columns)
        by_name = {_name(hit): match for hit, match in zip(hits, matches, strict=True)}
        return [by_name.get(name) for name in names]

    def _share(self, hit: Hit) -> float:
        return hit.matched / self._total if self._total else 0.0

    def _count(self, names: Sequence[Name]) -> None:
        self._counted |= dict.fromkeys(names)
        hits = locate_columns(self._search.opened.store, names)
        hits = [hit for hit in hits if hit.table != self.options.exclude_table]
        for start in range(0, len(hits), CHUNK_SIZE):
            some = hits[start : start + CHUNK_SIZE]
            counts = self._search.counts_of(self._query, self.options, some, self.stats)
            self._counted |= {
                _name(hit): replace(hit, matched=matched)
                for hit, matched in zip(some, counts, strict=True)
                if matched
            }


def _name(hit: Hit) -> Name:
    return hit.table, hit.label


class Known(NamedTuple):
    """What is known of a column."""

    rank: Rank
    name: Name
    equal_text: TokenMatch | None
    transform: TransformMatch | None


def rank_of(meaning: float, equal: float, program: float, name: Name) -> Rank:
    """Return what the columns of all lists are ordered by; the smallest is the best."""
    return -max(meaning, equal, program), -min(meaning, equal), *name


@dataclass(frozen=True)
class Best:
    columns: list[Known]
    n_sure: int  # no column that was not read comes before these
    is_whole: bool
    overlap: TokenSearchResult


def best_of_lists(
    semantic: Sequence[SemanticList],
    overlap: OverlapList,
    by_program: Mapping[Name, TransformMatch],
    wanted: int | None,
    *,
    n_lines: Callable[[Best], int],
    folds: bool,
    exclude_table: str | None = None,
) -> Best:
    """Read lists until the best columns make enough sure lines, as `n_lines` counts them."""
    n = None if wanted is None else first_request(wanted, folds=folds)
    while True:
        best = _read(semantic, overlap, by_program, n, exclude_table)
        if best.is_whole or wanted is None or n_lines(best) >= wanted:
            return best
        n = next_request(n or 1)


def _read(
    semantic: Sequence[SemanticList],
    overlap: OverlapList,
    by_program: Mapping[Name, TransformMatch],
    n: int | None,
    exclude_table: str | None,
) -> Best:
    """Read the first n columns of each list, and look all of them up in the others."""
    shared = overlap.read(n)
    are_read = shared.n_more == 0  # all that share a value
    for source in semantic:
        source.read(n)
    # Where nothing is left to look up, what was found anyway is not cut.
    depth = None if are_read and all(source.is_whole for source in semantic) else n
    listed = [name for source in semantic for name in source.first(depth)]
    sharing = [(match.table, match.column) for match in shared]
    names = [
        name for name in dict.fromkeys([*listed, *sharing, *by_program]) if name[0] != exclude_table
    ]
    if are_read:
        by_name = dict(zip(sharing, shared, strict=True))
        texts = [by_name.get(name) for name in names]
    else:
        texts = overlap.matches(names)
    by_model = [source.shares(names) for source in semantic]
    shares = [max(of_column) for of_column in zip(*by_model, strict=True)]
    columns = []
    for name, share, text in zip(names, shares, texts, strict=True):
        program = by_program.get(name)
        equal = text.containment if text else 0.0
        rank = rank_of(share, equal, program.joinability if program else 0.0, name)
        columns.append(Known(rank, name, text, program))
    columns.sort(key=lambda column: column.rank)
    last = shared[-1] if shared else None
    floor = (0.0, ("", "")) if last is None else (last.containment, sharing[-1])
    behind = _best_behind(
        [source.last_read(depth) for source in semantic], None if are_read else floor
    )
    n_sure = sum(behind is None or column.rank <= behind for column in columns)
    return Best(columns, n_sure, behind is None, shared)


def _best_behind(
    semantic: Sequence[tuple[float, Name] | None], equal: tuple[float, Name] | None
) -> Rank | None:
    """Return a rank that no column can be better than which no list was read down to.

    Each list gives the last column read; None where it was read to its end. None if all were.
    """
    open_lists = [last for last in semantic if last is not None]
    if not open_lists and equal is None:
        return None
    meaning = max((share for share, _ in open_lists), default=0.0)
    # Of several models the one that gives the largest share bounds the name too.
    named = min((name for share, name in open_lists if share == meaning), default=("", ""))
    text, text_name = (0.0, ("", "")) if equal is None else equal
    return rank_of(meaning, text, 0.0, max(named, text_name))


MEANING, OVERLAP, CONTAINMENT, TRANSFORM = "meaning", "overlap", "containment", "transform"
"""The searches whose answers are put together; those by several models have the models' names."""

CANDIDATES = 32
"""Columns from which programs are learned, unless another number is asked for: fewer than where
programs alone are searched for, so that the other searches need not wait long for it."""

_joinability = attrgetter("joinability")

FIELDS = (
    "table", "column", "share", "found_by", "joinability", "matched", "total", "joinability_of",
    "overlap", "containment", "transformed", "program",
)  # fmt: skip


@dataclass(frozen=True, repr=False)
class CombinedMatch(ColumnMatch):
    """A column found, with its evidence.

    Attributes
    ----------
    table, column : str
    found_by : tuple of str
        Which searches find it: ``"meaning"``, or of an index of several models their names;
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
        """The largest of joinability, containment and joinability after a program, in [0, 1]."""
        return max(self._shares)

    @property
    def rank(self) -> tuple[float, float, str, str]:
        """What results are ordered by: the largest share, the smaller without a program, names."""
        return rank_of(*self._shares, (self.table, self.column))

    @property
    def _shares(self) -> tuple[float, float, float]:
        return (
            self.meaning.joinability if self.meaning else 0.0,
            self.equal_text.containment if self.equal_text else 0.0,
            self.transform.joinability if self.transform else 0.0,
        )

    def to_dict(self, *, explain: bool = False) -> dict[str, Any]:
        """Return the plain JSON form.

        It has the keys `FIELDS`, null where a search has nothing to say. With `explain` there are
        ``"pairs"``, values that match semantically, ``"shared"``, values that both columns have,
        and ``"transform"``, with SQL, Python and pairs, where a program joins it.
        """
        meaning, text, program = self.meaning, self.equal_text, self.transform
        document = {
            "table": self.table,
            "column": self.column,
            "share": self.share,
            "found_by": list(self.found_by),
            **{
                name: None if meaning is None else getattr(meaning, name)
                for name in ("joinability", "matched", "total", "joinability_of")
            },
            "overlap": None if text is None else text.overlap,
            "containment": None if text is None else text.containment,
            "transformed": None if program is None else program.joinability,
            "program": None if program is None else program.program,
        }
        if self.by_model:
            matches = self.by_model.items()
            document["models"] = {name: match and match.joinability for name, match in matches}
        if explain:
            document |= pairs_document(meaning) if meaning else {"pairs": []}
            document |= text.explained() if text else {"shared": []}
            if program is not None:
                document["transform"] = program.to_dict(explain=True)
        return document


@dataclass(frozen=True, repr=False)
class CombinedResult(ColumnMatches[CombinedMatch]):
    """The columns found by any search, best first; see `CombinedMatch.rank`.

    Attributes
    ----------
    query : dict
        As in `pexeso.results.matches.SearchResult`, and ``values``: the distinct ones as equal
        texts.
    options : dict
        What each search was asked for.
    matches : tuple of CombinedMatch
    stats : dict
        Of each search; containment has those of overlap, which counts for both.
    """

    stats: dict[str, Any]

    measures = FIELDS  # of no dataclass field


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

    The equal values of a column decide whether overlap and containment search find it, the
    latter only where the index has that part.

    Parameters
    ----------
    index : Index
    values, on
        As in `Index.search`.
    k : int or "all", optional
        The k best of the whole list, which begins as the list of a larger k does. By default
        `DEFAULT_COLUMNS`. A number without `min_joinability` ranks by however few values that match
        semantically; else what has a smaller share of them does not count as found by meaning.
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
        Of semantic search; see `Index.search`. No search finds `exclude_table`.

    Returns
    -------
    CombinedResult
        Joinability, overlap and containment are exact for every column, whichever search found it
        first. Copies are those among what had to be read.

    Raises
    ------
    InputError
        As for `Index.search` and `Index.overlap`.

    Notes
    -----
    Each search gives some more columns than k, and more where these leave open which are the k best
    of all (`pexeso.semantic.answers.combined`).
    """
    column, k = query_from_values(values, on=on), plain_scalar(k)
    limit = columns_wanted(k)
    overlap = OverlapList(index._snapshot.equal_text, column, exclude_self)
    # Without k the thresholds say what is found.
    semantic_options = {"k": ALL if k is None else k, **options}
    semantic_options.pop("rerank", None)  # the list has an order of its own
    semantic = {
        name: SemanticList(model_index._snapshot.semantic, column, exclude_self, semantic_options)
        for name, model_index in _by_model(index, models).items()
    }
    first = next(iter(semantic.values()))
    floor = _least_containment(index, min_containment, first.options.min_joinability)
    transformed = index.search(
        column,
        method="transform",
        k=ALL,
        min_joinability=first.options.min_joinability,
        max_candidates=max_candidates,
        exclude_self=exclude_self,
        fold_copies=False,
    )
    best = best_of_lists(
        list(semantic.values()),
        overlap,
        {(match.table, match.column): match for match in transformed},
        limit,
        n_lines=lambda best: sum(at[0] < best.n_sure for at in _lines(best, fold_copies, limit)),
        folds=fold_copies,
        exclude_table=first.options.exclude_table,
    )
    lines = _lines(best, fold_copies, limit)
    shown = [[best.columns[at] for at in line] for line in lines[:limit]]
    request = {"k": semantic_options["k"], "exclude_table": best.overlap.options["exclude_table"]}
    settings = {name: source.options.to_dict() for name, source in semantic.items()}
    stats: dict[str, Any] = {name: source.stats.to_dict() for name, source in semantic.items()}
    stats |= {OVERLAP: best.overlap.stats, TRANSFORM: transformed.stats}
    settings[OVERLAP] = {**best.overlap.options, **request}
    if floor is not None:
        settings[CONTAINMENT] = {"min_containment": floor, "verify": True, **request}
        stats[CONTAINMENT] = best.overlap.stats  # overlap counts for both
    settings[TRANSFORM] = {**transformed.options, "k": semantic_options["k"]}
    matches = _matches(index, shown, semantic, floor)
    is_similar = any(match.meaning is not None for match in matches)
    orders = [first.describe().get("day_first")] if is_similar else []
    orders += [text._day_first for match in matches if (text := match.equal_text) is not None]
    return CombinedResult(
        {**first.describe(), "values": len(overlap.query), **order_of_dates(orders)},
        settings,
        matches,
        stats,
        n_more=len(lines) - len(shown) if best.is_whole else None,
        folded=fold_copies,
        _find_hints=first.find_hints,
    )


def _least_containment(
    index: Index, min_containment: float | None, min_joinability: float | None
) -> float | None:
    """Return the share that containment search asks for; None for an index without that part."""
    if "containment" in index.parts:
        floor = min_joinability or 1.0 if min_containment is None else plain_scalar(min_containment)
        require_min_containment(floor)
        return floor
    if min_containment is not None:
        raise InputError(
            f"The index '{index.path}' has no part for searches by containment, so "
            "min_containment has no meaning: add it with "
            f"'pexeso add-part {index.path} containment', or leave min_containment out."
        )
    return None


def _by_model(index: Index, models: Iterable[str] | None) -> dict[str, Index]:
    """Return the index as it searches by each model, by the name of the search."""
    existing = index.models
    if len(existing) == 1 and models is None:
        return {MEANING: index}
    names = existing
    if models is not None:
        if isinstance(models, str) or not isinstance(models, Iterable):
            raise InputError(f"models must be a list of names. Got {models!r}.")
        names = tuple(dict.fromkeys(models))
    if not names:
        raise InputError(
            f"models must name some of those that the index holds, {', '.join(existing)}. Got none."
        )
    by_model = {name: index.with_model(name) for name in names}
    return by_model if len(existing) > 1 else {MEANING: index}


def _lines(best: Best, folds: bool, limit: int | None) -> list[list[int]]:
    """Return the positions of columns by line, folding those of nearly the same equal texts."""
    columns = best.columns
    first_of = np.arange(len(columns))
    texts = {
        at: column.equal_text for at, column in enumerate(columns) if column.equal_text is not None
    }
    if folds and len(texts) > 1:
        at = np.array(list(texts))
        first_of[at] = at[fold(sets_of_matches(list(texts.values())), limit)]
    return lines_of(first_of, range(len(columns)))


def _matches(
    index: Index,
    lines: Sequence[Sequence[Known]],
    semantic: Mapping[str, SemanticList],
    floor: float | None,
) -> tuple[CombinedMatch, ...]:
    """Make the matches of lines, with the evidence that each search has."""
    columns = TableColumns(index, {line[0].name[0] for line in lines})
    # The evidence of copies is found when it is asked for, not with that of the lines.
    leaders = [line[0].name for line in lines]
    copies = [column.name for line in lines for column in line[1:]]
    by_model: dict[str, dict[Name, Match | None]] = {}
    for model, source in semantic.items():
        matches = source.matches(leaders, columns) + source.matches(copies, columns)
        by_model[model] = dict(zip(leaders + copies, matches, strict=True))
    by_name = {}
    for column in (known for line in lines for known in line):
        meant = {model: matches[column.name] for model, matches in by_model.items()}
        text = column.equal_text
        ways = {
            **meant,
            OVERLAP: text,
            CONTAINMENT: text if text and floor is not None and text.containment >= floor else None,
            TRANSFORM: column.transform,
        }
        by_name[column.name] = CombinedMatch(
            *column.name,
            tuple(how for how, evidence in ways.items() if evidence is not None),
            max(filter(None, meant.values()), key=_joinability, default=None),
            text,
            {} if list(semantic) == [MEANING] else meant,
            column.transform,
            _columns=columns,
        )
    return tuple(
        replace(by_name[line[0].name], copies=tuple(by_name[copy.name] for copy in line[1:]))
        for line in lines
    )
