"""Distinct cells of many columns in one array, so that small columns share the work of one pass.

A pass over an array costs microseconds before it looks at the first text, and patterns cost
milliseconds to prepare. Columns of a few cells are therefore counted by themselves and then put
behind one another.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from itertools import pairwise
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embed.words import hash_strings
from pexeso.engine.lists import distinct_numbers
from pexeso.runtime.threads import release_unused

_Texts = TypeVar("_Texts", pa.StringArray, pa.LargeStringArray)


def _foreign_words() -> list[str]:
    """Return words of other languages than English, of ``missing.json``."""
    page = files("pexeso.lake.normalise").joinpath("missing.json")
    return [word for words in json.loads(page.read_text("utf-8")).values() for word in words]


_WORDS = (
    *("null", "nil", "none", "nan", "-nan", "+nan", "nat", "undefined", "missing", "unknown"),
    *("n/a", "n/a.", "n / a", "n.a.", "n.a", "n. a.", "n\\a", "\\n"),
    *("n/d", "n.d.", "n.d", "n/k", "n.k.", "n.k"),
    *("not available", "not applicable", "not known", "not specified", "not provided"),
    *("not stated", "not reported", "not recorded", "not given", "not defined", "not determined"),
    *("unspecified", "undetermined", "unavailable", "no data", "no data available", "no value"),
    "no information",
    *("missing value", "missing data", "data not available", "information not available"),
    *("tbd", "tba", "tbc", "t.b.d.", "t.b.a.", "t.b.c."),
    *("0000-00-00", "0000-00-00 00:00:00", "00/00/0000", "00.00.0000"),
    *("to be determined", "to be announced", "to be confirmed", "to be defined"),
    *_foreign_words(),
)
_BRACKETED_ONLY = ("na", "blank", "empty", "no entry")
_ERRORS = (
    *("#n/a", "#na", "#n/a n/a", "#value!", "#ref!", "#div/0!", "#name?", "#num!", "#null!"),
    *("#spill!", "#calc!", "#field!", "#blocked!", "#unknown!", "#connect!", "#busy!", "#error!"),
    *("#getting_data", "#error", "1.#qnan", "-1.#qnan", "1.#ind", "-1.#ind", "-nan(ind)"),
)

# Texts that stand for a missing value, their case folded.
MISSING = (
    *_WORDS,
    *_ERRORS,
    *(
        bracket[0] + word + bracket[1]
        for bracket in ("()", "[]", "<>", "{}")
        for word in (*_WORDS, *_BRACKETED_ONLY)
    ),
)

# Texts that are gaps in some columns and codes in others, their case folded.
AMBIGUOUS = ("na", "tba", "tbc", "tbd")

_MARKS = "^[\\-\u2010-\u2015\u2212\uff0d_.\u2026?\uff1f/]+$"
_CODE = r"^(?:[\p{Lu}\pN]{1,3}|[\p{Ll}\pN]{1,3}|\p{Lu}\p{Ll})$"
_LETTER = r"\pL"
_MAX_BYTES = max(len(word.encode()) for word in MISSING)
_GAPS = frozenset((*MISSING, *AMBIGUOUS))
_MARKS_ONLY = re.compile(_MARKS)
# So few cells are sooner looked at one by one than all at once.
_FEW = 64
# Of so many texts one is most often there twice where some are equal.
_MANY = 1 << 12


def is_missing(texts: pa.Array, columns: np.ndarray | None = None) -> np.ndarray:
    """Return which cells are missing.

    columns: int64 (n,), optional, the column of each, 0 or more; by default all are of one column.
    """
    missing = texts.is_null().to_numpy(zero_copy_only=False).copy()
    if len(texts) <= _FEW:
        cells = [*map(str.lower, map(str.strip, texts.drop_null().to_pylist()))]
        is_ascii, has_gaps = all(map(str.isascii, cells)), not _GAPS.isdisjoint(cells)
        if is_ascii and all(cells) and not has_gaps and not any(map(_MARKS_ONLY.match, cells)):
            return missing
    # Few cells are short enough to be looked at; white space around them counts for nothing.
    trimmed = pc.utf8_trim_whitespace(texts)
    short = pc.less_equal(pc.binary_length(trimmed), _MAX_BYTES)
    positions = np.flatnonzero(pc.fill_null(short, False).to_numpy(zero_copy_only=False))
    if not len(positions):
        return missing
    lower = pc.utf8_lower(trimmed.take(pa.array(positions))).cast(pa.string())
    is_gap = pc.or_(
        pc.or_(pc.equal(lower, ""), pc.is_in(lower, value_set=_missing_texts())),
        pc.match_substring_regex(lower, _MARKS),
    )
    missing[positions] = is_gap.to_numpy(zero_copy_only=False)
    is_ambiguous = pc.is_in(lower, value_set=pa.array(AMBIGUOUS, pa.string()))
    ambiguous = positions[is_ambiguous.to_numpy(zero_copy_only=False)]
    if len(ambiguous):
        missing[ambiguous] = ~_columns_of_codes(trimmed, missing, ambiguous, columns)
    return missing


@cache
def _missing_texts() -> pa.StringArray:
    return pa.array(MISSING, pa.string())  # not where the module is loaded, as it brings pandas


def _columns_of_codes(
    trimmed: pa.Array, missing: np.ndarray, ambiguous: np.ndarray, columns: np.ndarray | None
) -> np.ndarray:
    """Return for each ambiguous cell whether its column is one of short codes, bool."""
    columns = np.zeros(len(trimmed), np.int64) if columns is None else columns
    known = ~missing & np.isin(columns, columns[ambiguous])
    known[ambiguous] = False
    positions = np.flatnonzero(known)
    others = trimmed.take(pa.array(positions)).dictionary_encode()
    is_code = pc.and_(
        pc.match_substring_regex(others.dictionary, _CODE),
        pc.match_substring_regex(others.dictionary, _LETTER),
    ).to_numpy(zero_copy_only=False)
    n_texts = max(len(is_code), 1)
    keys = distinct_numbers(columns[positions] * n_texts + others.indices.to_numpy())
    n_columns = int(columns.max()) + 1
    n_codes, n_others = (
        np.bincount(chosen // n_texts, minlength=n_columns)
        for chosen in (keys[is_code[keys % n_texts]] if len(keys) else keys, keys)
    )
    return ((n_codes > 0) & (2 * n_codes >= n_others))[columns[ambiguous]]


def present(texts: _Texts, columns: np.ndarray | None = None) -> _Texts:
    """Return the cells, null where they are missing; see `is_missing`."""
    missing = is_missing(texts, columns)
    if missing.sum() == texts.null_count:
        return texts
    return pc.if_else(pa.array(missing), pa.scalar(None, texts.type), texts)


def is_missing_word(cell: str) -> bool:
    """Return whether a cell that is not empty stands for a missing value, ``NA`` among them."""
    text = cell.strip().lower()
    return text in _GAPS or bool(_MARKS_ONLY.match(text))


def names_no_column(cell: str) -> bool:
    """Return whether a cell stands for a missing value and would hardly name a column.

    Words such as ``unknown`` and ``NA`` name columns of counts; ``NULL`` and ``n/a`` do not.
    """
    text = cell.strip().lower()
    return is_missing_word(text) and (not text.isalpha() or text in ("null", "nan"))


def _counted(texts: pa.StringArray) -> pa.StructArray:
    if len(texts) > _FEW and _differ(texts):
        counts = pa.array(np.ones(len(texts), np.int64))
        return pa.StructArray.from_arrays([texts, counts], ["values", "counts"])
    return texts.value_counts()


def _differ(texts: _Texts) -> bool:
    """Return whether all texts differ by their hashes, which take less memory than to look them up.

    Of texts that begin with equal ones only the beginning is hashed.
    """
    for some in (texts[:_MANY], texts):
        hashes = hash_strings(some.cast(pa.large_string()))
        if len(distinct_numbers(hashes)) < len(some):
            return False
    return True


@dataclass(frozen=True)
class CountedCells:
    """The distinct cells of columns, and how often each occurs.

    counts: int64 (n,), how often each occurs in its column; columns: int64 (n,), the column of
    each, ascending from 0.
    """

    texts: pa.StringArray
    counts: np.ndarray
    columns: np.ndarray
    n_columns: int

    @classmethod
    def of(cls, columns: Sequence[pa.StringArray]) -> CountedCells:
        """Count the cells of columns; nulls are left out, white space is kept."""
        counted = cls.joined([_counted(column.drop_null()) for column in columns])
        release_unused(counted.texts.nbytes)
        return counted

    @classmethod
    def joined(cls, counted: Sequence[pa.StructArray]) -> CountedCells:
        """Put counted columns behind one another."""
        texts = [column.field(0) for column in counted]
        counts = [column.field(1) for column in counted]
        sizes = [len(cells) for cells in texts]
        if len(texts) != 1:  # one is as large as it is, and would be copied
            texts = [pa.concat_arrays(texts) if texts else pa.array([], pa.string())]
        return cls(
            texts[0],
            pa.concat_arrays(counts).to_numpy() if counts else np.zeros(0, dtype=np.int64),
            np.repeat(np.arange(len(sizes)), sizes),
            len(sizes),
        )

    @cached_property
    def offsets(self) -> np.ndarray:
        """Where the cells of each column begin, and the end: int64, shape (n_columns + 1,)."""
        return np.searchsorted(self.columns, np.arange(self.n_columns + 1))

    def sums(self, weights: np.ndarray, chosen: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Add up one weight a cell by column, of chosen cells: int64, shape (n_columns,)."""
        sums = np.bincount(self.columns[chosen], weights=weights[chosen], minlength=self.n_columns)
        return sums.astype(np.int64)

    def trimmed(self) -> CountedCells:
        trimmed = pc.utf8_trim_whitespace(self.texts)
        kept = ~is_missing(trimmed, self.columns)
        n_bytes = pc.sum(pc.binary_length(trimmed)).as_py()
        if n_bytes == pc.sum(pc.binary_length(self.texts)).as_py() and kept.all():
            return self
        return self.replaced(trimmed, kept)[0]

    def replaced(self, texts: pa.Array, kept: np.ndarray) -> tuple[CountedCells, np.ndarray]:
        """Put another text in the place of each cell, and count equal ones of a column together.

        Returns first: int64, for each of them, the position of the first of its cells in this
        object.
        """
        rows = np.flatnonzero(kept)
        columns, counts = self.columns[rows], self.counts[rows]
        if len(rows) < len(kept):
            texts = texts.take(pa.array(rows))
        if _differ(texts):
            return CountedCells(texts, counts, columns, self.n_columns), rows
        encoded = texts.dictionary_encode()
        n_texts = len(encoded.dictionary)
        keys = columns * n_texts + encoded.indices.to_numpy()
        _, first, cell = np.unique(keys, return_index=True, return_inverse=True)
        totals = np.bincount(cell, weights=counts, minlength=len(first)).astype(np.int64)
        order = np.argsort(first, kind="stable")
        first = first[order]
        merged = encoded.dictionary.take(encoded.indices.take(pa.array(first)))
        return CountedCells(merged, totals[order], columns[first], self.n_columns), rows[first]

    def only(self, columns: Sequence[int]) -> CountedCells:
        number = np.full(self.n_columns, -1)
        number[np.asarray(columns, dtype=np.int64)] = np.arange(len(columns))
        new_columns = number[self.columns]
        rows = np.flatnonzero(new_columns >= 0)
        texts = self.texts if len(rows) == len(new_columns) else self.texts.take(pa.array(rows))
        return CountedCells(texts, self.counts[rows], new_columns[rows], len(columns))

    def slices(self, *arrays: pa.Array) -> Iterator[tuple[pa.Array, ...]]:
        offsets = self.offsets.tolist()
        for start, end in pairwise(offsets):
            yield tuple(array.slice(start, end - start) for array in arrays)
