"""Searches for columns that join after a program, over one snapshot of an index."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import InputError
from pexeso.lake.left_out.groups import left_out
from pexeso.lake.sniff import profile_column
from pexeso.options import ALL, columns_wanted, whole_number
from pexeso.results.column_matches import Hints
from pexeso.results.copies import ColumnSets, fold, lines_compared, lines_of
from pexeso.results.query import QueryColumn, query_from_values
from pexeso.results.table_columns import TableColumns
from pexeso.runtime.formatting import plain_scalar, shown
from pexeso.runtime.ranges import offsets_of
from pexeso.semantic.open_index import OpenIndex
from pexeso.transform.joins.joined import TransformJoin
from pexeso.transform.joins.sides import Side
from pexeso.transform.lake_search.screening import Direction, ScreeningOptions, screen
from pexeso.transform.lake_search.shared_grams import QueryGrams
from pexeso.transform.learning.finding import FindingOptions
from pexeso.transform.learning.sampling import sample_texts
from pexeso.transform.programs.program import Constant, Program
from pexeso.transform.search.candidates import Candidate, find_candidates
from pexeso.transform.search.results import TransformMatch, TransformSearchResult
from pexeso.transform.texts import MAX_LEARNED, cleaned
from pexeso.transform.transformation import KINDS, TransformOptions, learn_transformation

DEFAULT_CANDIDATES = 100
"""Columns of the lake from which programs are learned, those that share most with the query."""

MAX_SAMPLE = 4096
"""Values of the query by which candidates are found, a sample of all."""

_MAX_LUCK = 1e-6
"""Bound on the probability that any of the columns compared is joined by chance."""

_MIN_SHARE = 0.2
"""Of the smaller column's values that the first program must join: vocabularies that have nothing
to do with each other, such as surnames and counties, have a few values in common."""

_MAX_EFFORT = 2_000_000
_MAX_SETS = 16
_MAX_PROGRAMS = 4


@dataclass(frozen=True)
class TransformSearches:
    """Searches of one snapshot; see `pexeso.Index.search` with ``method="transform"``."""

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
        """Find columns that join a query column after a program.

        Parameters
        ----------
        values
            As in `pexeso.Index.search`.
        k : int or "all", optional
            By default `pexeso.options.DEFAULT_COLUMNS`.
        min_joinability : float, optional
            In (0, 1]: the smallest share of the query's distinct values that are joined.
        exclude_self : bool
            Do not find the table that the query column was read from.
        fold_copies : bool
            Fold columns of the same values, or nearly the same.
        max_candidates : int
            Columns that programs are learned from, at least 1.
        seed : int
            Of samples and sets of examples, at least 0.

        Raises
        ------
        InputError
            An option is out of its range.
        """
        started = time.perf_counter()
        max_columns, min_share = columns_wanted(k), plain_scalar(min_joinability)
        if min_share is not None:
            _require_share(min_share)
        max_candidates = whole_number("max_candidates", max_candidates, 1)
        seed = whole_number("seed", seed, 0)
        column = query_from_values(values)
        file = column.file
        own_table = self.opened.table_of(file) if exclude_self and file is not None else None
        query = _Query.of(column, seed)
        candidates = find_candidates(
            self.opened.store, query.grams, max_candidates, exclude_table=own_table
        )
        screening, learned = ScreeningOptions(seed=seed), 0
        matches = []
        for candidate in candidates.columns:
            likely = screen(*candidate.pairs(query.grams.texts), screening)
            if likely is not None:
                learned += 1
                match = query.joined(candidate, likely.direction, candidates.n_compared, seed)
                if match is not None and match.joinability >= (min_share or 0):
                    matches.append(match)
        matches.sort(key=lambda match: (-match.matched, match.table, match.column))
        lines = _lines(matches, max_columns) if fold_copies else [[match] for match in matches]
        columns = TableColumns(self.opened, (line[0].table for line in lines[:max_columns]))
        shown = []
        for line in lines[:max_columns]:
            first, *copies = (replace(match, _columns=columns) for match in line)
            shown.append(replace(first, copies=tuple(copies)))
        options = {
            "k": ALL if max_columns is None else max_columns,
            "min_joinability": min_share,
            "exclude_table": own_table,
            "max_candidates": max_candidates,
            "seed": seed,
        }
        stats = {
            "columns": candidates.n_compared,
            "candidates": len(candidates.columns),
            "learned": learned,
            "seconds": round(time.perf_counter() - started, 6),
        }
        return TransformSearchResult(
            {**column.describe(), "values": query.n_values},
            options,
            tuple(shown),
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
        """Learn what joins the query with a candidate; None where no program is accepted."""
        finding = FindingOptions(
            n_sets=_MAX_SETS,
            max_sets=_MAX_SETS,
            max_effort=_MAX_EFFORT,
            min_share=_MIN_SHARE,
            max_luck=_MAX_LUCK / n_tests,
            seed=seed,
        )
        options = TransformOptions(
            finding, max_programs=_MAX_PROGRAMS, fuzzy=False, directions=(direction,)
        )
        target = _side(candidate.label, candidate.texts)
        transformation = learn_transformation(self.side.texts, target.texts, options)
        if not transformation.programs or self._is_other_date(transformation.programs, target):
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

    def _is_other_date(self, programs: tuple[Program, ...], target: Side) -> bool:
        """Return whether programs write dates or numbers by putting in some of their own.

        The days of one year are those of another, whatever happened on them.
        """
        kinds = {_kind(self.side), _kind(target)}
        constants = "".join(
            operator.text
            for program in programs
            for operator in program.operators
            if isinstance(operator, Constant)
        )
        if "date" in kinds and any(map(str.isdigit, constants)):
            return True
        return kinds <= {"date", "number"} and any(map(str.isalnum, constants))


def _kind(side: Side) -> str:
    return profile_column(side.cells[0].cast(pa.string())).kind


def _side(name: str, texts: pa.Array) -> Side:
    return Side((name,), (texts,), (0,), True)


def _lines(matches: list[TransformMatch], limit: int | None) -> list[list[TransformMatch]]:
    """Fold columns that hold nearly the same values."""
    if len(matches) < 2:
        return [[match] for match in matches]
    texts = [match.transformation.target.cells[0] for match in matches]
    numbers = pa.chunked_array(texts).combine_chunks().dictionary_encode().indices
    sets = ColumnSets(
        offsets_of(np.array([len(cells) for cells in texts])),
        numbers.to_numpy(zero_copy_only=False).astype(np.int64),
    )
    return [[matches[at] for at in line] for line in lines_of(fold(sets, lines_compared(limit)))]


def _hints(opened: OpenIndex) -> Hints:
    return Hints((), left_out(opened.catalog))


def _require_share(share: Any) -> None:
    """Refuse a smallest joinability that is none."""
    is_number = isinstance(share, int | float) and not isinstance(share, bool)
    if not (is_number and 0 < share <= 1):
        raise InputError(
            f"min_joinability must be a number in (0, 1]. Got {shown(share)} instead. It is the "
            "share of your distinct values that are joined."
        )
