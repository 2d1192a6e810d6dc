"""Values of a column of the lake as entities: near a query, with their cells, under their ids.

Ids hold names, not numbers, so that they outlast the index: ``TABLE/COLUMN`` of a column,
``TABLE/COLUMN/VALUE`` of a value, each part written as in an URL.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import ColumnNotFoundError, InputError
from pexeso.lake.rows import read_rows
from pexeso.results.query import EXACT_KINDS, QueryColumn
from pexeso.runtime.formatting import plain

if TYPE_CHECKING:
    from pexeso.index import Index

# Values that are near a query value and looked at, at most.
MAX_CANDIDATES = 50

# Of a property: the column that has it, None where that is in another table, and the keys of which
# one must be there.
Expected = tuple[str | None, set[str]]


def type_id(table: str, label: str) -> str:
    """Return the id of a column, of which `names_of` returns the names."""
    return f"{quote(table, safe='')}/{quote(label, safe='')}"


def names_of(text: str, n_parts: int) -> tuple[str, ...]:
    parts = text.split("/")
    if len(parts) != n_parts:
        what = {2: "a column is TABLE/COLUMN", 3: "a value is TABLE/COLUMN/VALUE"}[n_parts]
        raise InputError(f"The id of {what}. Got {plain(text)!r}.")
    return tuple(map(unquote, parts))


def visible_name(name: str) -> str:
    """Return a name as clients show it, of which some take it for HTML."""
    return plain(name).replace("<", "\u2039").replace(">", "\u203a")


class _Rows:
    """The rows of a table, by the value that they have in one column."""

    def __init__(self, index: Index, table: str, label: str, keys: pa.Array) -> None:
        self.table = read_rows(index.lake, table)
        self._normaliser = index.normaliser
        if label not in self.table.column_names:
            raise ColumnNotFoundError(
                f"'{table}' has changed since it was indexed: bring the index up to date "
                "(pexeso append)."
            )
        places = pc.index_in(self.keys(label), keys, skip_nulls=True)
        position = pc.fill_null(places, len(keys)).to_numpy(zero_copy_only=False)
        self._order = np.argsort(position, kind="stable")
        self._starts = np.searchsorted(position[self._order], np.arange(len(keys) + 1))

    @cached_property
    def _keys(self) -> dict[str, pa.Array]:
        return {}

    @property
    def nbytes(self) -> int:
        return self.table.nbytes + sum(keys.nbytes for keys in self._keys.values())

    def keys(self, label: str) -> pa.Array:
        """Return the cells of a column once normalised, large_string."""
        if label not in self._keys:
            keys = self._normaliser.normalise(self.table.column(label))
            self._keys[label] = keys.cast(pa.large_string())
        return self._keys[label]

    def at(self, position: int) -> pa.Array:
        return pa.array(self._order[slice(*self._starts[position : position + 2])])


class EntityColumn:
    """A column of the lake, whose values are entities; its table is read once that is needed."""

    def __init__(self, index: Index, table: str, label: str) -> None:
        from pexeso.semantic.column_lookup import ColumnLookup  # pages do without
        from pexeso.semantic.explanation import locate_column

        self._index = index
        self.lookup = ColumnLookup(index._opened, locate_column(index.store, table, label))
        self.table, self.label = self.lookup.table, self.lookup.label
        self.id = type_id(self.table, self.label)
        self.type = {"id": self.id, "name": visible_name(f"{self.label} ({self.table})")}
        columns = index.catalog.columns_of(self.table, ["label", "kind"]).to_pylist()
        kinds = {row["label"]: row["kind"] for row in columns}
        self.labels = tuple(kinds)
        # Near values of such columns are others.
        is_exact = kinds.get(self.label) in EXACT_KINDS
        self.max_distance = 0.0 if is_exact else index.usual_max_distance

    @property
    def nbytes(self) -> int:
        """Bytes of the rows, as far as these were read."""
        return self._rows.nbytes if "_rows" in vars(self) else 0

    @cached_property
    def _rows(self) -> _Rows:
        return _Rows(self._index, self.table, self.label, self.lookup.keys)

    def rows_at(self, position: int, labels: Iterable[str]) -> pa.Table:
        """Return the rows of the table that have a value; of labels that are there."""
        table = self._rows.table
        known = [label for label in labels if label in table.column_names]
        return table.select(known).take(self._rows.at(position))

    def position_of(self, name: str) -> int:
        """Return the position of a value; InputError where the column has none such."""
        position = pc.index(self.lookup.texts, pa.scalar(name, pa.large_string())).as_py()
        if position < 0:
            raise InputError(
                f"The column {self.label!r} of '{self.table}' has no value {plain(name)!r}."
            )
        return position

    def name(self, position: int) -> str:
        return self.lookup.texts[position].as_py()

    def suggestion(self, position: int) -> dict[str, Any]:
        return self._shown(self.name(position), notable=[self.type])

    def _shown(self, name: str, **facts: Any) -> dict[str, Any]:
        return {"id": f"{self.id}/{quote(name, safe='')}", "name": name, **facts}

    def candidates(
        self, column: QueryColumn, expected: Sequence[list[Expected]], limits: Sequence[int]
    ) -> list[list[dict[str, Any]]]:
        """Return for query values the values near them, best first by `expected` properties too."""
        encoded = self._index._opened.encode(column)
        near = self.lookup.near(encoded, self.max_distance, MAX_CANDIDATES)
        names = self.lookup.texts.take(pa.array(near.position)).to_pylist()
        scores = np.round(100 * (1 - near.distance), 2).tolist()
        facts = list(zip(near.position.tolist(), names, scores, near.equal.tolist(), strict=True))
        starts = np.searchsorted(near.query, np.arange(len(encoded.values) + 1)).tolist()
        answers = []
        for value, properties, limit in zip(
            encoded.value_of_row.to_pylist(), expected, limits, strict=True
        ):
            rows = [] if value is None else facts[starts[value] : starts[value + 1]]
            if properties:
                rows = self._by_properties(rows, properties)
            answers.append(
                [
                    self._shown(name, score=score, match=equal, type=[self.type])
                    for _, name, score, equal in rows[:limit]
                ]
            )
        return answers

    def _by_properties(
        self, rows: list[tuple[int, str, float, bool]], expected: list[Expected]
    ) -> list[tuple[int, str, float, bool]]:
        """Let each property count as much as the name: 100 where a cell has the value, or 0."""
        scored = []
        for position, name, score, equal in rows:
            places = self._rows.at(position)
            agreed = sum(
                label in self.labels
                and not keys.isdisjoint(self._rows.keys(label).take(places).to_pylist())
                for label, keys in expected
            )
            total = (score + 100 * agreed) / (1 + len(expected))
            scored.append((position, name, round(total, 2), equal and agreed == len(expected)))
        return sorted(scored, key=lambda row: -row[2])
