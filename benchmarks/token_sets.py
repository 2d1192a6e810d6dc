"""Token sets for the searches by equal values: the columns of a real lake, or a power-law lake.

Every column of kind text, date or number is a set here, and not only join keys: equal values are
all that these searches know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.datasets.tables import WEB_LAKES, folder_tables, unpacked
from pexeso.lake.choose import profile_columns
from pexeso.lake.tokens import distinct_tokens

MIN_ROWS, MIN_DISTINCT = 5, 2

SMALLEST, LARGEST = 3, 3000
SIZES, POPULARITY = 0.9, 0.7
PRIVATE, SHARING = 0.3, 0.5
MOST_POPULAR, N_TOKENS = 50, 10**8
_FIRST, _LARGEST_GENERATION = 64, 1 << 16
_OWN, _TOKEN_BITS = 1 << 40, 42


@dataclass(frozen=True, eq=False)
class TokenSets:
    """Sets of tokens: the set of each pair, int64 (p,) ascending from 0, and its token."""

    set_ids: np.ndarray
    tokens: pa.LargeStringArray
    n_sets: int

    @property
    def offsets(self) -> np.ndarray:
        """Where sets begin and end among the pairs: int64 (n + 1,)."""
        counts = np.bincount(self.set_ids, minlength=self.n_sets)
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def token_sets(name: str, seed: int = 0) -> TokenSets:
    """Read a real lake that lies next to the repository, or draw a lake of `name` sets."""
    if name in WEB_LAKES:
        with unpacked(name) as folder:
            return folder_sets(folder)
    offsets, numbers = power_law_lake(int(name), seed=seed)
    owners = np.repeat(np.arange(int(name)), np.diff(offsets))
    return TokenSets(owners, texts_of(numbers), int(name))


def folder_sets(folder: Path) -> TokenSets:
    """Read the columns of the tables of a folder; files that are no tables are left out."""
    columns = list(_columns(folder))
    return TokenSets(*token_pairs(enumerate(columns)), len(columns))


def token_pairs(
    columns: Iterable[tuple[int, pa.Array | pa.ChunkedArray]],
) -> tuple[np.ndarray, pa.LargeStringArray]:
    """Return the (set id, token) pairs of columns, each pair once."""
    ids, parts = [], []
    for set_id, values in columns:
        parts.append(distinct_tokens(values))
        ids.append(np.full(len(parts[-1]), set_id, np.int64))
    if not parts:
        return np.empty(0, np.int64), pa.array([], pa.large_string())
    return np.concatenate(ids), pa.concat_arrays(parts)


def _columns(folder: Path) -> Iterator[pa.StringArray]:
    for _, table in folder_tables(folder):
        for values, profile in zip(table.columns, profile_columns(table.columns), strict=True):
            if (
                profile.kind != "empty"
                and profile.n_values >= MIN_ROWS
                and profile.n_distinct >= MIN_DISTINCT
            ):
                yield values


def texts_of(tokens: np.ndarray) -> pa.LargeStringArray:
    """Write numbers as tokens: their digits."""
    return pa.array(tokens).cast(pa.large_string())


def syllable_words(numbers: np.ndarray) -> np.ndarray:
    """Write numbers as words of one syllable, of two, and so on."""
    syllables = np.array([first + last for first in "bdfgklmnprstv" for last in "aeiou"])
    left, words = numbers, np.full(len(numbers), "", "U16")
    while left.any():
        words = np.char.add(words, np.where(left > 0, syllables[left % len(syllables)], ""))
        left = left // len(syllables)
    return words


def power_law_lake(
    n_sets: int, *, largest: int = LARGEST, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Draw sets of token numbers.

    Sizes are `SMALLEST` times a Pareto variable of shape `SIZES`, at most `largest`; the popularity
    of tokens is a Pareto law of shape `POPULARITY`. A share `PRIVATE` of each set are tokens that
    no other set draws, and a share `SHARING` of the sets begin with a random part of a set before
    them.
    """
    rng = np.random.default_rng(seed)
    offsets, tokens = np.zeros(1, np.int64), np.empty(1 << 16, np.int64)
    while len(offsets) <= n_sets:
        n_before, end = len(offsets) - 1, int(offsets[-1])
        n_new = min(max(_FIRST, n_before), _LARGEST_GENERATION, n_sets - n_before)
        sizes = np.minimum(SMALLEST * (1 + rng.pareto(SIZES, n_new)), largest).astype(np.int64)
        lengths, drawn = _generation(rng, sizes, offsets, tokens)
        if end + len(drawn) > len(tokens):
            tokens = np.concatenate([tokens[:end], np.empty(max(len(drawn), end), np.int64)])
        tokens[end : end + len(drawn)] = drawn
        offsets = np.concatenate([offsets, end + np.cumsum(lengths)])
    return offsets, tokens[: offsets[-1]]


def _generation(
    rng: np.random.Generator, sizes: np.ndarray, offsets: np.ndarray, tokens: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Draw one generation: the number of tokens of each set, and all of them."""
    n_new, n_before = len(sizes), len(offsets) - 1
    n_private = (PRIVATE * sizes).astype(np.int64)
    room = sizes - n_private
    owner = np.repeat(np.arange(n_new), 2 * sizes)
    popular = (MOST_POPULAR * rng.pareto(POPULARITY, len(owner))).astype(np.int64) % N_TOKENS
    n_part = np.zeros(n_new, np.int64)
    if n_before:
        other = rng.integers(0, n_before, n_new)
        size_of_other = offsets[other + 1] - offsets[other]
        n_part = np.minimum((rng.random(n_new) * (size_of_other + 1)).astype(np.int64), room)
        n_part[rng.random(n_new) >= SHARING] = 0
    part = tokens[_within(n_part) + np.repeat(offsets[other], n_part)] if n_before else tokens[:0]
    # Private tokens and parts come first, and are kept; of popular ones as many as there is room
    # for.
    private = _OWN + int(offsets[-1]) + np.arange(n_private.sum())
    owners = np.concatenate(
        [np.repeat(np.arange(n_new), n_private), np.repeat(np.arange(n_new), n_part), owner]
    )
    drawn = np.concatenate([private, part, popular])
    _, first = np.unique(owners << _TOKEN_BITS | drawn, return_index=True)
    first.sort()
    first = first[np.argsort(owners[first], kind="stable")]
    owners, drawn = owners[first], drawn[first]
    lengths = np.bincount(owners, minlength=n_new)
    mask = _within(lengths) < sizes[owners]
    owners, drawn = owners[mask], drawn[mask]
    mixed = np.lexsort((rng.random(len(drawn)), owners))
    return np.bincount(owners, minlength=n_new), drawn[mixed]


def _within(lengths: np.ndarray) -> np.ndarray:
    """Count from 0 within each of runs of these lengths."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
