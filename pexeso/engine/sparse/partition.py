"""One partition of sparse vectors: its arrays, as they are built, checked and opened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from pexeso.engine.lists import (
    MEMBERS_AT_ONCE,
    Arrays,
    Lists,
    distinct_numbers,
    offsets_of,
    ranges,
    refuse,
    require_kinds,
    require_there,
    take_lists,
    wrong_list,
    wrong_numbers,
)
from pexeso.engine.sparse.marks import Marks
from pexeso.engine.sparse.vectors import LetterSpace, SparseVectors
from pexeso.errors import IndexCorruptError
from pexeso.runtime.compiled import compiled
from pexeso.runtime.ranges import runs_of_lists

if TYPE_CHECKING:
    import torch

    from pexeso.engine.sparse.torch_rows import DeviceMatrices


loops = compiled("pexeso.engine.sparse.loops")


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
    """
    arrays, order = arrays_in_turn(vectors, column_offsets, column_values)
    return dict(arrays), order


def arrays_in_turn(
    vectors: SparseVectors, column_offsets: np.ndarray, column_values: np.ndarray
) -> tuple[Iterator[tuple[str, np.ndarray]], np.ndarray]:
    """Do as `build_partition`, and yield the arrays by name.

    Whoever drops each as it comes needs no more memory than for the vectors twice, without their
    marks.
    """
    sums, order = sums_of(vectors)
    order = order[: np.count_nonzero(vectors.is_known)]
    return _arrays(vectors, order, sums[order], column_offsets, column_values), order


def _arrays(
    vectors: SparseVectors,
    order: np.ndarray,
    sums: np.ndarray,
    column_offsets: np.ndarray,
    column_values: np.ndarray,
) -> Iterator[tuple[str, np.ndarray]]:
    yield "value_sums", sums
    marks, vectors, n_values = vectors.marks, vectors.without_marks(), len(vectors)
    yield "value_forms", marks.forms[order]
    yield "value_sounds", marks.sounds[order]
    letters = marks.letters[order]
    yield "value_letters", letters
    yield "rows_by_letters", rows_by_letters(letters)
    offsets, members = take_lists(marks.offsets, marks.members, order)
    yield "value_marks_offsets", offsets
    yield "value_marks_members", members
    del marks, letters, offsets, members, sums
    vectors = vectors.take_unmarked(order)
    yield "value_norms", vectors.norms
    yield "value_words_offsets", vectors.offsets
    yield "value_words_members", vectors.members
    yield "word_text", vectors.text
    yield "word_starts", vectors.starts
    yield "word_weights", vectors.weights
    yield "word_squares", vectors.squares
    names = ("keys", "key_words_offsets", "key_words_members")
    yield from zip(names, lists_of_keys(vectors), strict=True)
    names = ("word_values_offsets", "word_values_members", "word_values_shares")
    yield from zip(names, lists_of_values(vectors), strict=True)
    del vectors
    rows = np.full(n_values, -1, np.int32)
    rows[order] = np.arange(len(order))
    yield from lists_of_columns(column_offsets, rows[column_values], len(order)).items()


def rows_by_letters(letters: np.ndarray) -> np.ndarray:
    """Return the rows in the order of the hashes of their letters, int32."""
    return np.argsort(letters, kind="stable").astype(np.int32)


