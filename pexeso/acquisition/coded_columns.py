"""Columns of a market as numbers, read once and kept: values, and the keys of joins.

Keys are compared by their tokens (`pexeso.lake.tokens`), as overlap searches compare them: 1, 1.0
and "1" are one key, a missing cell is none.

Memory: 4 bytes a row for each column of values and 8 for each set of join columns and side, and
the distinct tokens of join columns; what was asked for longest ago is dropped beyond `max_bytes`
and is read again when it is needed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.acquisition.tables import MarketTable
from pexeso.errors import InputError
from pexeso.joins.measures.codes import column_of, encoded, paired_codes
from pexeso.lake.tokens import tokens_of

DEFAULT_BYTES = 2 << 30


@dataclass(frozen=True, eq=False)
class ColumnCodes:
    """A column as positions in its distinct values."""

    codes: np.ndarray
    values: pa.Array

    @property
    def n_bytes(self) -> int:
        """Memory of both."""
        return self.codes.nbytes + self.values.nbytes


@dataclass(frozen=True, eq=False)
class JoinKeys:
    """The keys of two tables as numbers, equal where the keys are."""

    left: np.ndarray
    right: np.ndarray
    n_codes: int

    @property
    def n_bytes(self) -> int:
        """Memory of both sides."""
        return self.left.nbytes + self.right.nbytes

    def swapped(self) -> JoinKeys:
        """Return the same keys as seen from the right table."""
        return JoinKeys(self.right, self.left, self.n_codes)


class CodedColumns:
    """Codes of columns and keys, computed when they are first asked for."""

    def __init__(self, max_bytes: int = DEFAULT_BYTES) -> None:
        self._max_bytes, self._bytes = max_bytes, 0
        self._kept: OrderedDict[tuple[Any, ...], Any] = OrderedDict()

    def values(self, table: MarketTable, name: str) -> ColumnCodes:
        """Return a column as numbers; missing cells are a value equal to itself."""

        def coded() -> ColumnCodes:
            table.require(name)
            column = encoded(column_of(table.read([name]), name), name)
            return ColumnCodes(
                column.indices.to_numpy().astype(np.int32, copy=False), column.dictionary
            )

        return self._keep(("values", table.name, name), coded)

    def tokens(self, table: MarketTable, name: str) -> ColumnCodes:
        """Return the tokens of a column as numbers, -1 where a cell has none."""

        def coded() -> ColumnCodes:
            # Not through `values`: columns that only join would be kept twice.
            table.require(name)
            column = encoded(column_of(table.read([name]), name), name)
            tokens = tokens_of(column.dictionary).dictionary_encode()
            of_value = pc.fill_null(tokens.indices, -1).to_numpy(zero_copy_only=False)
            codes = of_value.astype(np.int32)[column.indices.to_numpy()]
            return ColumnCodes(codes, tokens.dictionary)

        return self._keep(("tokens", table.name, name), coded)

    def keys(
        self, left: MarketTable, right: MarketTable, pairs: Sequence[tuple[str, str]]
    ) -> JoinKeys:
        """Return the keys of a join of two tables as numbers."""
        if not pairs:
            raise InputError(f"A join of '{left.name}' and '{right.name}' needs a pair of columns.")
        if left.name > right.name:
            return self.keys(right, left, [(second, first) for first, second in pairs]).swapped()
        ordered = tuple(sorted(pairs))
        return self._keep(
            ("keys", left.name, right.name, ordered), lambda: self._keys(left, right, ordered)
        )

    def _keys(
        self, left: MarketTable, right: MarketTable, pairs: Sequence[tuple[str, str]]
    ) -> JoinKeys:
        whole = np.zeros(left.n_rows + right.n_rows, np.int64)
        missing = np.zeros(len(whole), bool)
        for left_column, right_column in pairs:
            one, other = self.tokens(left, left_column), self.tokens(right, right_column)
            in_left = pc.index_in(other.values, one.values)
            new = np.arange(len(other.values)) + len(one.values)
            known = in_left.is_valid().to_numpy(zero_copy_only=False)
            of_other = np.append(
                np.where(known, pc.fill_null(in_left, 0).to_numpy(zero_copy_only=False), new), -1
            )
            both = np.concatenate([one.codes.astype(np.int64), of_other[other.codes]])
            missing |= both < 0
            whole = both if len(pairs) == 1 else paired_codes(whole, np.maximum(both, 0))
        whole[missing] = -1
        return JoinKeys(whole[: left.n_rows], whole[left.n_rows :], int(whole.max(initial=-1)) + 1)

    def _keep(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        entry = make()
        self._kept[key] = entry
        self._bytes += entry.n_bytes
        while self._bytes > self._max_bytes and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._bytes -= dropped.n_bytes
        return entry
