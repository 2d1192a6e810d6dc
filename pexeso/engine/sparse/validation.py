"""Validation of the arrays of a partition of sparse vectors, whoever wrote them.

`require_shapes` reads nothing but types and shapes, `require_words` what there is of each word. The
numbers that lead from keys to words, from words to values and from values to columns are looked
at where they are used. `check_arrays` reads everything and says what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NoReturn

import numpy as np

from pexeso.engine.sparse.loops import word_loops
from pexeso.engine.sparse.space import LetterSpace
from pexeso.errors import IndexCorruptError

Arrays = Mapping[str, np.ndarray]

LISTS = ("value_words", "word_values", "key_words", "value_columns", "column_values")
ARRAYS = {
    "word_text": ("uint8", 1),
    "word_starts": ("int64", 1),
    "word_weights": ("float32", 1),
    "word_squares": ("int64", 1),
    "value_norms": ("float64", 1),
    "value_sums": ("float32", 1),
    "keys": ("int64", 1),
    **{f"{name}_offsets": ("int64", 1) for name in LISTS},
    **{f"{name}_members": ("int32", 1) for name in LISTS},
    "word_values_shares": ("uint8", 1),
}
_OTHERS = {"column_ids": ("int64", 1), "posting_texts": ("int32", 1)}


def require_shapes(arrays: Arrays) -> None:
    """Refuse arrays that are no partition by their types and shapes; nothing is read."""
    for name, (dtype, n_axes) in {**ARRAYS, **_OTHERS}.items():
        if name not in arrays:
            if name in _OTHERS:
                continue
            _refuse(f"The array {name} of a partition is missing")
        array = arrays[name]
        if array.dtype != np.dtype(dtype) or array.ndim != n_axes:
            _refuse(
                f"The array {name} of a partition holds {array.dtype} with {array.ndim} axes, "
                f"where {dtype} with {n_axes} must be"
            )
    n_words, n_values = len(arrays["word_weights"]), len(arrays["value_norms"])
    n_columns, n_keys = len(arrays["column_values_offsets"]) - 1, len(arrays["keys"])
    expected = {
        "word_starts": n_words + 1,
        "word_squares": n_words,
        "value_sums": n_values,
        "word_values_shares": len(arrays["word_values_members"]),
        "value_words_offsets": n_values + 1,
        "word_values_offsets": n_words + 1,
        "key_words_offsets": n_keys + 1,
        "value_columns_offsets": n_values + 1,
        "column_values_offsets": n_columns + 1,
        "value_columns_members": len(arrays["column_values_members"]),
        "column_ids": n_columns,
        "posting_texts": len(arrays["column_values_members"]),
    }
    for name, size in expected.items():
        if name in arrays and len(arrays[name]) != max(size, 0):
            _refuse(
                f"The array {name} of a partition has {len(arrays[name]):,} rows, where {size:,} "
                "must be"
            )
    if n_columns < 0:
        _refuse("The array column_values_offsets of a partition is empty")


def require_words(arrays: Arrays) -> None:
    """Refuse words that cannot be: what compiled loops rely on without a look of their own."""
    starts, weights = arrays["word_starts"], arrays["word_weights"]
    require_inside(starts, len(arrays["word_text"]), "words")
    require_inside(arrays["word_values_offsets"], len(arrays["word_values_members"]), "word_values")
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        _refuse("The weights of the words of a partition must be finite and above 0")
    if (arrays["word_squares"] < 1).any():
        _refuse("The words of a partition must have features")


def require_inside(offsets: np.ndarray, n_members: int, name: str) -> None:
    """Refuse offsets of the lists of a partition that are no bounds within so many entries."""
    # Compared, not subtracted: a difference of numbers so large comes out with the wrong sign.
    if offsets[0] < 0 or offsets[-1] > n_members or (offsets[1:] < offsets[:-1]).any():
        _refuse(f"The offsets of {name} in a partition lead out of its lists")


def check_arrays(arrays: Arrays, space: LetterSpace, *, n_texts: int | None = None) -> list[str]:
    """Return everything that is wrong with the arrays of a partition.

    Parameters
    ----------
    n_texts : int, optional
        Texts that `posting_texts` may name; not checked without.
    """
    try:
        require_shapes(arrays)
        require_words(arrays)
    except IndexCorruptError as error:
        return [str(error)]
    wrong = [*_wrong_lists(arrays)]
    if wrong:
        return wrong
    return [*_wrong_contents(arrays, space), *_wrong_texts(arrays, n_texts)]


def _wrong_lists(arrays: Arrays) -> Iterator[str]:
    n_words, n_values = len(arrays["word_weights"]), len(arrays["value_norms"])
    n_columns = len(arrays["column_values_offsets"]) - 1
    limits = dict(zip(LISTS, (n_words, n_values, n_words, n_columns, n_values), strict=True))
    for name, limit in limits.items():
        offsets, members = arrays[f"{name}_offsets"], arrays[f"{name}_members"]
        ends = offsets[0], offsets[-1]
        if ends != (0, len(members)) or (offsets[1:] < offsets[:-1]).any():
            yield f"{name}_offsets: they are not the bounds of {len(members):,} entries."
        elif len(members) and (members.min() < 0 or members.max() >= limit):
            yield f"{name}_members: an entry is not from 0 to {limit - 1:,}."
        elif not _ascending(offsets, members, strictly=name not in ("value_words", "key_words")):
            yield f"{name}_members: the entries of a row are not in ascending order."


def _ascending(offsets: np.ndarray, members: np.ndarray, *, strictly: bool) -> bool:
    steps = np.diff(members.astype(np.int64))
    inside = np.ones(len(steps), bool)
    ends = offsets[1:-1]
    inside[ends[(ends > 0) & (ends < len(members))] - 1] = False
    return not ((steps[inside] <= 0) if strictly else (steps[inside] < 0)).any()


def _wrong_contents(arrays: Arrays, space: LetterSpace) -> Iterator[str]:
    """Hold everything that follows from the words of the values against it."""
    from pexeso.engine.sparse.building import lists_of_keys, lists_of_values, sums_of
    from pexeso.engine.sparse.vectors import SparseVectors

    text, starts = np.asarray(arrays["word_text"]), np.asarray(arrays["word_starts"])
    if not word_loops.words_ascend(text, starts):
        yield "word_text: the words are not in the order of their bytes, each once."
        return
    right = SparseVectors.from_words(
        space,
        text,
        starts,
        np.asarray(arrays["word_weights"]),
        arrays["value_words_offsets"],
        arrays["value_words_members"],
    )
    for name, expected in (("word_squares", right.squares), ("value_norms", right.norms)):
        if not np.array_equal(arrays[name], expected):
            yield f"{name}: it is not what follows from the words."
    if not (right.norms > 0).all():
        yield "value_words_offsets: a value has no words."
        return
    sums, order = sums_of(right)
    if not np.array_equal(arrays["value_sums"], sums) or (np.diff(order) < 0).any():
        yield "value_sums: they are not those of the values, largest first."
    keys, offsets, members = lists_of_keys(right)
    lists = (("keys", keys), ("key_words_offsets", offsets), ("key_words_members", members))
    for name, expected in (
        *lists,
        *zip(
            (f"word_values_{name}" for name in ("offsets", "members", "shares")),
            lists_of_values(right),
            strict=True,
        ),
    ):
        if not np.array_equal(arrays[name], expected):
            yield f"{name}: it is not what follows from the words."
    rows = np.repeat(np.arange(len(right)), np.diff(arrays["value_columns_offsets"]))
    columns = arrays["value_columns_members"]
    others = np.repeat(
        np.arange(len(arrays["column_values_offsets"]) - 1),
        np.diff(arrays["column_values_offsets"]),
    )
    order = np.lexsort((rows, columns))
    if not (
        np.array_equal(columns[order], others)
        and np.array_equal(rows[order], arrays["column_values_members"])
    ):
        yield "value_columns: they are not the columns of the values."


def _wrong_texts(arrays: Arrays, n_texts: int | None) -> Iterator[str]:
    texts = arrays.get("posting_texts")
    if texts is not None and n_texts is not None and len(texts):
        smallest, largest = int(texts.min()), int(texts.max())
        if smallest < 0 or largest >= n_texts:
            yield f"posting_texts: an entry is not from 0 to {n_texts - 1:,}."
    ids = arrays.get("column_ids")
    if ids is not None and len(ids) and (ids[0] < 0 or (np.diff(ids) <= 0).any()):
        yield "column_ids: they are not ascending numbers from 0 on."


def _refuse(what: str) -> NoReturn:
    raise IndexCorruptError(
        f"{what}: 'pexeso check' lists the damage; restore the index, or build it again."
    )