def sums_of(vectors: SparseVectors) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum of each value's scaled weights, rounded up, and the order of the values.

    Returns sums: float32 (n,); order: int64 (n,), largest sums first, equal ones as they came, and
    those without words last.
    """
    sums = np.empty(len(vectors), np.float32)
    for run in runs_of_lists(vectors.offsets, MEMBERS_AT_ONCE):
        owner, members = _run_of(vectors, run)
        weights = vectors.weights[members].astype(np.float64)
        lengths = np.sqrt(vectors.norms[run])
        lengths[lengths == 0] = np.inf
        exact = np.bincount(owner, weights, minlength=len(lengths)) / lengths
        sums[run] = np.nextafter(exact.astype(np.float32), np.float32(np.inf))
    return sums, np.argsort(-sums, kind="stable")


def _run_of(vectors: SparseVectors, run: slice) -> tuple[np.ndarray, np.ndarray]:
    """Return for the words of a run of values which of them has each, int64, and the words."""
    offsets = vectors.offsets[run.start : run.stop + 1]
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return owner, vectors.members[offsets[0] : offsets[-1]]


def lists_of_keys(vectors: SparseVectors) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return keys, int64 ascending, and offsets and members of the words of each, ascending."""
    sizes = np.zeros(len(vectors.weights), np.int64)
    loops.count_keys(vectors.text, vectors.starts, sizes)
    ends = offsets_of(sizes)
    none = np.zeros(0, np.int64)
    pieces = [(none, none)]
    for run in runs_of_lists(ends, MEMBERS_AT_ONCE):
        pieces.append(np.unique(_keys_of(vectors, ends, run), return_counts=True))
    known, counts = map(np.concatenate, zip(*pieces, strict=True))
    keys, places = np.unique(known, return_inverse=True)
    sizes = np.bincount(places, weights=counts, minlength=len(keys)).astype(np.int64)
    offsets = offsets_of(sizes)
    words, begins = np.empty(offsets[-1], np.int32), offsets[:-1].copy()
    for run in runs_of_lists(ends, max(MEMBERS_AT_ONCE, len(keys))):
        places = np.searchsorted(keys, _keys_of(vectors, ends, run))
        owner = np.repeat(np.arange(run.start, run.stop), np.diff(ends[run.start : run.stop + 1]))
        sizes = np.bincount(places, minlength=len(keys))
        words[ranges(begins, sizes)] = owner[np.argsort(places, kind="stable")]
        begins += sizes
    return keys, offsets, words


def _keys_of(vectors: SparseVectors, ends: np.ndarray, run: slice) -> np.ndarray:
    """Return the keys of a run of words; those of all words end at `ends`."""
    own = ends[run.start : run.stop + 1] - ends[run.start]
    keys = np.empty(own[-1], np.int64)
    loops.write_all_keys(vectors.text, vectors.starts[run.start : run.stop + 1], own, keys)
    return keys


def lists_of_values(vectors: SparseVectors) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows of each word.

    Returns offsets: int64 (V + 1,); rows: int32, ascending for each word, a row once; shares:
    uint8, the weight of the word in each row, as often as it has it, over the length of the value:
    in steps of 1/255, rounded up.
    """
    n_words = len(vectors.weights)
    size, sizes = max(MEMBERS_AT_ONCE, n_words), np.zeros(n_words, np.int64)
    for run in runs_of_lists(vectors.offsets, size):
        sizes += np.bincount(_distinct_words(vectors, run)[0], minlength=n_words)
    offsets = offsets_of(sizes)
    rows, shares = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.uint8)
    begins = offsets[:-1].copy()
    for run in runs_of_lists(vectors.offsets, size):
        members, owner, counts = _distinct_words(vectors, run)
        weights = vectors.weights[members] * counts / np.sqrt(vectors.norms[run.start + owner])
        order = np.argsort(members, kind="stable")
        sizes = np.bincount(members, minlength=n_words)
        places = ranges(begins, sizes)
        rows[places] = run.start + owner[order]
        shares[places] = np.minimum(np.floor(weights * 255) + 1, 255)[order]
        begins += sizes
    return offsets, rows, shares


def _distinct_words(
    vectors: SparseVectors, run: slice
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the words of a run of values, once for each, the value and how often it has it."""
    owner, members = _run_of(vectors, run)
    is_first = np.ones(len(owner), bool)
    is_first[1:] = (members[1:] != members[:-1]) | (owner[1:] != owner[:-1])
    first = np.flatnonzero(is_first)
    return members[first], owner[first], np.diff(np.append(first, len(owner)))


def lists_of_columns(
    column_offsets: np.ndarray, rows: np.ndarray, n_values: int
) -> dict[str, np.ndarray]:
    """Return the stored values of each column and the columns of each stored value.

    rows: int32, the row of each entry, -1 where it is not stored.
    """
    n_columns = len(column_offsets) - 1
    firsts = np.arange(n_columns) * max(n_values, 1)
    keys = np.repeat(firsts, np.diff(column_offsets))
    keys += rows
    keys = distinct_numbers(keys[rows >= 0])
    columns, rows = (part.astype(np.int32) for part in np.divmod(keys, max(n_values, 1)))
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
    return offsets_of(sizes), members[order].astype(np.int32, copy=False)


LISTS = ("value_words", "word_values", "key_words", "value_columns", "column_values")
ARRAYS = {
    "word_text": ("uint8", 1),
    "word_starts": ("int64", 1),
    "word_weights": ("float32", 1),
    "word_squares": ("int64", 1),
    "value_norms": ("float64", 1),
    "value_sums": ("float32", 1),
    "value_forms": ("int64", 1),
    "value_letters": ("int64", 1),
    "rows_by_letters": ("int32", 1),
    "value_sounds": ("int64", 1),
    "value_marks_offsets": ("int64", 1),
    "value_marks_members": ("int64", 1),
    "keys": ("int64", 1),
    **{f"{name}_offsets": ("int64", 1) for name in LISTS},
    **{f"{name}_members": ("int32", 1) for name in LISTS},
    "word_values_shares": ("uint8", 1),
}
_OTHERS = {"column_ids": ("int64", 1), "posting_texts": ("int32", 1)}


