"""Cells as programs read them: text in composed form, without spaces around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.cells import present
from pexeso.lake.choose import profile_column
from pexeso.lake.tokens import tokens_of
from pexeso.lake.typed.value_texts import value_texts
from pexeso.sets.containment.hashing import hash_bytes

# Characters of a cell above which programs are not learned from it; they are applied to it.
MAX_LEARNED = 500


NUMBER = r"^[+-]?[0-9]+(?:[,. ][0-9]{3})*(?:[.,][0-9]+)? *%?$"
_WHOLE_NUMBER = "^[0-9]{1,18}$"
# Share of the whole numbers from the least to the largest that a counter has, inclusive.
_FILLED = 0.9


def cleaned(cells: pa.Array | pa.ChunkedArray, columns: np.ndarray | None = None) -> pa.Array:
    r"""Return cells as text in composed form (NFC) with plain spaces and none around it.

    Missing cells (`pexeso.lake.cells`) are null; `columns` has the column of each
    (int64), where they are of several.

    >>> cleaned(pa.array([" Zoe\u0308\u00a0M. ", "", None])).to_pylist()
    ['Zoë M.', None, None]
    """
    chunks = cells.chunks if isinstance(cells, pa.ChunkedArray) else [cells]
    texts = pa.chunked_array([value_texts(chunk) for chunk in chunks], pa.large_string())
    texts = pc.replace_substring(texts, "\N{NO-BREAK SPACE}", " ")
    texts = pc.utf8_trim_whitespace(pc.utf8_normalize(texts, form="NFC"))
    return present(texts.combine_chunks(), columns)


def sample_texts(values: pa.Array, size: int, seed: int = 0) -> np.ndarray:
    """Return the positions of some texts, chosen by what they are and not by their order.

    The same texts in another order are sampled alike. Samples of two columns are independent if
    their seeds differ.
    """
    if len(values) <= size:
        return np.arange(len(values))
    hashes = hash_bytes(values.cast(pa.large_string()), seed)
    last = np.partition(hashes, size - 1)[size - 1] if size else np.uint64(0)
    sure = np.flatnonzero(hashes < last)
    equal = np.flatnonzero(hashes == last)
    # Different texts of one hash: the smaller text first.
    equal = sorted(equal.tolist(), key=lambda at: values[at].as_py())[: size - len(sure)]
    return np.sort(np.concatenate([sure, np.array(equal, np.int64)]))


def spread(n: int, limit: int) -> list[int]:
    """Return all numbers below `n`, or so many of them that are evenly spread.

    >>> spread(3, 5), spread(100, 3), spread(0, 3)
    ([0, 1, 2], [0, 49, 99], [])
    """
    return np.unique(np.linspace(0, n - 1, limit).astype(int)).tolist() if n else []


def n_common(texts: Sequence[str]) -> int:
    """Return how many letters all texts begin with in common."""
    alike = (len(set(letters)) == 1 for letters in zip(*texts, strict=False))
    return sum(1 for _ in takewhile(bool, alike))


@dataclass(frozen=True)
class TextColumn:
    """A column of cleaned cells."""

    name: str
    cells: pa.Array  # pyarrow.Array of large_string (r,): as `cleaned` returns them

    @cached_property
    def values(self) -> pa.Array:
        return self._encoded.dictionary

    @cached_property
    def forms(self) -> pa.Array:
        """Each of `values` as it is read where cells are compared for equality."""
        return tokens_of(self.values)

    @cached_property
    def codes(self) -> np.ndarray:
        """Number of each row's text among `values`, or -1: int32 (r,)."""
        codes = pc.fill_null(self._encoded.indices, -1)
        return codes.to_numpy(zero_copy_only=False).astype(np.int32)

    @cached_property
    def first_rows(self) -> np.ndarray:
        first_rows = np.zeros(len(self.values), np.int64)
        rows = np.arange(len(self.codes))[::-1]
        codes = self.codes[::-1]
        first_rows[codes[codes >= 0]] = rows[codes >= 0]
        return first_rows

    @cached_property
    def counts(self) -> np.ndarray:
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.values))

    @cached_property
    def is_number(self) -> bool:
        are_numbers = pc.match_substring_regex(self.values, NUMBER)
        return len(self.values) > 0 and pc.all(are_numbers).as_py()

    @cached_property
    def kind(self) -> str:
        """What most values are: dates, numbers, texts, as `pexeso.lake.choose` says it."""
        return profile_column(self.values.cast(pa.string())).kind

    @cached_property
    def is_counter(self) -> bool:
        """Whether the values are whole numbers that fill a range, as numbers of rows do."""
        are_whole = pc.match_substring_regex(self.values, _WHOLE_NUMBER)
        if not is_key(self) or not pc.all(are_whole).as_py():
            return False
        limits = pc.min_max(self.values.cast(pa.int64())).as_py()
        return len(self.values) >= _FILLED * (limits["max"] - limits["min"] + 1)

    @cached_property
    def _encoded(self) -> pa.DictionaryArray:
        return self.cells.dictionary_encode()


@dataclass(frozen=True)
class TextTable:
    columns: tuple[TextColumn, ...]

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[str | None] | pa.Array]) -> TextTable:
        return cls(
            tuple(
                TextColumn(
                    name,
                    cleaned(
                        cells
                        if isinstance(cells, pa.Array | pa.ChunkedArray)
                        else pa.array(cells, pa.large_string())
                    ),
                )
                for name, cells in columns.items()
            )
        )

    @property
    def n_rows(self) -> int:
        return len(self.columns[0].cells) if self.columns else 0

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def rows(self, numbers: np.ndarray) -> list[tuple[str | None, ...]]:
        chosen = pa.array(numbers)
        columns = [column.cells.take(chosen).to_pylist() for column in self.columns]
        return list(zip(*columns, strict=True))

    def row(self, number: int) -> tuple[str | None, ...]:
        return tuple(column.cells[number].as_py() for column in self.columns)


# Share of the filled rows of a key column that may repeat a value (inclusive).
MAX_DUPLICATES = 0.02


def is_key(column: TextColumn) -> bool:
    """Return whether the values of a column identify its rows, but for few."""
    filled = int(column.counts.sum())
    return filled > 0 and filled - len(column.values) <= MAX_DUPLICATES * filled


def key_columns(table: TextTable) -> list[int]:
    """Return the columns that are keys, or that make one together with another column.

    Pairs of columns count only where no column is a key by itself (source, section 4.2: columns
    that belong to a key). Counters identify rows of their own table and nothing else: they are
    keys where a table has no other columns.
    """
    numbered = list(enumerate(table.columns))
    usable = [pair for pair in numbered if not pair[1].is_counter] or numbered
    alone = [number for number, column in usable if is_key(column)]
    if alone:
        return alone
    members: set[int] = set()
    for place, (one, left) in enumerate(usable):
        for other, right in usable[place + 1 :]:
            filled = (left.codes >= 0) & (right.codes >= 0)
            both = left.codes[filled].astype(np.int64) * len(right.values) + right.codes[filled]
            if len(both) and len(both) - len(np.unique(both)) <= MAX_DUPLICATES * len(both):
                members |= {one, other}
    return sorted(members)
