"""Doubtful pairs of a lake for a person to judge, and what the judgements say of its thresholds.

Candidates are pairs of the lake's own columns, of a sample of bounded size that depends on names
alone. Pairs of columns are the more informative the nearer their joinability is to the threshold,
pairs of values the nearer their distance is to the largest one that matches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embed.words import hash_strings
from pexeso.lake.catalog import COLUMNS
from pexeso.lake.judgements import YES, Judgement, Judgements
from pexeso.options import DEFAULT_MIN_JOINABILITY
from pexeso.results.query import QueryColumn
from pexeso.runtime.ranges import mixed
from pexeso.semantic.explanation import locate_columns
from pexeso.semantic.partition_loader import posting_arrays
from pexeso.semantic.thresholds.labels import ColumnLabel

if TYPE_CHECKING:
    from pexeso.results.matches import Match
    from pexeso.results.query import Hit
    from pexeso.semantic.open_index import OpenIndex
    from pexeso.semantic.search import SemanticSearch

SAMPLE_COLUMNS, CHUNK_COLUMNS = 200, 25
"""Columns of the lake that are searched with, and how many at a time."""

SAMPLE_VALUES = (3, 2000)
"""Fewest and most distinct values that such a column has."""

PARTNERS = 12
"""Columns that are looked at for each of them, its own among them."""

MIN_SHARE = 0.1
"""The smallest joinability of a pair that is worth a question."""

VALUES_OF_PAIR = 2
"""Pairs of values that are looked at in a pair of columns that join."""

EXAMPLES, EXAMPLE_LETTERS = 5, 200
"""Values that are shown of a column, and letters of each."""

MAX_LETTERS = 1000
"""Longer values are not asked about."""


@dataclass(frozen=True)
class Doubt:
    """A pair that a person is to judge."""

    judgement: Judgement  # its verdict is "unsure"
    score: float  # the joinability of two columns, or the distance of two values
    matched: int  # values of the query column
    total: int
    yours: tuple[str, ...]
    theirs: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]  # values that match

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form."""
        described = {**vars(self), **vars(self.judgement)}
        del described["judgement"], described["verdict"]
        return described


def find_doubts(search: SemanticSearch, limit: int) -> list[Doubt]:
    """Find pairs that were not judged, the best first: two of columns, then one of values."""
    judgements = search.opened.judgements
    columns, values = (
        [doubt for doubt in some if judgements.is_open(doubt.judgement)] for some in search.doubts
    )
    in_turn = chain.from_iterable(zip_longest(columns[::2], columns[1::2], values))
    return [doubt for doubt in in_turn if doubt is not None][:limit]


def all_doubts(search: SemanticSearch) -> tuple[list[Doubt], list[Doubt]]:
    """Return doubtful pairs of columns, and of values, judged ones too, the most doubtful first."""
    opened = search.opened
    of_columns: dict[Any, tuple[float, Doubt]] = {}
    of_values: dict[Any, tuple[float, Doubt]] = {}
    hits = list(sampled_columns(opened))
    for start in range(0, len(hits), CHUNK_COLUMNS):
        queries = [stored_column(opened, hit) for hit in hits[start : start + CHUNK_COLUMNS]]
        options = {"k": PARTNERS, "min_joinability": MIN_SHARE}
        # Without their names, so that columns are found whatever was said of them.
        results = search.search_batch(queries, False, False, True, options)
        for hit, query, result in zip(hits[start:], queries, results, strict=False):
            for match in (match for match in result if match.table != hit.table):
                names = (hit.table, hit.label, match.table, match.column)
                away = abs(match.joinability - DEFAULT_MIN_JOINABILITY)
                _note(of_columns, away, _doubt(opened, query, match, Judgement(*names)))
                if match.joinability < DEFAULT_MIN_JOINABILITY:
                    continue
                largest = max(result.options.max_distance, 1e-9)
                for near in match._details.weakest(match._position, VALUES_OF_PAIR):
                    if max(len(near.query), len(near.value)) > MAX_LETTERS:
                        continue
                    pair = Judgement(*names, near.query, near.value)
                    doubt = _value_doubt(match, pair, near.distance)
                    _note(of_values, 1 - near.distance / largest, doubt)
    columns, values = (sorted(some.values(), key=_order) for some in (of_columns, of_values))
    return [doubt for _, doubt in columns], [doubt for _, doubt in values]


