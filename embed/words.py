"""From values to their words: the unique words of a batch, and which of them each value holds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embed.protocol import Values
from pexeso.errors import InputError
from pexeso.runtime.buffers import string_buffers
from pexeso.runtime.compiled import compiled
from pexeso.runtime.ranges import mixed, runs_of_lists

loops = compiled("embed.loops")


@dataclass(frozen=True)
class WordIndex:
    """The words of a batch of values, in compressed sparse row form."""

    words: pa.LargeStringArray  # The distinct words, in the order of their UTF-8 bytes
    # int64 (n + 1,), int32: words of value i are ``word_ids[offsets[i]:offsets[i + 1]]``,
    # ascending; one that a value holds twice is listed twice
    offsets: np.ndarray
    word_ids: np.ndarray


def as_strings(values: Values) -> pa.LargeStringArray:
    """Return values as one Arrow array with 64-bit offsets and without nulls.

    Null becomes the empty string.
    """
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.LargeStringArray) and not values.null_count:
        return values
    if not isinstance(values, pa.Array):
        try:
            values = pa.array(values, type=pa.large_string(), from_pandas=True)
        except (pa.ArrowTypeError, pa.ArrowInvalid, TypeError) as error:
            raise InputError(f"Values to embed must be strings or None; {error}") from error
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    is_text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    if not (is_text or pa.types.is_string_view(values.type) or pa.types.is_null(values.type)):
        raise InputError(
            f"Values to embed must be strings or None; got an Arrow array of {values.type}."
        )
    return pc.fill_null(values.cast(pa.large_string()), "")


def split_words(values: Values) -> WordIndex:
    """Split values on white space and number their distinct words.

    The order of the words within a value is forgotten: word ids are sorted, so that "marie curie"
    and "curie marie" give the same row.
    """
    values = as_strings(values)
    sizes, pieces = [], []
    for run in runs_of_lists(string_buffers(values)[1], RUN_BYTES):
        lists = pc.utf8_split_whitespace(values[run])
        flat, starts = lists.flatten(), lists.offsets.to_numpy()
        # Leading and trailing white space leave empty pieces, which are no words.
        is_word = pc.not_equal(flat, "")
        before = np.append(0, np.cumsum(is_word.to_numpy(zero_copy_only=False)))
        sizes.append(np.diff(before[starts - starts[0]]))
        pieces.append(flat.filter(is_word).dictionary_encode())
    offsets = np.append(0, np.cumsum(np.concatenate([np.zeros(0, np.int64), *sizes])))
    kind = pa.dictionary(pa.int32(), pa.large_string())
    encoded = pa.chunked_array(pieces, kind).unify_dictionaries()
    pieces.clear()
    unique = encoded.chunk(0).dictionary if encoded.num_chunks else pa.array([], pa.large_string())
    order = pc.sort_indices(unique)
    rank = np.empty(len(unique), np.int32)
    rank[order.to_numpy()] = np.arange(len(unique))
    ids = np.empty(len(encoded), np.int32)
    end = 0
    for some, chunk in zip(sizes, encoded.iterchunks(), strict=True):
        begin, end = end, end + len(chunk)
        # To sort values and ids packed into one number is the fastest way.
        packed = np.repeat(np.arange(len(some)), some) * len(unique)
        packed += rank[chunk.indices.to_numpy()]
        packed.sort()
        ids[begin:end] = packed % max(1, len(unique))
    words = unique.take(order)
    return WordIndex(words, offsets, ids)


_MULTIPLIER = 0x9E3779B97F4A7C15


class Vocabulary:
    """The words that have a row of their own; word i has row i.

    Finding is by binary search in sorted 64-bit hashes, and each hit is then compared with the word
    itself, so that a chance collision cannot give a wrong row.
    """

    def __init__(self, words: pa.LargeStringArray) -> None:
        self.words = words

    def __len__(self) -> int:
        return len(self.words)

    def find(self, words: pa.LargeStringArray) -> np.ndarray:
        """Return the row of each word, or -1 for a word that is not in the vocabulary."""
        if len(self.words) == 0 or len(words) == 0:
            return np.full(len(words), -1, np.int64)
        hashes, rows, collides = self.sorted_hashes
        if collides:
            return (
                pc.fill_null(pc.index_in(words, value_set=self.words), -1)
                .to_numpy()
                .astype(np.int64)
            )
        word_hashes = hash_strings(words)
        row = np.minimum(np.searchsorted(hashes, word_hashes), len(hashes) - 1)
        maybe = np.flatnonzero(hashes[row] == word_hashes)
        result = np.full(len(words), -1, np.int64)
        if len(maybe):
            candidates = rows[row[maybe]]
            some = words if len(maybe) == len(words) else words.take(pa.array(maybe))
            same = pc.equal(self.words.take(pa.array(candidates)), some)
            is_same = same.to_numpy(zero_copy_only=False)
            result[maybe[is_same]] = candidates[is_same]
        return result

    @cached_property
    def sorted_hashes(self) -> tuple[np.ndarray, np.ndarray, bool]:
        """Hashes in ascending order, the row of each, and whether two rows share one."""
        hashes = hash_strings(self.words)
        rows = np.argsort(hashes, kind="stable")
        hashes = hashes[rows]
        return hashes, rows, bool((hashes[1:] == hashes[:-1]).any())


# Of texts that are taken together by what needs many times as much memory.
RUN_BYTES = 1 << 20


def hash_strings(strings: pa.LargeStringArray) -> np.ndarray:
    """Hash strings to 64 bits, uint64: a polynomial of their bytes, mixed."""
    hashes = np.empty(len(strings), np.uint64)
    loops.hash_texts(*string_buffers(strings), _MULTIPLIER, hashes)
    return mixed(hashes)
