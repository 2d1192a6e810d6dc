"""Token sets for the exact-value searches: the columns of a real lake, or a power-law lake.

The power-law lake can have any size.

Every column of kind text, date or number is a set here, and not only join keys: equal values are
all that these searches know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.datasets.tables import web_sources
from pexeso.errors import InputError, TableReadError
from pexeso.lake.containers.reader import read_table
from pexeso.lake.files import find_tables
from pexeso.lake.sniff import profile_columns
from pexeso.lake.tokens import distinct_tokens

MIN_ROWS, MIN_DISTINCT = 5, 2
SMALLEST, LARGEST = 10, 3000
PRIVATE = 0.3

_SETS_AT_ONCE = 1 << 16
_SHARED_BITS = 27
_SHARED = 10**8
_FIRST_PRIVATE = 10**9
_TOKEN_BITS = 31
_SETS_OF_SPECIFICATION = 3000
_SPREAD = 50.0


@dataclass(frozen=True, eq=False)
class LakeSets:
    """The columns of a real lake as sets.

    Attributes
    ----------
    set_ids : int64 (p,)
        The set of each pair, ascending, from 0; each pair stands there once.
    tokens : pa.LargeStringArray (p,)
    names : list[str]
        Table and column of each set, by id.
    """

    set_ids: np.ndarray
    tokens: pa.LargeStringArray
    names: list[str]

    @property
    def offsets(self) -> np.ndarray:
        """Where sets begin and end among the pairs: int64 (n + 1,)."""
        return _offsets(np.bincount(self.set_ids, minlength=len(self.names)))


def lake_sets(name: str) -> LakeSets:
    """Read a real lake that lies next to the repository; files that are no tables are left out."""
    with web_sources([name]).open() as folders:
        return folder_sets(folders[name])


def folder_sets(folder: Path) -> LakeSets:
    """Read the columns of the tables of a folder as token sets.

    Columns are text, dates or numbers with at least `MIN_ROWS` filled cells and `MIN_DISTINCT`
    distinct values.
    """
    names: list[str] = []

    def numbered() -> Iterator[tuple[int, pa.StringArray]]:
        for label, values in _columns(folder):
            names.append(label)
            yield len(names) - 1, values

    return LakeSets(*token_pairs(numbered()), names)


def token_pairs(
    columns: Iterable[tuple[int, pa.Array | pa.ChunkedArray]],
) -> tuple[np.ndarray, pa.LargeStringArray]:
    """Return the (set id, token) pairs of columns, each pair once.

    Returns
    -------
    set_ids : int64 (p,)
    tokens : pa.LargeStringArray (p,)
    """
    ids, parts = [], []
    for set_id, values in columns:
        parts.append(distinct_tokens(values))
        ids.append(np.full(len(parts[-1]), set_id, np.int64))
    if not parts:
        return np.empty(0, np.int64), pa.array([], pa.large_string())
    return np.concatenate(ids), pa.concat_arrays(parts)


def _columns(folder: Path) -> Iterator[tuple[str, pa.StringArray]]:
    for file in find_tables(folder)[0]:
        try:
            table = read_table(file.path)
        except TableReadError:
            continue
        for name, values, profile in zip(
            table.names, table.columns, profile_columns(table.columns), strict=True
        ):
            if (
                profile.kind != "empty"
                and profile.n_values >= MIN_ROWS
                and profile.n_distinct >= MIN_DISTINCT
            ):
                yield f"{file.table}:{name}", values


@dataclass(frozen=True, eq=False)
class PowerLawSets:
    """Sets of tokens that are numbers.

    Attributes
    ----------
    tokens : int32 (p,)
        From 0; ascending and distinct within a set.
    offsets : int64 (n + 1,)
        Set i is ``tokens[offsets[i]:offsets[i + 1]]``.
    queries : list of int32 arrays
        Drawn like the sets, but of no set of the lake, and without private tokens, which no set
        could share.
    """

    tokens: np.ndarray
    offsets: np.ndarray
    queries: list[np.ndarray]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def set_ids(self) -> np.ndarray:
        """The set of each token: int64 (p,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @property
    def texts(self) -> pa.LargeStringArray:
        """All tokens as texts, some 16 bytes each."""
        return texts_of(self.tokens)


def texts_of(tokens: np.ndarray) -> pa.LargeStringArray:
    """Write numbers as tokens: their digits.

    Examples
    --------
    >>> texts_of(np.array([7, 12], np.int32)).to_pylist()
    ['7', '12']
    """
    return pa.array(tokens).cast(pa.large_string())


def power_law_sets(
    n: int,
    n_queries: int = 100,
    *,
    seed: int = 0,
    sizes: tuple[int, int] = (SMALLEST, 1000),
    largest: int = LARGEST,
) -> PowerLawSets:
    """Draw a lake whose sizes and whose popularity of tokens follow power laws.

    Sizes are Pareto with shape 0.9, 10 tokens to `largest`; 30 % of the tokens of a set are its
    own, the others Pareto with shape 0.7, and half of the sets begin with a random prefix of
    another set. With 3,000 sets this is the lake on which the specification of JOSIE counts reads.
    The scale of popularity grows with the root of the number of sets, as vocabularies do (Heaps),
    so that the longest lists do not hold all sets.

    Notes
    -----
    65,536 sets are drawn at a time, with some 1 GiB beside the result; a million sets have 86
    million tokens and take some ten seconds.

    Examples
    --------
    >>> lake = power_law_sets(1000, 5)
    >>> len(lake), len(lake.queries)
    (1000, 5)
    """
    rng = np.random.default_rng(seed)
    spread = _SPREAD * max(1.0, n / _SETS_OF_SPECIFICATION) ** 0.5
    parts, counts, queries, private = [], [], [], _FIRST_PRIVATE
    for begin in range(0, n, _SETS_AT_ONCE):
        n_sets = min(_SETS_AT_ONCE, n - begin)
        extra = 0 if begin else max(20 * n_queries, 100)
        owner, tokens, private = _drawn(rng, n_sets + extra, spread, largest, private)
        end = int(np.searchsorted(owner, n_sets))
        if extra:
            queries = _queries(owner[end:] - n_sets, tokens[end:], extra, sizes)[:n_queries]
        parts.append(tokens[:end])
        counts.append(np.bincount(owner[:end], minlength=n_sets))
    if len(queries) < n_queries:
        raise InputError(
            f"Only {len(queries)} of the sets drawn are queries of {sizes[0]:,} to {sizes[1]:,} "
            f"tokens, and {n_queries} are asked for: "
            "ask for fewer, or for a wider range."
        )
    return PowerLawSets(np.concatenate(parts), _offsets(np.concatenate(counts)), queries)


def _drawn(
    rng: np.random.Generator, n: int, spread: float, largest: int, first_private: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """Draw (set, token) pairs of n sets; also return the first free private token.

    Pairs are sorted by set, then token.
    """
    sizes = np.minimum(SMALLEST * (1 + rng.pareto(0.9, n)), largest).astype(np.int64)
    n_private = (PRIVATE * sizes).astype(np.int64)
    n_shared = sizes - n_private
    own_offsets, own_tokens = _shuffled_shared(rng, n_shared, spread)
    copied_from = rng.integers(0, n, n)
    copied = np.where(
        rng.random(n) < 0.5, rng.integers(0, np.diff(own_offsets)[copied_from] + 1), 0
    )
    copied = np.minimum(copied, n_shared)
    n_own = np.minimum(n_shared - copied, np.diff(own_offsets))
    owner = np.concatenate([np.repeat(np.arange(n), count) for count in (copied, n_own, n_private)])
    tokens = np.concatenate(
        [
            own_tokens[_runs(own_offsets[copied_from], copied)],
            own_tokens[_runs(own_offsets[:-1], n_own)],
            np.arange(first_private, first_private + n_private.sum()),
        ]
    )
    keys = _sorted_distinct((owner << _TOKEN_BITS) | tokens)
    tokens = (keys & ((1 << _TOKEN_BITS) - 1)).astype(np.int32)
    return keys >> _TOKEN_BITS, tokens, first_private + int(n_private.sum())


def _shuffled_shared(
    rng: np.random.Generator, counts: np.ndarray, spread: float
) -> tuple[np.ndarray, np.ndarray]:
    """Draw at most so many popular tokens for each set, in random order: offsets and tokens."""
    owner = np.repeat(np.arange(len(counts)), 2 * counts)
    tokens = np.fmod(spread * rng.pareto(0.7, len(owner)), _SHARED).astype(np.int64)
    # An odd factor of each set's own makes one sort both drop repeated tokens and shuffle them; its
    # inverse gives the tokens back.
    mask = (1 << _SHARED_BITS) - 1
    factors = 2 * rng.integers(1 << 20, 1 << (_SHARED_BITS - 1), len(counts)) + 1
    keys = _sorted_distinct((owner << _SHARED_BITS) | ((tokens * factors[owner]) & mask))
    owner = keys >> _SHARED_BITS
    tokens = ((keys & mask) * _inverse(factors, mask)[owner]) & mask
    offsets = _offsets(np.bincount(owner, minlength=len(counts)))
    sizes = np.minimum(np.diff(offsets), counts)
    return _offsets(sizes), tokens[_runs(offsets[:-1], sizes)]


def _sorted_distinct(keys: np.ndarray) -> np.ndarray:
    """Return the sorted distinct keys as `np.unique` does, by a sort in place.

    The hash table of `np.unique` takes ten times as long for tens of millions of keys.
    """
    keys.sort()
    return keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if len(keys) else keys


def _inverse(odd: np.ndarray, mask: int) -> np.ndarray:
    """Return the inverses of odd numbers modulo ``mask + 1``, a power of two below 2**28.

    They are computed by Newton's steps, each of which doubles the number of correct bits.
    """
    inverse = odd & mask
    for _ in range(4):
        inverse = (inverse * ((2 - odd * inverse) & mask)) & mask
    return inverse


def _queries(
    owner: np.ndarray, tokens: np.ndarray, n: int, sizes: tuple[int, int]
) -> list[np.ndarray]:
    popular = tokens < _FIRST_PRIVATE
    sets = np.split(tokens[popular], np.cumsum(np.bincount(owner[popular], minlength=n))[:-1])
    return [one for one in sets if sizes[0] <= len(one) <= sizes[1]]


def _runs(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the positions ``starts[i], ..., starts[i] + lengths[i] - 1`` of all runs in turn."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + lengths, lengths)


def _offsets(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
