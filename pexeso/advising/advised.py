"""The part of an open index that advises on thresholds, and makes the options of its searches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc
import torch

from pexeso.advising.advice import Advice, percent, require_min_precision
from pexeso.advising.advisor import ASKED, Advisor, column_vectors, effective_values
from pexeso.advising.columns import joinability_beyond_chance
from pexeso.advising.labels import ColumnLabel, ValueLabel, read_labels, require_labels
from pexeso.advising.sample import nearest_distances
from pexeso.advising.tuning import joinability_curve, tune_columns, tune_values
from pexeso.engine.metrics import Metric
from pexeso.errors import InputError
from pexeso.explanation import locate_column
from pexeso.options import DEFAULT_MAX_DISTANCE, USUAL_MAX_DISTANCES, SearchOptions, search_options
from pexeso.queries import query_from_values

if TYPE_CHECKING:
    from embed.protocol import Embedder
    from pexeso.prepared import PreparedQuery
    from pexeso.scanning import PartitionScan
    from pexeso.store.reader import Store


class Advised:
    """What an `Index` knows about its thresholds; see there."""

    store: Store
    _scan: PartitionScan

    embedder: Embedder | cached_property[Embedder]
    prepared: Callable[[Any], PreparedQuery]

    @property
    def usual_max_distance(self) -> float:
        """The `max_distance` of a search that is given none: by the sort of the model."""
        return USUAL_MAX_DISTANCES.get(self.embedder.kind, DEFAULT_MAX_DISTANCE)

    @cached_property
    def advisor(self) -> Advisor:
        """What advises on this index, and keeps what it has learnt while the index is open."""
        return Advisor(self._scan, self.usual_max_distance)

    def search_options(self, given: Mapping[str, Any]) -> SearchOptions:
        """Make search options, with the defaults that suit this index, or with the thresholds advised where ``auto`` or ``min_precision`` asks for them."""
        return search_options({"max_distance": self.usual_max_distance, **self.advisor.column_options(given)})

    def _require_search_options(self, given: Mapping[str, Any]) -> None:
        """Refuse what no search options are, before anything is looked for.

        Raises
        ------
        InputError
            An option is not there, or out of its range.
        """
        search_options({name: value for name, value in given.items() if name not in ASKED})

    def advise(
        self,
        values: Any = None,
        table: str | None = None,
        column: str | None = None,
        *,
        min_precision: float | None = None,
        min_joinability: float | None = None,
    ) -> Advice:
        """Advise on thresholds from the distances in the index, without labels; ``search(values, auto=True)`` goes by it.

        Parameters
        ----------
        values : optional
            The query column, as in `search`: of few values, more must match than chance would.
        table, column : str, optional
            A column of the lake that `values` are to be joined with: then the advice is about the distance alone.
        min_precision : float, optional
            In (0, 1], the share that must be right, as estimated: of the columns found, 0.9 by default; of the values joined with one column, by
            default as many as balance best with those missed.
        min_joinability : float, optional
            In (0, 1], where it is settled which share of rows makes a column joinable.

        Returns
        -------
        Advice
            ``max_distance``, ``min_joinability``, ``why``, ``evidence``; the same for the same index. What it rests on is learnt once, in seconds, while
            the index is open, from at most 32,768 of its values.

        Raises
        ------
        InputError
            An argument is out of its range, or `table`, `column` and `values` do not come together; the lake has no such column.

        Examples
        --------
        >>> import pexeso
        >>> index = pexeso.open_index("lake.pexeso")  # doctest: +SKIP
        >>> index.advise().max_distance  # doctest: +SKIP
        0.31
        """
        if (table is None) != (column is None) or (table is not None and values is None):
            raise InputError(
                "Advice on joining needs values, table and column; advice on searching takes values alone, or nothing."
            )
        if table is not None and column is not None:
            hit = locate_column(self.store, table, column)
            return self.advisor.pair(self.prepared(values), hit, min_precision)
        advice = self.advisor.columns(min_precision, min_joinability)
        if values is None or advice.min_joinability is None:
            return advice
        n_values = effective_values(query_from_values(values))
        least = joinability_beyond_chance(advice, n_values)
        if least == advice.min_joinability:
            return advice
        why = f"{advice.why} Of only {n_values:,} values, {percent(least)} must match, since fewer may match some column by chance."
        return replace(advice, min_joinability=least, why=why)

    def tune(
        self,
        labels: str | os.PathLike[str] | Iterable[ValueLabel] | Iterable[ColumnLabel],
        *,
        min_precision: float | None = None,
    ) -> Advice:
        """Choose thresholds from labelled pairs, and from `advise` where these are too few to tell.

        Parameters
        ----------
        labels : path, or iterable of ValueLabel or of ColumnLabel
            A table as `pexeso.advising.labels.read_labels` reads it, or its rows. Both answers must be among them.
        min_precision : float, optional
            In (0, 1], that must hold on the labels; by default F1 on them is to be as high as can be.

        Returns
        -------
        Advice
            Pairs of values choose `max_distance` alone; `min_joinability` is then that of `advise`.

        Raises
        ------
        InputError
            The labels cannot be used, or name a column that is not there.

        Examples
        --------
        >>> import pexeso
        >>> index = pexeso.open_index("lake.pexeso")  # doctest: +SKIP
        >>> index.tune("labels.csv").max_distance  # doctest: +SKIP
        0.34
        """
        if min_precision is not None:
            require_min_precision(min_precision)
        read = read_labels(labels) if isinstance(labels, str | os.PathLike) else labels
        every = require_labels(read)
        prior = self.advisor.columns(min_precision)
        if isinstance(every[0], ValueLabel):
            return tune_values(every, self._label_distances(every), prior, min_precision)
        return tune_columns(every, np.stack([self._label_curve(label) for label in every]), prior, min_precision)

    def _label_distances(self, labels: Sequence[ValueLabel]) -> np.ndarray:
        """Give the distances of labelled values, float64; infinite where one of them has no vector."""
        texts = [label.query for label in labels] + [label.value for label in labels]
        query = self.prepared(texts)
        places = pc.fill_null(query.value_of_row, -1).to_numpy(zero_copy_only=False)
        known = np.append((query.vectors != 0).any(1).numpy(), False)[places]
        left, right = np.split(np.arange(len(texts)), 2)
        metric = Metric(self.store.manifest.options["grid"]["metric"])
        sides = (query.vectors[torch.from_numpy(np.maximum(places[side], 0))] for side in (left, right))
        apart = metric.fraction(metric.distances(*sides), query.vectors.shape[1]).numpy()
        return np.where(known[left] & known[right], apart, np.inf)

    def _label_curve(self, label: ColumnLabel) -> np.ndarray:
        """Give the joinability of labelled columns at each of the distances that are tried."""
        hit = locate_column(self.store, label.table, label.column)
        query = self.prepared(label.query)
        known = (query.vectors != 0).any(1)
        metric = self._scan.mapped(hit.partition).metric
        nearest = nearest_distances(metric, query.vectors[known], column_vectors(self._scan, hit))
        return joinability_curve(nearest, query.weights[known], query.n_rows)
