"""The containment index: sets with their signatures, divided by size, and their search.

A search finds the sets that contain enough of a query.

There are two ways. By posting lists the sets are found that can have enough tokens, and counted:
nothing is missed. By bands there are two stages. The first collects candidates: partitions whose
largest set is too small are skipped, the others are asked with as many bands of as many rows as
their sizes and the threshold call for, and sets too small by themselves are dropped. The second
counts the tokens in common, and keeps the sets that have enough. Which way is taken is a matter of
expected time (`costs`), and of the recall where bands cannot keep it.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from numbers import Real

import numpy as np
import pyarrow as pa

from pexeso.errors import IndexCorruptError, InputError
from pexeso.sets.containment.bands import BandTables, band_hits, build_tables
from pexeso.sets.containment.conversion import containment_of, tokens_needed
from pexeso.sets.containment.hashing import as_hashes, distinct_sorted, gathered
from pexeso.sets.containment.lists import QueryLists, TokenLists
from pexeso.sets.containment.minhash import (
    SHORT_BITS,
    seeds_of,
    shortened,
    signatures,
    similarities,
)
from pexeso.sets.containment.options import EnsembleOptions
from pexeso.sets.containment.partitioning import equal_partitions, optimal_partitions
from pexeso.sets.containment.tuning import Tuner


@dataclass(frozen=True, eq=False)
class BandPlan:
    """What was asked of partitions by bands, those left out that have no set large enough.

    Attributes
    ----------
    lower, upper : int64 (p,)
        The sizes of the sets of each.
    bands, rows : int64 (p,)
        The setting of each.
    recalls : float64 (p,)
        Probability that a set of the largest size is a candidate if it contains just the share
        asked for; others are found more often.
    """

    lower: np.ndarray
    upper: np.ndarray
    bands: np.ndarray
    rows: np.ndarray
    recalls: np.ndarray

    def __len__(self) -> int:
        return len(self.upper)


@dataclass(frozen=True, eq=False)
class ContainingSets:
    """The sets found, that with the largest containment first, equal ones by id.

    Attributes
    ----------
    sets : int64 (c,)
        Ids: positions in what the index was built of.
    sizes : int64 (c,)
        Distinct tokens of each.
    overlaps : int64 (c,)
        Tokens in common with the query; -1 where they were not counted.
    containments : float64 (c,)
        Of the query in each set, in [0, 1]: exact where `exact`, else as signatures tell it.
    hits : int64 (c,)
        Bands in common; 0 where posting lists found it.
    query_size : int
        Distinct tokens of the query.
    needed : int
        The least number of tokens in common.
    n_candidates : int
        Sets that bands found, verified or not; by posting lists, sets found.
    route : {"lists", "bands"}
        Which way was taken. By lists nothing is missed.
    plan : BandPlan or None
        None by lists.
    """

    sets: np.ndarray
    sizes: np.ndarray
    overlaps: np.ndarray
    containments: np.ndarray
    hits: np.ndarray
    query_size: int
    needed: int
    n_candidates: int
    route: str
    plan: BandPlan | None

    def __len__(self) -> int:
        return len(self.sets)

    @property
    def exact(self) -> np.ndarray:
        """Return whether each containment was counted, bool (c,).

        The others are estimates, and their sets are only candidates.
        """
        return self.overlaps >= 0


Tokens = pa.Array | pa.ChunkedArray | np.ndarray
"""Texts of Arrow, or their 64-bit hashes: an array uint64."""

_SIZES_READ = 1 << 12

ROUTES = ("auto", "lists", "bands")


@dataclass(frozen=True, eq=False)
class Ensemble:
    """An index for containment search. Made by `build`, or by `stored.read_ensemble`.

    Rows are sets in the order of their sizes, then of their ids, so that a partition is a run of
    rows and so are the sets that are large enough.

    Attributes
    ----------
    sets, sizes : int64 (s,)
        Ids and sizes by row. Empty sets have no row.
    starts : int64 (n + 1,)
        Partition i has the rows ``starts[i]:starts[i + 1]``.
    signatures : uint16 (s, m)
        Of an index that was stored before they were shortened, uint32.
    lists : TokenLists
        Posting lists and sets by id.
    """

    options: EnsembleOptions
    sets: np.ndarray
    sizes: np.ndarray
    starts: np.ndarray
    signatures: np.ndarray
    tables: BandTables
    lists: TokenLists

    @classmethod
    def build(
        cls,
        tokens: Tokens,
        offsets: np.ndarray,
        lists: TokenLists,
        options: EnsembleOptions | None = None,
    ) -> Ensemble:
        """Index sets.

        O(tokens * m + s m log s) time. Memory: 2 m bytes a set for signatures, 4 m or 6 m for
        tables, and 16 a token and 4 m bytes a set while it is built.

        Parameters
        ----------
        tokens : Arrow texts or uint64 (t,)
            Of all sets, one after the other; repeated ones within a set count once.
        offsets : int64 (s + 1,)
            Set i is ``tokens[offsets[i]:offsets[i + 1]]``, and i its id. Empty ones are never
            found.
        lists : TokenLists
            Those of the same sets under the same numbers.
        """
        options = options or EnsembleOptions()
        hashes, ends = distinct_sorted(as_hashes(tokens), np.asarray(offsets))
        sizes = np.diff(ends)
        order = np.argsort(sizes, kind="stable")
        order = order[np.searchsorted(sizes[order], 1) :]
        hashes, ends = gathered(hashes, ends, order)
        sizes = sizes[order]
        divide = optimal_partitions if options.partitioning == "optimal" else equal_partitions
        upper = divide(sizes, options.partitions).upper
        starts = np.concatenate([[0], np.searchsorted(sizes, upper, side="right")]).astype(np.int64)
        signed = shortened(signatures(hashes, ends, seeds_of(options.permutations, options.seed)))
        del hashes
        tables = build_tables(signed)
        for array in (order, sizes, starts, signed, tables.values, tables.sets):
            array.flags.writeable = (
                False  # as those of a stored index are, so that loops are compiled once
            )
        return cls(options, order, sizes, starts, signed, tables, lists)

    def __post_init__(self) -> None:
        if self.lists.n_sets < len(self):
            raise InputError(
                f"Posting lists of an ensemble must be of its own {len(self):,} sets or more. "
                f"Got {self.lists.n_sets:,}."
            )

    def __len__(self) -> int:
        return len(self.sets)

    def search(
        self,
        query: Tokens,
        threshold: float,
        *,
        exclude: Collection[int] | np.ndarray = (),
        route: str = "auto",
        tuner: Tuner | None = None,
        verify: bool = True,
    ) -> ContainingSets:
        """Find the sets that contain at least a share of a query's tokens.

        Parameters
        ----------
        query : Arrow texts or uint64 (q,)
            Repeated tokens count once; of the type that the posting lists take. Without any token
            nothing is found.
        threshold : float
            In (0, 1]: the least containment, one query's own.
        route : {"auto", "lists", "bands"}
            By posting lists, by bands, or whichever is expected to be sooner done; where bands
            cannot keep the recall, it is lists.
        tuner : Tuner, optional
            How bands and rows are chosen; its hash functions and rows must be those of the index.
            By default the recall is kept at 0.98: each set that contains enough is a candidate with
            at least this probability.
        verify : bool
            Whether candidates of bands are counted by the posting lists; they are left as they are
            without.

        Notes
        -----
        What is exact (`ContainingSets.exact`) has no false positives. By lists nothing is missed.
        """
        tuner = tuner or self._usual_tuner
        _require_threshold(threshold)
        self._require(route, tuner)
        left_out = _ids(exclude)
        probed = self.lists.look_up(query)
        needed = tokens_needed(probed.size, threshold)
        if self._by_lists(probed, needed, threshold, tuner, route):
            return _found_by_lists(self.lists, probed, needed, left_out)
        return self._found_by_bands(
            np.unique(as_hashes(query)), probed, needed, threshold, tuner, left_out, verify
        )

    def _require(self, route: str, tuner: Tuner) -> None:
        if route not in ROUTES:
            raise InputError(
                f"The route of a containment search must be one of {', '.join(ROUTES)}. Got "
                f"{route!r}."
            )
        if (tuner.permutations, tuner.max_rows) != (
            self.options.permutations,
            self.options.max_rows,
        ):
            raise InputError(
                f"The tuner must be for the {self.options.permutations} hash functions and "
                f"{self.options.max_rows} rows of the index. "
                f"Got one for {tuner.permutations} and {tuner.max_rows}."
            )

    def _by_lists(
        self, probed: QueryLists, needed: int, threshold: float, tuner: Tuner, route: str
    ) -> bool:
        if route != "auto":
            return route == "lists"
        size = probed.size
        expected = lists_seconds(size, probed.n_entries(needed))
        by_bands = bands_seconds(
            size, self.options.permutations, len(self), probed.n_entries(1), self._usual_size
        )
        if expected <= by_bands:
            return True
        plan, _ = self._plan(size, needed, threshold, tuner)
        return bool((plan.recalls < tuner.recall).any())

    @cached_property
    def _usual_tuner(self) -> Tuner:
        return Tuner(permutations=self.options.permutations, max_rows=self.options.max_rows)

    @cached_property
    def _seeds(self) -> np.ndarray:
        return seeds_of(self.options.permutations, self.options.seed)

    @cached_property
    def _usual_size(self) -> float:
        """Return the harmonic mean of the sizes of evenly spread rows.

        Reading all sizes of a stored index would take longer than a search.
        """
        some = self.sizes[:: max(1, len(self) // _SIZES_READ)]
        return float(1 / np.mean(1 / np.maximum(some, 1))) if len(self) else 1.0

    @cached_property
    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the least and the largest size of each partition."""
        bounds = np.array(self.sizes[self.starts[:-1]]), np.array(self.sizes[self.starts[1:] - 1])
        if len(self) and min(part.min() for part in bounds) < 1:
            raise IndexCorruptError(
                "An index for containment search has a set of less than one token: build it again."
            )
        return bounds

    def _plan(
        self, query_size: int, needed: int, threshold: float, tuner: Tuner
    ) -> tuple[BandPlan, np.ndarray]:
        """Decide what each partition is asked, and which rows of it count."""
        first_row = int(np.searchsorted(self.sizes, needed))
        begins, ends = self.starts[:-1], self.starts[1:]
        some = ends > first_row if query_size else np.zeros(len(ends), bool)
        lower, upper = (part[some] for part in self._bounds)
        plan = BandPlan(lower, upper, *tuner.choose_all(upper / max(query_size, 1), threshold))
        return plan, np.stack(
            [begins[some], ends[some], np.maximum(begins[some], first_row)], axis=1
        )

    def _found_by_bands(
        self,
        hashed: np.ndarray,
        probed: QueryLists,
        needed: int,
        threshold: float,
        tuner: Tuner,
        left_out: np.ndarray,
        verify: bool,
    ) -> ContainingSets:
        plan, ranges = self._plan(len(hashed), needed, threshold, tuner)
        settings = np.stack([plan.bands, plan.rows], axis=1)
        signed = signatures(hashed, np.array([0, len(hashed)]), self._seeds)[0]
        signed = signed if self.signatures.dtype == signed.dtype else shortened(signed)
        rows, hits = band_hits(self.tables, self.signatures, signed, ranges, settings)
        sets, rows, hits = _without(left_out, self.sets[rows], rows, hits)
        n_candidates, counts = len(sets), np.full(len(sets), -1, np.int64)
        if verify:
            counts = probed.overlaps(sets, needed)
            mask = counts >= needed
            sets, rows, hits, counts = sets[mask], rows[mask], hits[mask], counts[mask]
            shares = counts / max(len(hashed), 1)
        else:
            shares = self._estimates(signed, rows, len(hashed))
        order = np.lexsort((sets, -shares))
        sets, sizes, counts, shares, hits = (
            array[order] for array in (sets, self.sizes[rows], counts, shares, hits)
        )
        return ContainingSets(
            sets, sizes, counts, shares, hits, len(hashed), needed, n_candidates, "bands", plan
        )

    def _estimates(self, signed: np.ndarray, rows: np.ndarray, query_size: int) -> np.ndarray:
        ratios = self.sizes[rows] / max(query_size, 1)
        return np.minimum(
            containment_of(similarities(self.signatures, signed, rows), ratios),
            np.minimum(1.0, ratios),
        )


