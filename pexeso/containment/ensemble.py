"""The index: sets with their signatures, divided by size, and the search for those that contain enough of a query.

A search has two stages. The first collects candidates: partitions whose largest set is too small are skipped, the others are asked with as many bands of as
many rows as their sizes and the threshold call for, and sets too small by themselves are dropped. The second counts the tokens in common, and keeps the
sets that have enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real

import numpy as np
import pyarrow as pa

from pexeso.containment.bands import BandTables, band_hits, build_tables
from pexeso.containment.conversion import containment_of
from pexeso.containment.exact import overlaps
from pexeso.containment.hashing import distinct_sorted, gathered, hash_tokens
from pexeso.containment.minhash import seeds_of, signatures, similarities
from pexeso.containment.options import EnsembleOptions
from pexeso.containment.partitioning import equal_partitions, optimal_partitions
from pexeso.containment.postings import Postings, build_postings, sharing
from pexeso.containment.tuning import Setting, Tuner
from pexeso.errors import InputError

Tokens = pa.Array | pa.ChunkedArray | np.ndarray
"""Texts of Arrow, or their 64-bit hashes: an array uint64."""

Verifier = Callable[[np.ndarray, int], np.ndarray]
"""Takes the ids of sets int64 (c,) and the tokens needed; gives int64 (c,): tokens in common with the query, which may be any lower number where too few."""


@dataclass(frozen=True)
class Asked:
    """What was asked of a partition.

    Attributes
    ----------
    lower, upper : int
        The sizes of its sets.
    setting : Setting
        Bands, rows, and the recall that they give.
    counted : bool
        No bands were looked up, since too few sets would be found: all sets were found by the lists of the query's tokens.
    """

    lower: int
    upper: int
    setting: Setting
    counted: bool


@dataclass(frozen=True, eq=False)
class Found:
    """The sets found, the one with most tokens in common first, then by id; without verification by estimate, then by id.

    Attributes
    ----------
    sets : int64 (c,)
        Ids: positions in what the index was built of.
    sizes : int64 (c,)
        Distinct tokens of each.
    overlaps : int64 (c,) or None
        Tokens in common with the query; None without verification.
    estimates : float64 (c,)
        Containment as signatures tell it, in [0, 1].
    hits : int64 (c,)
        Bands in common; 0 where posting lists found it.
    query_size : int
        Distinct tokens of the query.
    needed : int
        The least number of tokens in common.
    n_candidates : int
        Sets that the first stage found.
    asked : tuple of Asked
        For each partition that was not skipped.
    """

    sets: np.ndarray
    sizes: np.ndarray
    overlaps: np.ndarray | None
    estimates: np.ndarray
    hits: np.ndarray
    query_size: int
    needed: int
    n_candidates: int
    asked: tuple[Asked, ...]

    def __len__(self) -> int:
        return len(self.sets)

    @property
    def containments(self) -> np.ndarray:
        """Containment of the query in each set, float64 (c,): exact where verified, else the estimate."""
        return self.estimates if self.overlaps is None else self.overlaps / max(self.query_size, 1)


@dataclass(frozen=True, eq=False)
class Ensemble:
    """An index for containment search. Made by `build`, or by `stored.open_ensemble`.

    Rows are sets in the order of their sizes, then of their ids, so that a partition is a run of rows and so are the sets that are large enough.

    Attributes
    ----------
    options : EnsembleOptions
    sets, sizes : int64 (s,)
        Ids and sizes by row. Empty sets have no row.
    starts : int64 (n + 1,)
        Partition i has the rows ``starts[i]:starts[i + 1]``.
    signatures : uint32 (s, m)
    tables : BandTables or None
        None: candidates are found by comparing with every signature.
    tokens : (uint64 (t,), int64 (s + 1,)) or None
        Hashed tokens by row, ascending, and the offsets of rows; None: verification needs a callable.
    postings : Postings or None
        The same tokens with the rows that have each.
    """

    options: EnsembleOptions
    sets: np.ndarray
    sizes: np.ndarray
    starts: np.ndarray
    signatures: np.ndarray
    tables: BandTables | None
    tokens: tuple[np.ndarray, np.ndarray] | None
    postings: Postings | None
    _tensors: dict = field(default_factory=dict, repr=False)

    @classmethod
    def build(cls, tokens: Tokens, offsets: np.ndarray, options: EnsembleOptions | None = None) -> Ensemble:
        """Index sets.

        O(tokens * m + s m log s) time. Memory: 4 m bytes a set for signatures, 8 m for tables, 16 a token; while it is built as much again for tokens.

        Parameters
        ----------
        tokens : Arrow texts or uint64 (t,)
            Of all sets, one after the other; repeated ones within a set count once.
        offsets : int64 (s + 1,)
            Set i is ``tokens[offsets[i]:offsets[i + 1]]``, and i its id. Empty ones are never found.
        options : EnsembleOptions, optional

        Raises
        ------
        InputError
            The arrays are no ragged list, or a token is null.

        Examples
        --------
        >>> texts = pa.array(["Ontario", "Alberta", "Ontario", "Toronto", "Chicago"])
        >>> index = Ensemble.build(texts, np.array([0, 2, 5]))
        >>> found = index.search(pa.array(["Ontario", "Toronto"]), threshold=1.0)
        >>> found.sets, found.containments
        (array([1]), array([1.]))
        """
        options = options or EnsembleOptions()
        hashes, ends = distinct_sorted(_hashed(tokens), np.asarray(offsets))
        sizes = np.diff(ends)
        order = np.argsort(sizes, kind="stable")
        order = order[np.searchsorted(sizes[order], 1) :]
        hashes, ends = gathered(hashes, ends, order)
        sizes = sizes[order]
        divide = optimal_partitions if options.partitioning == "optimal" else equal_partitions
        upper = divide(sizes, options.partitions).upper
        starts = np.concatenate([[0], np.searchsorted(sizes, upper, side="right")]).astype(np.int64)
        signed = signatures(hashes, ends, seeds_of(options.permutations, options.seed))
        tables = build_tables(signed) if options.tables else None
        postings = build_postings(hashes, ends) if options.keep_tokens else None
        arrays = [order, sizes, starts, signed, hashes, ends]
        arrays += [tables.values, tables.sets] if tables else []
        arrays += [postings.halves, postings.sets] if postings else []
        for array in arrays:
            array.flags.writeable = False  # as those of a stored index are, so that loops are compiled once
        return cls(
            options, order, sizes, starts, signed, tables, (hashes, ends) if options.keep_tokens else None, postings
        )

    def __len__(self) -> int:
        return len(self.sets)

    def search(
        self,
        query: Tokens,
        threshold: float,
        *,
        tuner: Tuner | None = None,
        verify: bool | Verifier = True,
        device: str | None = None,
    ) -> Found:
        """Find the sets that contain at least a share of a query's tokens.

        Parameters
        ----------
        query : Arrow texts or uint64 (q,)
            Repeated tokens count once. Without any nothing is found.
        threshold : float
            In (0, 1]: the least containment, one query's own.
        tuner : Tuner, optional
            How settings are chosen; its hash functions and rows must be those of the index. By default the recall is kept at 0.98: each set that contains
            enough is a candidate with at least this probability. Where no setting keeps it and the index has the tokens, their posting lists are read
            instead, and nothing is missed.
        verify : bool or callable
            True counts on the index's tokens; a callable is handed ids and counts by itself; False gives the candidates.
        device : str, optional
            Compares with every signature on this device of torch instead of looking up tables; so it is done on the CPU where there are no tables.

        Raises
        ------
        InputError
            The threshold is not in (0, 1], the query holds nulls or is of another type, the tuner is for another index, or there is nothing to verify by.

        Notes
        -----
        Verified answers have no false positives but by two 64-bit hashes that are equal. They are as complete as the first stage.
        """
        if not isinstance(threshold, Real) or not 0 < threshold <= 1:
            raise InputError(f"The threshold of a containment search must be above 0 and at most 1. Got {threshold!r}.")
        if verify is True and self.tokens is None:
            raise InputError(
                "The index keeps no tokens to verify by: pass a callable or False as 'verify', or build it with keep_tokens=True."
            )
        tuner = tuner or Tuner(permutations=self.options.permutations, max_rows=self.options.max_rows)
        if (tuner.permutations, tuner.max_rows) != (self.options.permutations, self.options.max_rows):
            raise InputError(
                f"The tuner must be for the {self.options.permutations} hash functions and {self.options.max_rows} rows of the index. "
                f"Got one for {tuner.permutations} and {tuner.max_rows}."
            )
        hashed = np.unique(_hashed(query))
        # Rounded first: 0.55 * 100 is a little more than 55, which must not ask for 56.
        needed = max(1, math.ceil(threshold * len(hashed) - 1e-9))
        asked, ranges = self._plan(len(hashed), needed, threshold, tuner)
        signed = signatures(hashed, np.array([0, len(hashed)]), self._seeds)[0]
        rows, hits = self._candidates(signed, asked, ranges, hashed, needed, device)
        return self._answer(rows, hits, signed, hashed, needed, tuple(asked), verify)

    @cached_property
    def _seeds(self) -> np.ndarray:
        return seeds_of(self.options.permutations, self.options.seed)

    def _plan(self, query_size: int, needed: int, threshold: float, tuner: Tuner) -> tuple[list[Asked], np.ndarray]:
        """Decide what each partition is asked, and which rows of it count."""
        asked, ranges = [], []
        least = int(np.searchsorted(self.sizes, needed))
        for begin, end in zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True):
            if end <= least or not query_size:
                continue
            lower, upper = int(self.sizes[begin]), int(self.sizes[end - 1])
            setting = tuner.choose(upper / query_size, threshold)
            falls_short = tuner.name == "recall_floor" and setting.recall < tuner.recall
            asked.append(Asked(lower, upper, setting, falls_short and self.postings is not None))
            ranges.append((begin, end, max(begin, least)))
        return asked, np.array(ranges, np.int64).reshape(-1, 3)

    def _candidates(
        self,
        signed: np.ndarray,
        asked: list[Asked],
        ranges: np.ndarray,
        hashed: np.ndarray,
        needed: int,
        device: str | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        counted = np.array([one.counted for one in asked], bool)
        settings = np.array([(one.setting.bands, one.setting.rows) for one in asked], np.int64).reshape(-1, 2)
        looked, by_bands = ranges[~counted], settings[~counted]
        if device is None and self.tables is not None:
            rows, hits = band_hits(self.tables, self.signatures, signed, looked, by_bands)
        else:
            from pexeso.containment.dense import dense_hits

            rows, hits = dense_hits(self._on(device or "cpu"), signed, looked, by_bands)
        if not counted.any():
            return rows, hits
        # The larger its sets, the less bands find: these partitions are the last ones, and their rows all those from one on.
        first = int(ranges[counted][0, 2])
        some = sharing(self.postings, len(self), hashed, first, needed)
        enough = some[overlaps(*self.tokens, some, hashed, needed) >= 0]
        return np.concatenate([rows, enough]), np.concatenate([hits, np.zeros(len(enough), np.int64)])

    def _on(self, device: str) -> object:
        """Give the signatures as a tensor, which stays on its device for the next search."""
        from pexeso.containment.dense import on_device

        if device not in self._tensors:
            self._tensors[device] = on_device(self.signatures, device)
        return self._tensors[device]

    def _answer(
        self,
        rows: np.ndarray,
        hits: np.ndarray,
        signed: np.ndarray,
        hashed: np.ndarray,
        needed: int,
        asked: tuple[Asked, ...],
        verify: bool | Verifier,
    ) -> Found:
        n_candidates, counts = len(rows), None
        if verify is not False:
            if verify is True:
                counts = overlaps(*self.tokens, rows, hashed, needed)
            else:
                counts = np.asarray(verify(self.sets[rows], needed), np.int64)
                if counts.shape != rows.shape:
                    raise InputError(
                        f"'verify' must give one count for each of {len(rows)} sets. Got shape {counts.shape}."
                    )
            kept = counts >= needed
            rows, hits, counts = rows[kept], hits[kept], counts[kept]
        sets, sizes = self.sets[rows], self.sizes[rows]
        ratios = sizes / max(len(hashed), 1)
        estimates = np.minimum(
            containment_of(similarities(self.signatures, signed, rows), ratios), np.minimum(1.0, ratios)
        )
        order = np.lexsort((sets, -(estimates if counts is None else counts)))
        return Found(
            sets[order],
            sizes[order],
            None if counts is None else counts[order],
            estimates[order],
            hits[order],
            len(hashed),
            needed,
            n_candidates,
            asked,
        )


def _hashed(tokens: Tokens) -> np.ndarray:
    if isinstance(tokens, np.ndarray):
        if tokens.dtype != np.uint64 or tokens.ndim != 1:
            raise InputError(
                f"Hashed tokens must be an array uint64 with one axis. Got {tokens.dtype} of shape {tokens.shape}."
            )
        return tokens
    if not isinstance(tokens, pa.Array | pa.ChunkedArray):
        raise InputError(
            f"Tokens must be an Arrow array of texts or a NumPy array uint64 of hashes. Got {type(tokens).__name__}."
        )
    return hash_tokens(tokens)
