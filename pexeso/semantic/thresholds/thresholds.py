"""Advised or tuned thresholds for searches of one snapshot, and the options made of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pexeso.errors import InputError
from pexeso.lake.readers.options import AS_FOUND, ReadingOptions
from pexeso.options import VALUES, SearchOptions, search_options
from pexeso.semantic.thresholds.advice import ADVICE_OPTIONS, Advice, percent

if TYPE_CHECKING:
    from pexeso.results.ranking import Hit
    from pexeso.semantic.encoded_query import EncodedQuery
    from pexeso.semantic.open_index import OpenIndex
    from pexeso.semantic.thresholds.advisor import Advisor
    from pexeso.semantic.thresholds.labels import ColumnLabel, ValueLabel


@dataclass(frozen=True)
class Thresholds:
    """Advice on the thresholds of one snapshot, and the options of its searches.

    See `pexeso.Index`.
    """

    opened: OpenIndex

    @cached_property
    def advisor(self) -> Advisor:
        """What advises on this index, and keeps what it has learnt while the index is open."""
        from pexeso.semantic.thresholds.advisor import (
            Advisor,
        )  # a search with thresholds of the caller's does without

        return Advisor(self.opened.loader, self.opened.usual_max_distance)

    def search_options(self, given: Mapping[str, Any]) -> SearchOptions:
        """Return search options with default or advised thresholds.

        The defaults suit this index. Thresholds are advised if ``auto`` or ``min_precision`` asks
        for them.
        """
        if any(name in given for name in ADVICE_OPTIONS):
            given = self.advisor.column_options(given)
        return search_options({"max_distance": self.opened.usual_max_distance, **given})

    def pair_options(
        self, given: Mapping[str, Any], query: EncodedQuery, hit: Hit
    ) -> SearchOptions:
        """Return search options for one column of the index.

        The threshold is advised if the arguments ask for that.
        """
        if any(name in given for name in ADVICE_OPTIONS):
            given = self.advisor.pair_options(given, query, hit)
        return self.search_options(given)

    def for_query(self, options: SearchOptions, query: EncodedQuery) -> SearchOptions:
        """Raise an advised share if the query column is so short that chance reaches it."""
        if options.advice is None:
            return options
        from pexeso.semantic.thresholds.advisor import for_query

        return for_query(options, query)

    def require_search_options(self, given: Mapping[str, Any]) -> None:
        """Refuse what no search options are, before anything is looked for.

        Raises
        ------
        InputError
            An option is not there, or out of its range.
        """
        search_options({name: value for name, value in given.items() if name not in ADVICE_OPTIONS})

    def advise(
        self,
        values: Any = None,
        table: str | None = None,
        column: str | None = None,
        min_precision: float | None = None,
        min_joinability: float | None = None,
    ) -> Advice:
        """Advise on thresholds from the distances in the index; see `pexeso.Index.advise`."""
        if (table is None) != (column is None) or (table is not None and values is None):
            raise InputError(
                "Advice on joining needs values, table and column; advice on searching takes "
                "values alone, or nothing."
            )
        if table is not None and column is not None:
            from pexeso.semantic.explain.explanation import locate_column

            hit = locate_column(self.opened.store, table, column)
            return self.advisor.pair(self.opened.encode(values), hit, min_precision)
        advice = self.advisor.columns(min_precision, min_joinability)
        if values is None or advice.min_joinability is None:
            return advice
        from pexeso.semantic.thresholds.advisor import effective_values
        from pexeso.semantic.thresholds.columns import joinability_beyond_chance

        n_values = effective_values(self.opened.encode(values), VALUES)
        share = joinability_beyond_chance(advice, n_values)
        if share == advice.min_joinability:
            return advice
        why = (
            f"{advice.why} Of only {n_values:,} values, {percent(share)} must match, since "
            "fewer may match some column by chance."
        )
        return replace(advice, min_joinability=share, why=why)

    def tune(
        self,
        labels: str | os.PathLike[str] | Iterable[ValueLabel] | Iterable[ColumnLabel],
        min_precision: float | None = None,
        reading: ReadingOptions = AS_FOUND,
    ) -> Advice:
        """Choose thresholds from labelled pairs; see `pexeso.Index.tune`."""
        from pexeso.semantic.thresholds.labelled import tune

        return tune(self.opened, self.advisor, labels, min_precision, reading)