def _order(entry: tuple[float, Doubt]) -> tuple[float, tuple[Any, ...]]:
    return entry[0], entry[1].judgement.pair


def _note(doubts: dict[Any, tuple[float, Doubt]], away: float, doubt: Doubt) -> None:
    """Keep of the two directions of a pair the one that is nearer to its threshold."""
    pair = doubt.judgement.pair
    if pair not in doubts or away < doubts[pair][0]:
        doubts[pair] = away, doubt


def _doubt(opened: OpenIndex, query: QueryColumn, match: Match, pair: Judgement) -> Doubt:
    hit = match._details._hits[match._position]
    pairs = tuple(
        (near.query[:EXAMPLE_LETTERS], near.value[:EXAMPLE_LETTERS])
        for near in match.pairs(EXAMPLES)
    )
    sides = (query.values, stored_column(opened, hit).values)
    yours, theirs = (
        tuple(pc.utf8_slice_codeunits(side.slice(0, EXAMPLES), 0, EXAMPLE_LETTERS).to_pylist())
        for side in sides
    )
    counts = match.joinability, match.matched, match.total
    return Doubt(pair, *counts, yours, theirs, pairs)


def _value_doubt(match: Match, pair: Judgement, distance: float) -> Doubt:
    values = (pair.your_value,), (pair.lake_value,)
    return Doubt(pair, distance, match.matched, match.total, *values, ())


def sampled_columns(opened: OpenIndex) -> Iterator[Hit]:
    """Yield columns of text of the index, those of the smallest hashes of their names."""
    names = ["table", "label", "kind", "n_distinct", "column_id"]
    chosen: list[tuple[int, str, str]] = []
    low, high = SAMPLE_VALUES
    distinct = pc.field("n_distinct")
    is_text = (pc.field("kind") == "text") & pc.field("column_id").is_valid()
    for read in opened.catalog.pieces(COLUMNS, names):
        rows = read().filter(is_text & (distinct >= low) & (distinct <= high))
        texts = pc.binary_join_element_wise(rows["table"], rows["label"], "\n").combine_chunks()
        hashes = mixed(hash_strings(texts.cast(pa.large_string())))
        best = np.argsort(hashes, kind="stable")[:SAMPLE_COLUMNS]
        texts_of = (rows[name].take(pa.array(best)).to_pylist() for name in ("table", "label"))
        few = zip(hashes[best].tolist(), *texts_of, strict=True)
        chosen = sorted([*chosen, *few])[:SAMPLE_COLUMNS]
    yield from locate_columns(opened.store, [(table, label) for _, table, label in chosen])


def stored_column(opened: OpenIndex, hit: Hit) -> QueryColumn:
    """Return a column of the lake as the index has it: a text for each of its distinct values."""
    loader = opened.loader
    lists = loader.mapped(hit.partition).column_lists
    rows = np.arange(*lists.offsets[hit.position : hit.position + 2])
    texts, _ = posting_arrays(loader, hit.partition, rows)
    return QueryColumn(texts.cast(pa.string()), column=hit.label)


def judged_labels(opened: OpenIndex, judgements: Judgements) -> tuple[list[ColumnLabel], int]:
    """Return the judged pairs of columns of which the index has both, and how many others are."""
    names = sorted({name for row in judgements.columns for name in (row.query, row.lake)})
    hits = {(hit.table, hit.label): hit for hit in locate_columns(opened.store, names)}
    labels = [
        ColumnLabel(stored_column(opened, hits[row.query]), *row.lake, row.verdict == YES)
        for row in judgements.columns
        if row.query in hits and row.lake in hits
    ]
    return labels, len(judgements.columns) - len(labels)
