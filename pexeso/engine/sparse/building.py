"""From values as bags of words to the arrays of a partition."""

from __future__ import annotations

import numpy as np

from pexeso.engine.sparse.loops import key_loops
from pexeso.engine.sparse.vectors import SparseVectors
from pexeso.runtime.ranges import offsets_of


def build_partition(
    vectors: SparseVectors, column_offsets: np.ndarray, column_values: np.ndarray
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Build the arrays of a partition.

    Parameters
    ----------
    column_offsets : numpy.ndarray of shape (C + 1,), int64
    column_values : numpy.ndarray, int64
        The values of column i are ``column_values[column_offsets[i]:column_offsets[i + 1]]``.

    Returns
    -------
    arrays : dict of str to numpy.ndarray
        See `pexeso.engine.sparse.partition.SparsePartition`.
    order : numpy.ndarray of shape (N,), int64
        The value that each row is. Values of one sum keep the order in which they came.

    Notes
    -----
    Takes three times the memory of the arrays, and no time worth mentioning beside that of sorting
    the keys of all words.
    """
    stored = np.flatnonzero(vectors.is_known)
    stored_vectors = vectors.take(stored)
    sums, order = sums_of(stored_vectors)
    stored_vectors = stored_vectors.take(order)
    sums, order = sums[order], stored[order]
    keys, key_offsets, key_words = lists_of_keys(stored_vectors)
    word_offsets, word_values, shares = lists_of_values(stored_vectors)
    rows = np.full(len(vectors), -1, np.int64)
    rows[order] = np.arange(len(order))
    return {
        "word_text": stored_vectors.text,
        "word_starts": stored_vectors.starts,
        "word_weights": stored_vectors.weights,
        "word_squares": stored_vectors.squares,
        "value_norms": stored_vectors.norms,
        "value_sums": sums,
        "value_words_offsets": stored_vectors.offsets,
        "value_words_members": stored_vectors.members,
        "word_values_offsets": word_offsets,
        "word_values_members": word_values,
        "word_values_shares": shares,
        "keys": keys,
        "key_words_offsets": key_offsets,
        "key_words_members": key_words,
        **lists_of_columns(column_offsets, rows[column_values], len(order)),
    }, order


def sums_of(vectors: SparseVectors) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum of each value's scaled weights, rounded up, and the order of the values.

    Returns
    -------
    sums : numpy.ndarray of shape (n,), float32
    order : numpy.ndarray of shape (n,), int64
        Largest sums first, equal ones as they came.
    """
    value_of = np.repeat(np.arange(len(vectors)), np.diff(vectors.offsets))
    weights = vectors.weights[vectors.members].astype(np.float64)
    sums = np.bincount(value_of, weights=weights, minlength=len(vectors)) / np.sqrt(vectors.norms)
    rounded = np.nextafter(sums.astype(np.float32), np.float32(np.inf))
    return rounded, np.argsort(-rounded, kind="stable")


def lists_of_keys(vectors: SparseVectors) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return keys, int64 ascending, and offsets and members of the words of each, ascending."""
    sizes = np.zeros(len(vectors.weights), np.int64)
    key_loops.count_keys(vectors.text, vectors.starts, sizes)
    offsets = offsets_of(sizes)
    keys = np.empty(offsets[-1], np.int64)
    key_loops.write_all_keys(vectors.text, vectors.starts, offsets, keys)
    order = np.argsort(keys, kind="stable")
    words = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)[order]
    keys = keys[order]
    is_first = np.ones(len(keys), bool)
    is_first[1:] = keys[1:] != keys[:-1]
    first = np.flatnonzero(is_first)
    return keys[first], np.append(first, len(keys)).astype(np.int64), words


def lists_of_values(vectors: SparseVectors) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows of each word.

    Returns
    -------
    offsets : numpy.ndarray of shape (V + 1,), int64
    rows : numpy.ndarray, int32
        Ascending for each word, a row once.
    shares : numpy.ndarray, uint8
        The weight of the word in each row, as often as it has it, over the length of the value: in
        steps of 1/255, rounded up.
    """
    rows = np.repeat(np.arange(len(vectors)), np.diff(vectors.offsets))
    members, is_first = vectors.members, np.ones(len(rows), bool)
    is_first[1:] = (members[1:] != members[:-1]) | (rows[1:] != rows[:-1])
    first = np.flatnonzero(is_first)
    counts = np.diff(np.append(first, len(rows)))
    weights = vectors.weights[members[first]] * counts / np.sqrt(vectors.norms[rows[first]])
    shares = np.minimum(np.floor(weights * 255) + 1, 255).astype(np.uint8)
    order = np.argsort(members[first], kind="stable")
    sizes = np.bincount(members[first], minlength=len(vectors.weights))
    offsets = offsets_of(sizes)
    return offsets, rows[first][order].astype(np.int32), shares[order]


def lists_of_columns(
    column_offsets: np.ndarray, rows: np.ndarray, n_values: int
) -> dict[str, np.ndarray]:
    """Return the stored values of each column and the columns of each stored value.

    Parameters
    ----------
    rows : numpy.ndarray, int64
        The row of each entry, -1 where it is not stored.
    """
    n_columns = len(column_offsets) - 1
    columns = np.repeat(np.arange(n_columns), np.diff(column_offsets))[rows >= 0]
    rows = rows[rows >= 0]
    keys = np.unique(columns * max(n_values, 1) + rows)
    columns, rows = keys // max(n_values, 1), keys % max(n_values, 1)
    by_value = _lists(rows, columns, n_values)
    by_column = _lists(columns, rows, n_columns)
    names = ("offsets", "members")
    return {
        **{f"value_columns_{name}": array for name, array in zip(names, by_value, strict=True)},
        **{f"column_values_{name}": array for name, array in zip(names, by_column, strict=True)},
    }


def _lists(owners: np.ndarray, members: np.ndarray, n_owners: int) -> tuple[np.ndarray, np.ndarray]:
    """Return offsets and members by owner; the members of an owner keep their order."""
    order = np.argsort(owners, kind="stable")
    sizes = np.bincount(owners, minlength=n_owners)
    return offsets_of(sizes), members[order].astype(np.int32)
