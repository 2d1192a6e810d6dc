"""Two sampled tables: how they join, and what their join tells, with intervals."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa

from pexeso.acquisition.measures.join_counts import join_counts
from pexeso.acquisition.measures.quality import Dependency
from pexeso.acquisition.sampling.correlated import KeyTest
from pexeso.acquisition.sampling.estimates import (
    correlation_estimate,
    informativeness_estimate,
    quality_estimate,
)
from pexeso.acquisition.sampling.hashing import hash_positions, with_key_tokens
from pexeso.acquisition.sampling.intervals import Estimate
from pexeso.acquisition.sampling.key_summaries import KeySummary, unsampled_squares
from pexeso.errors import ColumnNotFoundError, InputError


class SampledPair:
    """Two tables of which correlated samples at one rate are there.

    Parameters
    ----------
    left, right : pyarrow.Table
        S1 and S2, drawn with the test of `names` alone.
    names : sequence of str
        J, the columns of the join, of equal names in both. Their values are compared as tokens.
    rate : float
        p.
    seed : int
        That of the samples.
    summaries : tuple of KeySummary, optional
        Those of the whole tables D1 and D2, with the same seed. Without them heavy keys that the
        samples lack are not known, and only keys that are about equally heavy carry an interval.

    Raises
    ------
    InputError
        If no column is named, one is named twice, values have no token, or the rate is out of
        range.
    ColumnNotFoundError
        If a table lacks a column.

    Examples
    --------
    >>> people = pa.table({"zip": ["1", "1", "2", "3"], "age": ["old", "old", "young", "old"]})
    >>> places = pa.table({"zip": [1, 2, 4], "state": ["NJ", "NY", "MA"]})
    >>> pair = SampledPair(people, places, ["zip"], 1.0)
    >>> pair.correlation(["age"], ["state"]).value == pair.correlation(["age"], ["state"]).high
    True
    >>> pair.quality([Dependency(("state",), "age")]).value
    1.0
    """

    def __init__(
        self,
        left: pa.Table,
        right: pa.Table,
        names: Sequence[str],
        rate: float,
        *,
        seed: int = 0,
        summaries: tuple[KeySummary, KeySummary] | None = None,
    ) -> None:
        self._test, self._seed, self._summaries = KeyTest(tuple(names), rate), seed, summaries
        names = self._test.names
        self._left, self._right = with_key_tokens(left, names), with_key_tokens(right, names)

    def informativeness(self) -> Estimate:
        """Return the join informativeness JI(D1, D2).

        Returns
        -------
        Estimate
            Rows with a missing cell in J match nothing and do not count.
        """
        sides = [
            hash_positions(table, self._test.names, seed=self._seed)
            for table in (self._left, self._right)
        ]
        sides = [positions[~np.isnan(positions)] for positions in sides]
        keys, inverse = np.unique(np.concatenate(sides), return_inverse=True)
        parts = inverse[: len(sides[0])], inverse[len(sides[0]) :]
        counts = [np.bincount(part, minlength=len(keys)) for part in parts]
        return informativeness_estimate(*counts, keys, self._test.rate, summaries=self._summaries)

    def correlation(
        self,
        x: Sequence[str],
        y: Sequence[str],
        *,
        numeric: Collection[str] = (),
        y_bins: int = 16,
        numeric_scale: str = "raw",
    ) -> Estimate:
        """Return the correlation CORR(X,Y) of the join of D1 and D2.

        Parameters
        ----------
        x, y : sequence of str
            X and Y, each column of D1 or of D2.
        numeric, y_bins, numeric_scale
            As those of `measures.correlation.correlation`.

        Returns
        -------
        Estimate

        Raises
        ------
        InputError
            If a column that is not in J is in both tables, or as `estimates.correlation_estimate`.
        ColumnNotFoundError
            If neither table has a column.
        """
        rows, counts = self.joined([*x, *y])
        options = {"numeric": numeric, "y_bins": y_bins, "numeric_scale": numeric_scale}
        return correlation_estimate(rows, counts, [self._test], x, y, **options, **self._drawn)

    def quality(self, dependencies: Sequence[Dependency]) -> Estimate:
        """Return the quality Q of the join of D1 and D2.

        Parameters
        ----------
        dependencies : sequence of Dependency
            FS, each column of D1 or of D2.

        Returns
        -------
        Estimate

        Raises
        ------
        InputError
            If a column that is not in J is in both tables, or values cannot be compared.
        ColumnNotFoundError
            If neither table has a column.
        """
        names = [name for one in dependencies for name in (*one.left, one.right)]
        rows, counts = self.joined(names)
        return quality_estimate(rows, counts, [self._test], dependencies, **self._drawn)

    def joined(self, names: Sequence[str]) -> tuple[pa.Table, np.ndarray]:
        """Return the join of the samples over some columns, as distinct rows with counts.

        Parameters
        ----------
        names : sequence of str
            Columns of D1 or of D2, next to those of J.

        Returns
        -------
        tuple of pyarrow.Table and numpy.ndarray of int64

        Raises
        ------
        InputError
            If a column that is not in J is in both tables.
        ColumnNotFoundError
            If neither table has a column.
        """
        others = [name for name in dict.fromkeys(names) if name not in self._test.names]
        sides = [
            [name for name in others if name in table.column_names]
            for table in (self._left, self._right)
        ]
        for name in others:
            if name not in sides[0] and name not in sides[1]:
                raise ColumnNotFoundError(
                    f"Neither table has the column {name!r}. Columns: {self._left.column_names} "
                    f"and {self._right.column_names}."
                )
        if both := set(sides[0]) & set(sides[1]):
            raise InputError(
                f"Columns that are not joined must be in one table alone, got {sorted(both)} in "
                "both. Rename them."
            )
        left_names, right_names = sides
        options = {"left_names": left_names, "right_names": right_names}
        return join_counts(self._left, self._right, self._test.names, **options)

    @property
    def _drawn(self) -> dict[str, object]:
        """Return how the samples were drawn."""
        squares = None
        if self._summaries is not None:
            squares = unsampled_squares(*self._summaries, self._test.rate)
        return {"seed": self._seed, "unsampled": [squares]}