def search_lists(
    lists: TokenLists,
    query: Tokens,
    threshold: float,
    *,
    exclude: Collection[int] | np.ndarray = (),
) -> ContainingSets:
    """Find the sets that contain at least a share of a query's tokens, by posting lists alone.

    Parameters and answer are those of `Ensemble.search`, by lists.
    """
    _require_threshold(threshold)
    probed = lists.look_up(query)
    return _found_by_lists(lists, probed, tokens_needed(probed.size, threshold), _ids(exclude))


def _found_by_lists(
    lists: TokenLists, probed: QueryLists, needed: int, left_out: np.ndarray
) -> ContainingSets:
    sets, counts = probed.at_least(needed)
    sets, counts = _without(left_out, sets, counts)
    if len(sets) > 1:
        order = np.lexsort((sets, -counts))
        sets, counts = sets[order], counts[order]
    shares, sizes, hits = (
        counts / max(probed.size, 1),
        lists.sizes_of(sets),
        np.zeros(len(sets), np.int64),
    )
    return ContainingSets(
        sets, sizes, counts, shares, hits, probed.size, needed, len(sets), "lists", None
    )


def _require_threshold(threshold: float) -> None:
    if not isinstance(threshold, Real) or not 0 < threshold <= 1:
        raise InputError(
            "The threshold of a containment search must be above 0 and at most 1. Got "
            f"{threshold!r}."
        )


