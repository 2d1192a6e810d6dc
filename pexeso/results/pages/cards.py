"""Cards of a page, one for each column found.

A card shows the column's shares, words, pairs, values without a match, and the two tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pexeso.options import ROWS
from pexeso.results.match_kinds import KindCounts

if TYPE_CHECKING:
    from pexeso.options import SearchOptions
    from pexeso.results.matches import Explanation, Match, Pair, SearchResult, Unmatched
    from pexeso.semantic.explain.row_preview import SideBySide, TwoTables
    from pexeso.semantic.explain.word_contributions import WordContributions

NONE = "none"
"""Stands beside the kinds of pairs for rows without a match."""


@dataclass(frozen=True)
class Limits:
    """How much a page shows at most; what is left out is counted on the page."""

    columns_found: int = 24
    listed: int = 200
    pairs: int = 100
    unmatched: int = 25
    rows: int = 20
    columns: int = 8
    words: int = 12


PAIRS_FIRST = 8
"""Pairs that are seen before the others are opened."""

WEAKEST = 4
"""Pairs of the values that match least, seen beside the first ones."""

OF_RESULTS = Limits()
OF_EXPLANATION = Limits(pairs=1000, unmatched=200, rows=50)


@dataclass(frozen=True)
class Segment:
    """A part of a bar: values, or rows, of one kind, or without a match."""

    kind: str
    matched: int
    share: float


@dataclass(frozen=True)
class Card:
    """All that is shown of one column found.

    Attributes
    ----------
    pairs : list of Pair
        The first ones, of `n_pairs`.
    unmatched : tuple of Unmatched
        The first ones, of `n_unmatched` texts.
    """

    anchor: str
    match: Match
    is_least: bool
    bar: tuple[Segment, ...]
    contributions: WordContributions
    pairs: list[Pair]
    n_pairs: int
    weakest: list[Pair]
    unmatched: tuple[Unmatched, ...]
    n_unmatched: int
    tables: SideBySide

    @property
    def noun(self) -> str:
        """What joinability counts, one of them."""
        return "row" if self.match.joinability_of == ROWS else "value"


@dataclass(frozen=True)
class Listed:
    """A line of the list of columns found."""

    anchor: str | None
    match: Match
    bar: tuple[Segment, ...]


@dataclass(frozen=True)
class Section:
    """What is shown for one query column.

    Attributes
    ----------
    listed : list of Listed
        The first columns found, of `n_found`.
    """

    query: dict[str, Any]
    options: SearchOptions
    is_explanation: bool
    is_least: bool
    reranked: bool
    listed: list[Listed]
    n_found: int
    n_cards: int
    cards: Iterator[Card]


def section_of_result(
    result: SearchResult, number: int, n_cards: int, limits: Limits = OF_RESULTS
) -> Section:
    """Lay out the columns found for one query column, the first `n_cards` of them in full."""
    shown = result.matches[:n_cards]
    if shown:
        result.matches[0]._details.find(range(len(shown)))
    is_least = result.options.are_lower_bounds
    listed = [
        Listed(_anchor(number, position), match, _bar(match, match.kinds()))
        if position < n_cards
        else Listed(None, match, ())
        for position, match in enumerate(result.matches[: limits.listed])
    ]
    return Section(
        result.query,
        result.options,
        False,
        is_least,
        result.reranked,
        listed,
        len(result) + (result.n_more or 0),
        len(shown),
        _cards(shown, number, is_least, limits),
    )


def section_of_explanation(explanation: Explanation, limits: Limits = OF_EXPLANATION) -> Section:
    """Lay out the one column that was explained."""
    cards = _cards((explanation.match,), 1, False, limits)
    return Section(explanation.query, explanation.options, True, False, False, [], 1, 1, cards)


def _cards(
    matches: tuple[Match, ...], number: int, is_least: bool, limits: Limits
) -> Iterator[Card]:
    if not matches:
        return
    tables = matches[0]._details.two_tables()
    for position, match in enumerate(matches):
        yield _card(match, tables, _anchor(number, position), is_least, limits)


def _card(match: Match, tables: TwoTables, anchor: str, is_least: bool, limits: Limits) -> Card:
    evidence, position = match._details, match._position
    pairs = evidence.table(position)
    return Card(
        anchor=anchor,
        match=match,
        is_least=is_least,
        bar=_bar(match, match.kinds()),
        contributions=match.word_contributions(limits.words),
        pairs=evidence.pairs(position, limits.pairs),
        n_pairs=len(pairs),
        weakest=evidence.weakest(position, WEAKEST) if len(pairs) > PAIRS_FIRST else [],
        unmatched=match.unmatched(limits.unmatched),
        n_unmatched=evidence.n_unmatched(position),
        tables=tables.show(
            match.table, match.column, pairs, n_rows=limits.rows, n_columns=limits.columns
        ),
    )


def _anchor(number: int, position: int) -> str:
    return f"found-{number}-{position + 1}"


def _bar(match: Match, kinds: KindCounts) -> tuple[Segment, ...]:
    rest = match.total - sum(kinds.matched.values())
    counts = {**kinds.matched, NONE: rest}
    return tuple(
        Segment(kind, number, number / match.total if match.total else 0.0)
        for kind, number in counts.items()
    )
