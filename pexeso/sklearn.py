"""A transformer of scikit-learn that adds the columns which a lake has for a key."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

import numpy as np
import pyarrow as pa

from pexeso.errors import IndexNotFoundError, InputError
from pexeso.index import Index, build_index, open_index
from pexeso.joins.enrichment.enrich import DEFAULT_MAX_TABLES, enrich
from pexeso.joins.enrichment.gathering import NUMBER, AddedColumn, column_of_lists
from pexeso.joins.options import free_name
from pexeso.joins.tables import position_of
from pexeso.lake.frames.columns import column_texts
from pexeso.lake.frames.tables import Frame, frame_of, put_beside
from pexeso.runtime.extras import require

require("sklearn", "pexeso.sklearn")
from sklearn.base import BaseEstimator, TransformerMixin  # noqa: E402
from sklearn.utils.validation import check_is_fitted, validate_data  # noqa: E402


class LakeJoiner(TransformerMixin, BaseEstimator):
    """Add the columns that a lake has for a key, the same ones to all tables after `fit`.

    `fit` chooses them as `pexeso.enrich` does; `transform` joins them, each key with the nearest
    value of the lake: numbers are averaged, and of texts the first is taken.

    Parameters
    ----------
    lake : path or pexeso.Index
        An index, which a pickled transformer opens again where it is; or a folder of tables, of
        which `fit` builds an index that lasts as long as this object.
    on : str or int
        The key: the name or position of a column of `X`.
    max_tables, min_coverage, exclude_tables
        As in `pexeso.enrich`.
    max_distance, min_joinability : float, optional
        As in `pexeso.Index.search`.

    Attributes
    ----------
    columns_ : tuple of AddedColumn
        The columns that are added, with the tables that they are from.
    n_features_in_ : int
    feature_names_in_ : numpy.ndarray of str
        Where `X` has names.

    Examples
    --------
    >>> import pandas as pd
    >>> joiner = LakeJoiner("lake.pexeso", on="country")
    >>> mine = pd.DataFrame({"country": ["Norway", "Korea, Rep."], "sales": [7, 12]})
    >>> joiner.fit_transform(mine)  # doctest: +SKIP
    """

    def __init__(
        self,
        lake: Any = None,
        on: str | int = 0,
        *,
        max_tables: int = DEFAULT_MAX_TABLES,
        min_coverage: float = 0.5,
        exclude_tables: Sequence[str] = (),
        max_distance: float | None = None,
        min_joinability: float | None = None,
    ) -> None:
        self.lake = lake
        self.on = on
        self.max_tables = max_tables
        self.min_coverage = min_coverage
        self.exclude_tables = exclude_tables
        self.max_distance = max_distance
        self.min_joinability = min_joinability

    def fit(self, X: Any, y: Any = None) -> LakeJoiner:  # noqa: N803  scikit-learn's name
        """Choose the columns of the lake that are added.

        Parameters
        ----------
        X : table or array of shape (n, d)
        y : array of shape (n,), optional
            What is to be predicted: columns that give it away are left out, and those that say most
            of it come first.
        """
        if self.lake is None:
            raise InputError("Name the index that tables are joined with: lake='lake.pexeso'.")
        names, columns = self._columns(X, reset=True)
        self.index_ = self._opened()
        target = None
        if y is not None:
            target = free_name("target", names.__contains__)
            columns[target] = pa.array(np.asarray(y).tolist())
        given = {"max_distance": self.max_distance, "min_joinability": self.min_joinability}
        options: dict[str, Any] = {
            name: value for name, value in given.items() if value is not None
        }
        enrichment = enrich(
            self.index_,
            pa.table(columns),
            position_of(names, self.on),
            target=target,
            max_tables=self.max_tables,
            exclude_tables=self.exclude_tables,
            min_coverage=self.min_coverage,
            **options,
        )
        self.columns_ = enrichment.columns
        self._max_distance = enrichment.options["max_distance"]
        return self

    def transform(self, X: Any) -> Any:  # noqa: N803
        """Return `X` with the added columns, of its kind, row by row.

        An array becomes one of numbers where all columns are, else one of objects.
        """
        check_is_fitted(self)
        names, columns = self._columns(X, reset=False)
        texts = columns[names[position_of(names, self.on)]]
        added = self._joined(column_texts(texts))
        frame = _frame_of(X)
        if frame is not None:
            return put_beside(frame.table, frame.kind, added)
        arrays = [column.to_numpy(zero_copy_only=False) for column in added.columns]
        return np.column_stack([np.asarray(X), *arrays]) if arrays else np.asarray(X)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns of `X`, and of those that are added."""
        check_is_fitted(self)
        if input_features is None:
            input_features = getattr(self, "feature_names_in_", None)
        if input_features is None:
            input_features = [f"x{number}" for number in range(self.n_features_in_)]
        return np.array([*input_features, *(one.name for one in self.columns_)], dtype=object)

    def _opened(self) -> Index:
        if isinstance(self.lake, Index):
            return self.lake
        try:
            return open_index(self.lake)
        except IndexNotFoundError:
            if not os.path.isdir(self.lake):
                raise
        folder = mkdtemp(prefix="pexeso-")
        finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return build_index(self.lake, Path(folder, "lake.pexeso"))

    def _columns(self, X: Any, *, reset: bool) -> tuple[list[str], dict[str, Any]]:  # noqa: N803
        frame = _frame_of(X)
        if frame is not None:
            validate_data(self, X, reset=reset, skip_check_array=True)
            return list(frame.names), dict(zip(frame.names, frame.columns(), strict=True))
        array = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")
        names = [f"x{number}" for number in range(array.shape[1])]
        return names, {name: pa.array(array[:, at].tolist()) for at, name in enumerate(names)}

    def _joined(self, texts: pa.Array) -> pa.Table:
        """Return the added columns for keys: float64 or text."""
        encoded = texts.dictionary_encode()
        keys = pa.table({"": encoded.dictionary})
        tables: dict[tuple[str, str], list[AddedColumn]] = {}
        for one in self.columns_:
            tables.setdefault((one.table, one.key), []).append(one)
        cells = {}
        for (table, key), columns in tables.items():
            options = {"max_distance": self._max_distance}
            match = self.index_.explain(encoded.dictionary, table, key, **options).match
            # All of the column is read as `fit` has read it.
            ways = {one.column: "mean" if one.kind == NUMBER else "list" for one in columns}
            joined = match.join(keys, 0, aggregate=ways, provenance=())
            for one in columns:
                of_key = joined.column(one.column).combine_chunks()
                if one.kind != NUMBER:
                    of_key = column_of_lists(of_key, 2.0).cells.cast(pa.string())
                cells[one.name] = of_key.take(encoded.indices)
        return pa.table([cells[one.name] for one in self.columns_], [c.name for c in self.columns_])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        return tags


def _frame_of(X: Any) -> Frame | None:  # noqa: N803
    """Return a table with names, of whatever library; None of arrays and lists."""
    return frame_of(X) if hasattr(X, "columns") else None