def _ids(exclude: Collection[int] | np.ndarray) -> np.ndarray:
    ids = exclude if isinstance(exclude, np.ndarray) else np.array(list(exclude))
    if len(ids) and (ids.dtype.kind not in "iu" or ids.ndim != 1):
        raise InputError(f"'exclude' must hold ids of sets, which are integers. Got {exclude!r}.")
    return ids


def _without(left_out: np.ndarray, sets: np.ndarray, *others: np.ndarray) -> tuple[np.ndarray, ...]:
    """Leave some sets out, and what belongs to them."""
    if not len(left_out) or not len(sets):
        return sets, *others
    mask = ~np.isin(sets, left_out)
    return tuple(array[mask] for array in (sets, *others))


LISTS_SEARCH, LISTS_TOKEN, LISTS_ENTRY = 20e-6, 0.08e-6, 14e-9
"""Seconds for a search, for a token of the query, and for an entry of the lists that must be read,
the sets behind it included."""

BANDS_SEARCH, BANDS_STEP, BANDS_HASH, BANDS_HIT = 60e-6, 30e-9, 1e-9, 0.15e-6
"""Seconds for a search, for a step of one look-up in a table, for one hash function over one token,
and for a set that has a value in common."""


def lists_seconds(n_tokens: int, n_entries: int) -> float:
    """Return the time of a search by posting lists.

    Parameters
    ----------
    n_entries : int
        `QueryLists.n_entries` of the tokens needed.
    """
    return LISTS_SEARCH + LISTS_TOKEN * n_tokens + LISTS_ENTRY * n_entries


def bands_seconds(
    n_tokens: int, permutations: int, n_sets: int, n_entries: int, usual_size: float
) -> float:
    """Return the time of a search by bands.

    A set has the query's value of a hash function in common if it holds the one token of the query
    that gives the minimum, and if that is its own minimum too: for one in as many of the sets with
    that token as they have tokens. So the sets that are met are in proportion to the lengths of the
    query's lists here too. Others are met by chance, one value in ``2**16`` of each table.

    Parameters
    ----------
    n_sets : int
        Sets in a table.
    n_entries : int
        `QueryLists.n_entries` of one token: those of all lists.
    """
    steps = permutations * math.log2(max(n_sets, 2))
    hits = permutations * n_entries / max(n_tokens, 1) / usual_size
    hits += permutations * n_sets / (1 << SHORT_BITS)
    return (
        BANDS_SEARCH + BANDS_STEP * steps + BANDS_HASH * permutations * n_tokens + BANDS_HIT * hits
    )
