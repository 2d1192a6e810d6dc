"""Searches for columns that join after a program, over one snapshot of an index."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.engine.copies import ColumnSets, fold, lines_of
from pexeso.engine.lists import offsets_of
from pexeso.lake.left_out import left_out
from pexeso.options import ALL, columns_wanted, whole_number
from pexeso.results.column_matches import Hints, shown_lines
from pexeso.results.query import QueryColumn, query_from_values
from pexeso.runtime.checks import require_share
from pexeso.runtime.formatting import plain_scalar
from pexeso.semantic.open_index import OpenIndex
from pexeso.transform.joins.joined import TransformJoin
from pexeso.transform.joins.sides import Side
from pexeso.transform.learning.examples_to_program import Effort, LearningOptions, learn_program
from pexeso.transform.learning.finding import FindingOptions
from pexeso.transform.programs.program import Program
from pexeso.transform.search.candidates import Candidate, QueryGrams, find_candidates
from pexeso.transform.search.results import TransformMatch, TransformSearchResult
from pexeso.transform.texts import MAX_LEARNED, cleaned, sample_texts
from pexeso.transform.transformation import KINDS, Direction, TransformOptions, learn_transformation

# Letters of a text of a pair; longer ones cost more than they are worth.
MAX_LETTERS = 200

# Pairs by which a program is checked, a sample of all.
MAX_CHECKED = 200

# What is spent on the pairs of two columns, in either direction.
_LEARNING = LearningOptions(max_steps=6, width=3)
_N_EXAMPLES = 3
_N_SETS = 16
MAX_EFFORT = 1_000_000

# Pairs that a program must write, and their share of those by which it is checked, both inclusive.
_MIN_AGREEING, _MIN_SHARE_AGREEING = 3, 0.05


def screen(source: Sequence[str], target: Sequence[str], seed: int = 0) -> Direction | None:
    """Return the direction in which some program writes enough of the likely pairs."""
    pairs = [
        (one, other)
        for one, other in zip(source, target, strict=True)
        if len(one) <= MAX_LETTERS and len(other) <= MAX_LETTERS
    ]
    forth = _agreeing(pairs, seed)
    back = _agreeing([(other, one) for one, other in pairs], seed)
    n_checked = min(len(pairs), MAX_CHECKED)
    if max(forth, back) < max(_MIN_AGREEING, _MIN_SHARE_AGREEING * n_checked):
        return None
    return "source to target" if forth >= back else "target to source"


def _agreeing(pairs: Sequence[tuple[str, str]], seed: int) -> int:
    """Return how many pairs the best program writes, of those by which it is checked."""
    drawn = random.Random(f"{seed} {len(pairs)}")
    checked = pairs if len(pairs) <= MAX_CHECKED else drawn.sample(pairs, MAX_CHECKED)
    effort, tried, best = Effort(MAX_EFFORT), set[Program](), 0
    for number in range(_N_SETS):
        # The first sets are of the surest pairs.
        among = min(len(pairs), 2 * _N_EXAMPLES + 4 * number)
        examples: list[tuple[str, str]] = []
        for one, other in drawn.sample(pairs[:among], among):
            if all(one != pair[0] and other != pair[1] for pair in examples):
                examples.append((one, other))
        del examples[_N_EXAMPLES:]
        if len(examples) < _N_EXAMPLES or effort.left <= 0:
            break
        rows, keys = [[one] for one, _ in examples], [other for _, other in examples]
        program = learn_program(rows, keys, _LEARNING, effort, [False])
        if program is None or program in tried:
            continue
        tried.add(program)
        agreeing = sum(program.of([one]) == other for one, other in checked)
        # Each operator could be fitted to an example of its own.
        if agreeing > len(program.operators):
            best = max(best, agreeing)
    return best


# Columns of the lake from which programs are learned, those that share most with the query.
DEFAULT_CANDIDATES = 100

# Values of the query by which candidates are found, a sample of all.
MAX_SAMPLE = 4096

# Bound on the probability that any of the columns compared is joined by chance.
_MAX_LUCK = 1e-6

# Share of the smaller column's values that the first program must join: vocabularies that have
# nothing to do with each other, such as surnames and counties, have a few values in common.
_MIN_SHARE = 0.2

_MAX_EFFORT = 2_000_000
_MAX_SETS = 16
_MAX_PROGRAMS = 4


@dataclass(frozen=True)
class TransformSearches:
    opened: OpenIndex

    def search(
        self,
        values: Any,
        *,
        k: int | str | None = None,
        min_joinability: float | None = None,
        exclude_self: bool = False,
        fold_copies: bool = True,
        max_candidates: int = DEFAULT_CANDIDATES,
        seed: int = 0,
    ) -> TransformSearchResult:
        started = time.perf_counter()
        self.opened.require_texts()
        max_columns, min_share = columns_wanted(k), plain_scalar(min_joinability)
        if min_share is not None:
            meaning = "It is the share of your distinct values that are joined."
            require_share("min_joinability", min_share, meaning)
        max_candidates = whole_number("max_candidates", max_candidates, 1)
        seed = whole_number("seed", seed, 0)
        column = query_from_values(values)
        file = column.file
        own_table = self.opened.table_of(file) if exclude_self and file is not None else None
        query = _Query.of(column, seed)
        rejected = self.opened.judgements.rejected(self.opened.name_of(column))
        candidates, n_compared = find_candidates(
            self.opened.store,
            query.grams,
            max_candidates,
            exclude_table=own_table,
            rejected=rejected,
        )
        matches, learned = [], 0
        for candidate in candidates:
            direction = screen(*candidate.pairs(query.grams.texts), seed)
            if direction is not None:
                learned += 1
                match = query.joined(candidate, direction, n_compared, seed)
                if match is not None and match.joinability >= (min_share or 0):
                    matches.append(match)
        matches.sort(key=lambda match: (-match.matched, match.table, match.column))
        lines = _lines(matches, max_columns) if fold_copies else [[match] for match in matches]
        shown = shown_lines(lines, self.opened, max_columns)
        options = {
            "k": ALL if max_columns is None else max_columns,
            "min_joinability": min_share,
            "exclude_table": own_table,
            "max_candidates": max_candidates,
            "seed": seed,
        }
        stats = {
            "columns": n_compared,
            "candidates": len(candidates),
            "learned": learned,
            "seconds": round(time.perf_counter() - started, 6),
        }
        return TransformSearchResult(
            {**column.describe(), "empty": column.n_empty, "values": query.n_values},
            options,
            shown,
            n_more=len(lines) - len(shown),
            folded=fold_copies,
            stats=stats,
            _find_hints=partial(_hints, self.opened),
        )


@dataclass(frozen=True)
class _Query:
    """The distinct values of the query column, and the pieces of a sample of them."""

    side: Side
    grams: QueryGrams

    @classmethod
    def of(cls, column: QueryColumn, seed: int) -> _Query:
        texts = pc.unique(cleaned(column.values)).drop_null()
        sizes = pc.utf8_length(texts).to_numpy(zero_copy_only=False)
        usable = texts.take(pa.array(np.flatnonzero(sizes <= MAX_LEARNED)))
        chosen = sample_texts(usable, MAX_SAMPLE, seed)
        return cls(
            _side(column.column or "value", texts),
            QueryGrams.of(usable.take(pa.array(chosen, pa.int64()))),
        )

    @property
    def n_values(self) -> int:
        return self.side.n_rows

    def joined(
        self, candidate: Candidate, direction: Direction, n_tests: int, seed: int
    ) -> TransformMatch | None:
        finding = FindingOptions(
            n_sets=_MAX_SETS,
            max_sets=_MAX_SETS,
            max_effort=_MAX_EFFORT,
            min_share=_MIN_SHARE,
            max_luck=_MAX_LUCK / n_tests,
            seed=seed,
            named=False,
        )
        options = TransformOptions(
            finding, max_programs=_MAX_PROGRAMS, fuzzy=False, directions=(direction,)
        )
        target = _side(candidate.label, candidate.texts)
        transformation = learn_transformation(self.side.texts, target.texts, options)
        if not transformation.programs:
            return None
        joined = transformation.kinds > 0
        equal = int((transformation.kinds == KINDS.index("equal")).sum())
        if direction == "source to target":
            matched = int(joined.sum())
        else:
            # The query's values are the keys there.
            matched = len(np.unique(transformation.partners[joined]))
        return TransformMatch(
            candidate.table,
            candidate.label,
            matched,
            self.n_values,
            equal,
            TransformJoin(self.side, target, transformation),
        )


def _side(name: str, texts: pa.Array) -> Side:
    return Side((name,), (texts,), (0,), True)


def _lines(matches: list[TransformMatch], limit: int | None) -> list[list[TransformMatch]]:
    if len(matches) < 2:
        return [[match] for match in matches]
    texts = [match.transformation.target.cells[0] for match in matches]
    numbers = pa.chunked_array(texts).combine_chunks().dictionary_encode().indices
    sets = ColumnSets(
        offsets_of(np.array([len(cells) for cells in texts])),
        numbers.to_numpy(zero_copy_only=False).astype(np.int64),
    )
    return lines_of(fold(sets, limit), matches)


def _hints(opened: OpenIndex) -> Hints:
    return Hints((), left_out(opened.catalog))