def require_shapes(arrays: Arrays) -> None:
    """Refuse arrays that are no partition by their types and shapes; nothing is read."""
    require_there(arrays, ARRAYS)
    require_kinds(arrays, {**ARRAYS, **_OTHERS})
    n_words, n_values = len(arrays["word_weights"]), len(arrays["value_norms"])
    n_columns, n_keys = len(arrays["column_values_offsets"]) - 1, len(arrays["keys"])
    expected = {
        "word_starts": n_words + 1,
        "word_squares": n_words,
        "value_sums": n_values,
        "value_forms": n_values,
        "value_letters": n_values,
        "rows_by_letters": n_values,
        "value_sounds": n_values,
        "value_marks_offsets": n_values + 1,
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
            refuse(
                f"The array {name} of a partition has {len(arrays[name]):,} rows, where {size:,} "
                "must be"
            )
    if n_columns < 0:
        refuse("The array column_values_offsets of a partition is empty")


def require_words(arrays: Arrays) -> None:
    """Refuse words that cannot be: what compiled loops rely on without a look of their own."""
    starts, weights = arrays["word_starts"], arrays["word_weights"]
    require_inside(starts, len(arrays["word_text"]), "words")
    require_inside(arrays["value_marks_offsets"], len(arrays["value_marks_members"]), "value_marks")
    require_inside(arrays["word_values_offsets"], len(arrays["word_values_members"]), "word_values")
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        refuse("The weights of the words of a partition must be finite and above 0")
    if (arrays["word_squares"] < 1).any():
        refuse("The words of a partition must have features")


def require_inside(offsets: np.ndarray, n_members: int, name: str) -> None:
    """Refuse offsets of the lists of a partition that are no bounds within so many entries."""
    # Compared, not subtracted: a difference of numbers so large comes out with the wrong sign.
    if offsets[0] < 0 or offsets[-1] > n_members or (offsets[1:] < offsets[:-1]).any():
        refuse(f"The offsets of {name} in a partition lead out of its lists")


def check_arrays(arrays: Arrays, space: LetterSpace, *, n_texts: int | None = None) -> list[str]:
    """Return everything that is wrong with the arrays of a partition.

    n_texts: int, optional, texts that `posting_texts` may name; not checked without.
    """
    try:
        require_shapes(arrays)
        require_words(arrays)
    except IndexCorruptError as error:
        return [str(error)]
    wrong = list(_wrong_lists(arrays))
    return wrong or [*_wrong_contents(arrays, space), *wrong_numbers(arrays, n_texts)]


def _wrong_lists(arrays: Arrays) -> Iterator[str]:
    n_words, n_values = len(arrays["word_weights"]), len(arrays["value_norms"])
    n_columns = len(arrays["column_values_offsets"]) - 1
    for name, limit in zip(LISTS, (n_words, n_values, n_words, n_columns, n_values), strict=True):
        yield from wrong_list(arrays, name, limit, repeats=name in ("value_words", "key_words"))
    yield from wrong_list(arrays, "value_marks", 1 << 63)


def _wrong_contents(arrays: Arrays, space: LetterSpace) -> Iterator[str]:
    """Hold everything that follows from the words of the values against it."""
    text, starts = np.asarray(arrays["word_text"]), np.asarray(arrays["word_starts"])
    if not loops.words_ascend(text, starts):
        yield "word_text: the words are not in the order of their bytes, each once."
        return
    weights, offsets = np.asarray(arrays["word_weights"]), arrays["value_words_offsets"]
    members = arrays["value_words_members"]
    right = SparseVectors.from_words(space, text, starts, weights, offsets, members)
    for name, expected in (("word_squares", right.squares), ("value_norms", right.norms)):
        if not np.array_equal(arrays[name], expected):
            yield f"{name}: it is not what follows from the words."
    if not (right.norms > 0).all():
        yield "value_words_offsets: a value has no words."
        return
    if not np.array_equal(arrays["rows_by_letters"], rows_by_letters(arrays["value_letters"])):
        yield "rows_by_letters: they are not in the order of the letters of the values."
    columns = arrays["column_values_offsets"], arrays["column_values_members"]
    sums, order = sums_of(right)
    if not np.array_equal(arrays["value_sums"], sums) or (np.diff(order) < 0).any():
        yield "value_sums: they are not those of the values, largest first."
    follow = (*lists_of_keys(right), *lists_of_values(right))
    names = ("offsets", "members", "shares")
    derived = ("keys", *(f"key_words_{name}" for name in names[:2]))
    for name, expected in zip(
        (*derived, *(f"word_values_{name}" for name in names)), follow, strict=True
    ):
        if not np.array_equal(arrays[name], expected):
            yield f"{name}: it is not what follows from the words."
    if not all(
        np.array_equal(arrays[name], expected)
        for name, expected in lists_of_columns(*columns, len(right)).items()
    ):
        yield "value_columns: they are not the columns of the values."


BAND = 1.05  # the largest sum of a band over its smallest

# Sums between which the share of a band falls from 1, and the least share. Of shares .3 to 1 and
# ends 1.5 and 2.5 these took the least time on 281,000 values of web tables, at distances of .2 to
# .42.
FEW_WORDS, LEAST_SHARE = (1.2, 2.0), 0.85


@dataclass(frozen=True)
class SparsePartition:
    """The arrays of one partition.

    Shape letters: N stored values, V words, F keys, C columns.

    Attributes
    ----------
    value_sums : numpy.ndarray of shape (N,), float32
        These sums, rounded up.
    rows_by_letters : numpy.ndarray of shape (N,), int32
        The rows in the order of ``vectors.marks.letters``.
    word_values : Lists
        The rows of each of the V words, ascending.
    value_shares : numpy.ndarray, uint8
        What the word makes up of each of these rows; see
        `pexeso.engine.sparse.partition.lists_of_values`.
    keys : numpy.ndarray of shape (F,), int64
        Pairs of characters with their blocks, ascending; see
        ``write_keys`` in `pexeso/engine/sparse/words.pxi`.
    key_words : Lists
        The words of each key, ascending; a word is there as often as it has it.
    device : torch.device or None
        Where values are compared; None where it is not of torch: on the CPU, by compiled loops.
    """

    vectors: SparseVectors
    value_sums: np.ndarray
    rows_by_letters: np.ndarray
    word_values: Lists
    value_shares: np.ndarray
    keys: np.ndarray
    key_words: Lists
    value_lists: Lists
    column_lists: Lists
    device: torch.device | None = None

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, np.ndarray],
        space: LetterSpace,
        device: torch.device | None = None,
    ) -> SparsePartition:
        """View the arrays of `pexeso.engine.sparse.partition.build_partition`.

        Nothing is copied. What is there of each word is read and looked at, some 20 bytes; numbers
        that lead from words to values and back are looked at where they are used.
        """
        # Plain arrays are handed over to compiled loops without Python looking at each.
        arrays = {name: np.asarray(array) for name, array in arrays.items()}
        require_shapes(arrays)
        require_words(arrays)
        vectors = SparseVectors(
            space,
            *(arrays[f"word_{name}"] for name in ("text", "starts", "weights", "squares")),
            arrays["value_words_offsets"],
            arrays["value_words_members"],
            arrays["value_norms"],
            Marks(
                *(arrays[f"value_{name}"] for name in ("forms", "letters", "sounds")),
                *(arrays[f"value_marks_{name}"] for name in ("offsets", "members")),
            ),
        )
        names = ("word_values", "key_words", "value_columns", "column_values")
        words, keys, values, columns = (
            Lists(arrays[f"{name}_offsets"], arrays[f"{name}_members"]) for name in names
        )
        return cls(
            vectors,
            arrays["value_sums"],
            arrays["rows_by_letters"],
            words,
            arrays["word_values_shares"],
            arrays["keys"],
            keys,
            values,
            columns,
            device,
        )

    @cached_property
    def matrices(self) -> DeviceMatrices:
        from pexeso.engine.sparse.torch_rows import DeviceMatrices  # brings torch

        return DeviceMatrices.of(self)

    @cached_property
    def n_values(self) -> int:
        """N: distinct values with a vector."""
        return len(self.vectors)

    @cached_property
    def orders(self) -> list[object]:
        """The rows by what they may match for beside words, as `complete_rows` takes them."""
        marks, rows = self.vectors.marks, self.rows_by_letters
        if len(rows) and (rows.min() < 0 or rows.max() >= self.n_values):
            raise IndexCorruptError(loops.NO_LIST)
        orders = [loops.Order(marks.letters[rows], rows)]
        consonants = marks.sounds >> loops.BITS_BELOW_CONSONANTS
        has_sounds, is_other = marks.sounds != 0, (marks.sounds & loops.OTHER_SCRIPT) != 0
        sides = [np.flatnonzero(has_sounds & some) for some in (~is_other, is_other)]
        for numbers, owners in (marks.of_letters(), *((consonants[some], some) for some in sides)):
            order = np.argsort(numbers, kind="stable")
            orders.append(loops.Order(numbers[order], owners[order].astype(np.int32)))
        return orders

    @cached_property
    def n_words(self) -> int:
        return len(self.vectors.weights)

    @cached_property
    def n_columns(self) -> int:
        """C: columns, those without any vector included."""
        return len(self.column_lists)

    @property
    def pages(self) -> None:
        """Nothing: the system reads ahead by itself."""

    @cached_property
    def space(self) -> LetterSpace:
        return self.vectors.space

    @cached_property
    def longest_word(self) -> int:
        return int(np.diff(self.vectors.starts).max(initial=0))

    @cached_property
    def most_value_words(self) -> int:
        offsets = self.vectors.offsets
        require_inside(offsets, len(self.vectors.members), "value_words")
        return int(np.diff(offsets).max(initial=0))

    @cached_property
    def scales(self) -> np.ndarray:
        """(1 - share of whole words) over the length of each word, float32 (V,)."""
        return (self.space.letters / np.sqrt(self.vectors.squares)).astype(np.float32)

    @cached_property
    def factors(self) -> np.ndarray:
        """The scale of each word times its weight, float32 (V,)."""
        return (self.scales * self.vectors.weights).astype(np.float32)

    @cached_property
    def value_lengths(self) -> np.ndarray:
        """The length of each value, float32 (N,)."""
        return np.sqrt(self.vectors.norms).astype(np.float32)

    @cached_property
    def view(self) -> object:
        words, keys = self.word_values, self.key_words
        return loops.Stored(
            self.vectors.view, self.scales, self.factors, self.reach, self.first_bands,
            self.keys, keys.offsets, keys.members,
            words.offsets, words.members, self.value_shares, self.value_lengths, *self.bands,
        )  # fmt: skip

    @cached_property
    def bands(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Bands of rows of about equal sums.

        Returns ends: int64 (K,), the first row after each band; K is at least 1; sums: float32
        (K,), the largest sum of each band; shares: float32 (K,), see ``collect_rows`` in
        `pexeso/engine/sparse/rows.pxi`.
        """
        if not self.n_values:
            return np.zeros(1, np.int64), np.ones(1, np.float32), np.ones(1, np.float32)
        starts, row = [], 0
        while row < self.n_values:
            starts.append(row)
            smallest = -self.value_sums[row] / np.float32(BAND)
            after = np.searchsorted(-self.value_sums, smallest, side="right")
            row = max(row + 1, int(after))
        sums = self.value_sums[starts].astype(np.float32)
        return np.array([*starts[1:], self.n_values], np.int64), sums, share_of(sums)

    @cached_property
    def first_bands(self) -> np.ndarray:
        """The band of the first value of each word, uint8 (V,); 0 for a word without."""
        first = self.word_values.offsets[:-1]
        filled = self._is_filled
        rows = np.zeros(self.n_words, np.int64)
        rows[filled] = self.word_values.members[first[filled]]
        ends, _, _ = self.bands
        return np.minimum(np.searchsorted(ends, rows, side="right"), len(ends) - 1).astype(np.uint8)

    @property
    def _is_filled(self) -> np.ndarray:
        return self.word_values.offsets[1:] > self.word_values.offsets[:-1]

    @cached_property
    def reach(self) -> np.ndarray:
        """What a word's nearness is held against, float32 (V,).

        Its scale times the largest sum of its values over the share of that sum's band, rounded up.
        """
        _, sums, shares = self.bands
        largest = np.where(self._is_filled, (sums / shares)[self.first_bands], 0.0)
        return (largest * self.scales * np.float32(1 + 2**-20)).astype(np.float32)


def share_of(sums: np.ndarray) -> np.ndarray:
    """Return the part of ``floor / sum`` from which on the words of a row count, float32.

    1 for values of few words; the more words there are, the likelier one of them is near by chance.
    """
    few, many = FEW_WORDS
    inside = np.clip((sums - few) / (many - few), 0.0, 1.0)
    return (1.0 - (1.0 - LEAST_SHARE) * inside).astype(np.float32)
