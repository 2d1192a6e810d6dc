"""Cells that stand for a missing value: the one definition, for every search and every join.

A missing cell joins with nothing, since tables with gaps would seem to share a key. A cell is
missing where it is null, empty, or one of `MISSING` once white space around it is dropped and its
case is folded: words such as ``N/A`` and ``unknown``, the errors of spreadsheets, the same in
brackets, and runs of nothing but dashes, dots, slashes, question marks and underscores.

Some are both a gap and a code: ``NA`` (Namibia, sodium, North America), ``TBA`` (Tampa Bay). Their
column decides: they are values where at least half of the column's other distinct values are codes,
at most three letters and digits in one case (``NO``, ``IT``, ``A1``), or two letters of which the
first is a capital (``Fe``). They are gaps everywhere else.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_Texts = TypeVar("_Texts", pa.StringArray, pa.LargeStringArray)

_WORDS = (
    *("null", "nil", "none", "nan", "-nan", "+nan", "nat", "undefined", "missing", "unknown"),
    *("n/a", "n/a.", "n / a", "n.a.", "n.a", "n. a.", "n\\a", "\\n", "n/d", "n.d.", "n/k", "n.k."),
    *("not available", "not applicable", "not known", "not specified", "not provided"),
    *("not stated", "not reported", "not recorded", "not given", "not defined", "not determined"),
    *("unspecified", "undetermined", "unavailable", "no data", "no value", "no information"),
    *("missing value", "missing data", "data not available", "information not available"),
    *("tbd", "tba", "tbc", "t.b.d.", "t.b.a.", "t.b.c."),
    *("to be determined", "to be announced", "to be confirmed", "to be defined"),
    *("k.a.", "k. a.", "keine angabe", "keine angaben", "unbekannt", "inconnu", "inconnue"),
    *("desconocido", "desconocida", "desconhecido", "sconosciuto", "onbekend", "sin datos", "s/d"),
)
_BRACKETED_ONLY = ("na", "blank", "empty", "no entry")
_ERRORS = (
    *("#n/a", "#na", "#n/a n/a", "#value!", "#ref!", "#div/0!", "#name?", "#num!", "#null!"),
    *("#spill!", "#calc!", "#field!", "#blocked!", "#unknown!", "#connect!", "#busy!", "#error!"),
    *("#getting_data", "#error", "1.#qnan", "-1.#qnan", "1.#ind", "-1.#ind", "-nan(ind)"),
)

MISSING = (
    *_WORDS,
    *_ERRORS,
    *(
        bracket[0] + word + bracket[1]
        for bracket in ("()", "[]", "<>", "{}")
        for word in (*_WORDS, *_BRACKETED_ONLY)
    ),
)
"""Texts that stand for a missing value, their case folded."""

AMBIGUOUS = ("na", "tba", "tbc", "tbd")
"""Texts that are gaps in some columns and codes in others, their case folded."""

_MARKS = "^[\\-\u2010-\u2015\u2212_.\u2026?/]+$"
_CODE = r"^(?:[\p{Lu}\pN]{1,3}|[\p{Ll}\pN]{1,3}|\p{Lu}\p{Ll})$"
_LETTER = r"\pL"
_MAX_BYTES = max(len(word.encode()) for word in MISSING)
_MISSING_SET = frozenset(MISSING)
_MARKS_ONLY = re.compile(_MARKS)


def is_missing(texts: pa.Array, columns: np.ndarray | None = None) -> np.ndarray:
    """Return which cells are missing.

    Parameters
    ----------
    columns : int64 (n,), optional
        The column of each, 0 or more; by default all are of one column.

    Examples
    --------
    >>> is_missing(pa.array(["Oslo", " n/a ", "NA", "--", None])).tolist()
    [False, True, True, True, True]
    >>> is_missing(pa.array(["NO", "NA", "N/A", "IT"])).tolist()
    [False, False, True, False]
    """
    missing = texts.is_null().to_numpy(zero_copy_only=False).copy()
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
    keys = np.unique(columns[positions] * n_texts + others.indices.to_numpy())
    n_columns = int(columns.max()) + 1
    n_codes, n_others = (
        np.bincount(chosen // n_texts, minlength=n_columns)
        for chosen in (keys[is_code[keys % n_texts]] if len(keys) else keys, keys)
    )
    return ((n_codes > 0) & (2 * n_codes >= n_others))[columns[ambiguous]]


def present(texts: _Texts, columns: np.ndarray | None = None) -> _Texts:
    """Return the cells, null where they are missing; see `is_missing`.

    Examples
    --------
    >>> present(pa.array(["Oslo", "N/A", " "])).to_pylist()
    ['Oslo', None, None]
    """
    missing = is_missing(texts, columns)
    if missing.sum() == texts.null_count:
        return texts
    return pc.if_else(pa.array(missing), pa.scalar(None, texts.type), texts)


def is_missing_word(cell: str) -> bool:
    r"""Return whether a cell that is not empty stands for a missing value, ``NA`` among them.

    Examples
    --------
    >>> is_missing_word(r" \N "), is_missing_word("NA"), is_missing_word("Oslo")
    (True, True, False)
    """
    text = cell.strip().lower()
    return text in _MISSING_SET or text in AMBIGUOUS or bool(_MARKS_ONLY.match(text))


def names_no_column(cell: str) -> bool:
    """Return whether a cell stands for a missing value and would hardly name a column.

    Words such as ``unknown`` and ``NA`` name columns of counts; ``NULL`` and ``n/a`` do not.

    Examples
    --------
    >>> names_no_column("N/A"), names_no_column("NULL"), names_no_column("Unknown")
    (True, True, False)
    """
    text = cell.strip().lower()
    return is_missing_word(text) and (not text.isalpha() or text in ("null", "nan"))
