"""The containment index: sets with their signatures, divided by size; its search and its files.

There are two ways. By posting lists the sets are found that can have enough tokens, and counted:
nothing is missed. A set with at least `needed` of a query's n tokens holds one of any n - needed +
1 of them. So the lists of that many, the shortest ones, name all sets that can be found: the prefix
filter (S. Chaudhuri, V. Ganti and R. Kaushik, "A primitive operator for similarity joins in data
cleaning", ICDE 2006). Then lists are read on while that is sooner done than to look the other
tokens up in every set that is still open; a set is left as soon as it misses too many.

By bands there are two stages. The first collects candidates: partitions whose
largest set is too small are skipped, the others are searched with as many bands of as many rows as
their sizes and the threshold call for, and sets too small by themselves are dropped. The second
counts the tokens in common, and keeps the sets that have enough. Which way is taken is a matter of
expected time, and of the recall where bands cannot keep it.

Files are a document and ``.npy`` arrays, opened memory-mapped. All names begin with
``containment``, so that an index can lie in a folder beside other files, such as those of an index
for overlap search, whose posting lists it uses.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import IndexCorruptError, IndexNotFoundError, IndexVersionError, InputError
from pexeso.runtime.compiled import compiled
from pexeso.runtime.threads import borrow_counters, give_back
from pexeso.sets.containment import DOCUMENT, LISTS_ALONE, EnsembleOptions, tokens_needed
from pexeso.sets.containment.bands import (
    BandTables,
    Tuner,
    band_hits,
    build_tables,
    containment_of,
    optimal_partitions,
)
from pexeso.sets.containment.hashing import (
    SHORT_BITS,
    distinct_sorted,
    gathered,
    hash_tokens,
    seeds_of,
    shortened,
    signatures,
    similarities,
)
from pexeso.sets.overlap.dictionary import find_texts
from pexeso.sets.overlap.index import OverlapIndex, cut_short
from pexeso.store.arrays import open_array, write_arrays
from pexeso.store.files import read_document, write_document
from pexeso.store.manifest import FileEntry

Tokens = pa.Array | np.ndarray  # Texts of Arrow, or their 64-bit hashes: an array uint64

NO_SETS = np.empty(0, np.int64)

_SIZES_READ = 1 << 12


@dataclass(frozen=True, eq=False)
class ContainingSets:
    """The sets found, that with the largest containment first, equal ones by id."""

    # int64 (c,): ids, which are positions in what the index was built of, and distinct tokens of
    # each
    sets: np.ndarray
    sizes: np.ndarray
    # int64 (c,): tokens in common with the query; -1 where they were not counted
    overlaps: np.ndarray
    # float64 (c,): of the query in each set, in [0, 1]: an estimate from signatures where not
    # counted
    containments: np.ndarray
    query_size: int
    needed: int
    n_candidates: int
    route: str  # {"lists", "bands"}: Which way was taken. By lists nothing is missed.

    def __len__(self) -> int:
        return len(self.sets)


@dataclass(frozen=True, eq=False)
class Ensemble:
    """An index for containment search.

    Rows are sets in the order of their sizes, then of their ids, so that a partition is a run of
    rows and so are the sets that are large enough.
    """

    options: EnsembleOptions
    # int64 (s,): ids and sizes by row. Empty sets have no row.
    sets: np.ndarray
    sizes: np.ndarray
    starts: np.ndarray  # int64 (n + 1,): partition i has the rows ``starts[i]:starts[i + 1]``
    signatures: np.ndarray  # uint16 (s, m)
    tables: BandTables
    lists: CsrLists

    @classmethod
    def build(
        cls,
        hashes: np.ndarray,
        offsets: np.ndarray,
        lists: CsrLists,
        options: EnsembleOptions | None = None,
    ) -> Ensemble:
        """Index sets, whose posting lists are given.

        Set i is ``hashes[offsets[i]:offsets[i + 1]]``; empty ones are never found.
        O(tokens * m + s m log s) time. Memory: 2 m bytes a set for signatures, 4 m or 6 m for
        tables, and some 40 a token and 4 m bytes a set while it is built.
        """
        options = options or EnsembleOptions()
        hashes, ends = distinct_sorted(hashes, offsets)
        sizes = np.diff(ends)
        order = np.argsort(sizes, kind="stable")
        order = order[np.searchsorted(sizes[order], 1) :]
        hashes, ends = gathered(hashes, ends, order)
        sizes = sizes[order]
        upper = optimal_partitions(sizes, options.partitions)
        starts = np.concatenate([[0], np.searchsorted(sizes, upper, side="right")]).astype(np.int64)
        signed = shortened(signatures(hashes, ends, seeds_of(options.permutations, options.seed)))
        del hashes
        tables = build_tables(signed)
        # As those of a stored index are, so that loops are compiled once.
        for array in (order, sizes, starts, signed, tables.values, tables.sets):
            array.flags.writeable = False
        return cls(options, order, sizes, starts, signed, tables, lists)

    def __len__(self) -> int:
        return len(self.sets)

    def search(
        self,
        query: Tokens,
        threshold: float,
        *,
        exclude: np.ndarray = NO_SETS,
        route: str = "auto",
        tuner: Tuner | None = None,
        verify: bool = True,
    ) -> ContainingSets:
        """Find the sets that contain at least a share of a query's tokens.

        What was counted has no false positives. By lists nothing is missed; by bands each set that
        contains enough is a candidate with at least the probability that the tuner keeps.
        """
        options = self.options
        tuner = tuner or Tuner(options.permutations, options.max_rows)
        probed = self.lists.look_up(query)
        needed = tokens_needed(probed.size, threshold)
        if route == "lists" or (
            route == "auto" and self._lists_pay(probed, needed, threshold, tuner)
        ):
            return _found_by_lists(self.lists, probed, needed, exclude)
        hashed = query if isinstance(query, np.ndarray) else hash_tokens(query)
        return self._found_by_bands(
            np.unique(hashed), probed, needed, threshold, tuner, exclude, verify
        )

    def _lists_pay(self, probed: CsrQuery, needed: int, threshold: float, tuner: Tuner) -> bool:
        size, n_entries = probed.size, probed.n_entries(1)
        by_bands = bands_seconds(
            size, self.options.permutations, len(self), n_entries, self._usual_size
        )
        if lists_seconds(size, probed.n_entries(needed)) <= by_bands:
            return True
        recalls = self._plan(size, needed, threshold, tuner)[2]
        return bool((recalls < tuner.recall).any())

    @cached_property
    def _usual_size(self) -> float:
        """The harmonic mean of the sizes of evenly spread rows.

        Reading all sizes of a stored index would take longer than a search.
        """
        some = self.sizes[:: max(1, len(self) // _SIZES_READ)]
        return float(1 / np.mean(1 / np.maximum(some, 1))) if len(self) else 1.0

    @cached_property
    def _upper(self) -> np.ndarray:
        upper = np.array(self.sizes[self.starts[1:] - 1])
        if len(self) and min(upper.min(), self.sizes[self.starts[:-1]].min()) < 1:
            raise IndexCorruptError(
                "An index for containment search has a set of less than one token: build it again."
            )
        return upper

    def _plan(
        self, query_size: int, needed: int, threshold: float, tuner: Tuner
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return for each partition with large enough sets rows, setting, and the least recall.

        Those are int64 (p, 3), see `band_hits`, int64 (p, 2), and float64 (p,): the probability
        that a set of the largest size is a candidate if it contains just the share required.
        """
        first_row = int(np.searchsorted(self.sizes, needed))
        begins, ends = self.starts[:-1], self.starts[1:]
        some = ends > first_row if query_size else np.zeros(len(ends), bool)
        begins, ends, upper = begins[some], ends[some], self._upper[some]
        bands, rows, recalls = tuner.choose_all(upper / max(query_size, 1), threshold)
        ranges = np.stack([begins, ends, np.maximum(begins, first_row)], axis=1)
        return ranges, np.stack([bands, rows], axis=1), recalls

    def _found_by_bands(
        self,
        hashed: np.ndarray,
        probed: CsrQuery,
        needed: int,
        threshold: float,
        tuner: Tuner,
        left_out: np.ndarray,
        verify: bool,
    ) -> ContainingSets:
        ranges, settings, _ = self._plan(len(hashed), needed, threshold, tuner)
        seeds = seeds_of(self.options.permutations, self.options.seed)
        signed = shortened(signatures(hashed, np.array([0, len(hashed)]), seeds)[0])
        rows = band_hits(self.tables, self.signatures, signed, ranges, settings)
        rows = rows[~np.isin(self.sets[rows], left_out)]
        sets, n_candidates, query_size = self.sets[rows], len(rows), max(len(hashed), 1)
        if verify:
            counts = probed.overlaps(sets, needed)
            mask = counts >= needed
            sets, rows, counts = sets[mask], rows[mask], counts[mask]
            shares = counts / query_size
        else:
            counts, ratios = np.full(len(sets), -1, np.int64), self.sizes[rows] / query_size
            estimates = containment_of(similarities(self.signatures, signed, rows), ratios)
            shares = np.minimum(estimates, np.minimum(1.0, ratios))
        order = np.lexsort((sets, -shares))
        columns = (array[order] for array in (sets, self.sizes[rows], counts, shares))
        return ContainingSets(*columns, len(hashed), needed, n_candidates, "bands")


def ensemble_over(index: OverlapIndex, options: EnsembleOptions | None = None) -> Ensemble:
    """Build an ensemble of the sets of an overlap index, whose posting lists it uses.

    Each distinct text is hashed once; 16 bytes a pair while it is built, beside what
    `Ensemble.build` says.
    """
    hashes = np.empty(index.n_tokens, np.uint64)
    hashes[np.asarray(index.dictionary.numbers)] = hash_tokens(index.dictionary.texts)
    offsets = index.set_offsets.astype(np.int64)
    return Ensemble.build(hashes[index.set_tokens], offsets, CsrLists(index), options)


def search_lists(
    lists: CsrLists,
    query: Tokens,
    threshold: float,
    *,
    exclude: np.ndarray = NO_SETS,
) -> ContainingSets:
    """Find sets that contain a share of a query by posting lists alone; see `Ensemble.search`."""
    probed = lists.look_up(query)
    return _found_by_lists(lists, probed, tokens_needed(probed.size, threshold), exclude)


def _found_by_lists(
    lists: CsrLists, probed: CsrQuery, needed: int, left_out: np.ndarray
) -> ContainingSets:
    sets, counts = probed.at_least(needed)
    if len(left_out) and len(sets):
        mask = ~np.isin(sets, left_out)
        sets, counts = sets[mask], counts[mask]
    if len(sets) > 1:
        order = np.lexsort((sets, -counts))
        sets, counts = sets[order], counts[order]
    shares, sizes = counts / max(probed.size, 1), lists.sizes_of(sets)
    return ContainingSets(sets, sizes, counts, shares, probed.size, needed, len(sets), "lists")


# Seconds for a search, for a token of the query, and for an entry of the lists that must be read,
# the sets behind it included.
LISTS_SEARCH, LISTS_TOKEN, LISTS_ENTRY = 20e-6, 0.08e-6, 14e-9

# Seconds for a search, for a step of one look-up in a table, for one hash function over one token,
# and for a set that has a value in common.
BANDS_SEARCH, BANDS_STEP, BANDS_HASH, BANDS_HIT = 60e-6, 30e-9, 1e-9, 0.15e-6


def lists_seconds(n_tokens: int, n_entries: int) -> float:
    """Return the time of a search by lists of so many entries (`CsrQuery.n_entries`)."""
    return LISTS_SEARCH + LISTS_TOKEN * n_tokens + LISTS_ENTRY * n_entries


def bands_seconds(
    n_tokens: int, permutations: int, n_sets: int, n_entries: int, usual_size: float
) -> float:
    """Return the time of a search by bands in tables of so many sets.

    A set has the query's value of a hash function in common if it holds the one token of the query
    that gives the minimum, and if that is its own minimum too: for one in as many of the sets with
    that token as they have tokens. So the sets that are met are in proportion to the lengths of the
    query's lists, `n_entries` in all, here too. Others are met by chance, one value in ``2**16`` of
    each table.
    """
    steps = permutations * math.log2(max(n_sets, 2))
    hits = permutations * n_entries / max(n_tokens, 1) / usual_size
    hits += permutations * n_sets / (1 << SHORT_BITS)
    return (
        BANDS_SEARCH + BANDS_STEP * steps + BANDS_HASH * permutations * n_tokens + BANDS_HIT * hits
    )


VERSION = 2
READ_VERSIONS = (VERSION, LISTS_ALONE)

_PREFIX = "containment_"
_INDEX = {"sets": ("i8",), "sizes": ("i8",), "starts": ("i8",), "signatures": ("u2",)}
_TABLES = {"table_values": ("u2",), "table_sets": ("u2", "i4")}
# Options that the format has a field for, and that every index of this version has.
_ALWAYS = {"tables": True, "keep_tokens": True, "partitioning": "optimal"}


def write_ensemble(index: Ensemble, folder: Path) -> list[FileEntry]:
    """Write an index into an existing folder that has none; the document comes last.

    Posting lists belong to what they were made of, and are passed to `read_ensemble` again.
    """
    arrays = {name: getattr(index, name) for name in _INDEX}
    arrays |= {"table_values": index.tables.values, "table_sets": index.tables.sets}
    # The same bits as a signed type, as the store knows no others of these widths.
    signed = {
        _PREFIX + name: array.view(f"i{array.dtype.itemsize}") for name, array in arrays.items()
    }
    document = {
        "version": VERSION,
        "options": asdict(index.options) | _ALWAYS,
        "hashed_lists": False,
    }
    return [*write_arrays(folder, signed), write_document(folder / DOCUMENT, document)]


def read_ensemble(folder: Path, lists: CsrLists) -> Ensemble | None:
    """Open an index that `write_ensemble` wrote; None where posting lists alone answer.

    Only headers are read, and numbers when they are used.
    """
    options = _document(folder)
    if options is None:
        return None
    arrays = {
        name: _opened(folder / f"{_PREFIX}{name}.npy", dtypes)
        for name, dtypes in (_INDEX | _TABLES).items()
    }
    _require_shapes(arrays, options, folder, lists.n_sets)
    tables = BandTables(arrays["table_values"], arrays["table_sets"])
    return Ensemble(options, *(arrays[name] for name in _INDEX), tables=tables, lists=lists)


def _document(folder: Path) -> EnsembleOptions | None:
    path = folder / DOCUMENT
    if not path.is_file():
        raise IndexNotFoundError(
            f"'{folder}' holds no index for containment search: it has no '{DOCUMENT}'."
        )
    document: Any = read_document(path)
    version = document.get("version") if isinstance(document, dict) else None
    if type(version) is not int or version not in READ_VERSIONS:
        raise IndexVersionError(
            f"'{path}' is of version {version!r}; this pexeso reads the versions "
            f"{', '.join(map(str, READ_VERSIONS))}: build it again."
        )
    if version == LISTS_ALONE:
        return None
    try:
        options = dict(document["options"])
        always = {name: options.pop(name) for name in _ALWAYS}
        if always != _ALWAYS or document["hashed_lists"] is not False:
            raise InputError(
                "it must have tables, optimal partitions, and no posting lists of its own"
            )
        return EnsembleOptions(**options)
    except (KeyError, TypeError, InputError) as error:
        raise IndexCorruptError(
            f"'{path}' does not hold the options of an index: {error}."
        ) from error


def _opened(path: Path, names: tuple[str, ...]) -> np.ndarray:
    array = np.asarray(open_array(path))
    for name in names:
        if array.dtype == np.dtype(f"i{np.dtype(name).itemsize}"):
            return array.view(name)
    raise IndexCorruptError(
        f"'{path}' must hold integers of {' or '.join(names)}, as the signed ones as wide. Got "
        f"{array.dtype}."
    )


def _require_shapes(
    arrays: dict[str, np.ndarray], options: EnsembleOptions, folder: Path, n_listed: int
) -> None:
    """Raise IndexCorruptError if the shapes would lead loops out of the arrays.

    Of the numbers only those of partitions are examined, which are few.
    """
    n_sets, m = arrays["sizes"].size, options.permutations
    shapes = {name: (n_sets,) for name in ("sets", "sizes")} | {"signatures": (n_sets, m)}
    shapes |= dict.fromkeys(_TABLES, (m, n_sets))
    wrong = [name for name, shape in shapes.items() if arrays[name].shape != shape]
    if n_sets > n_listed:
        wrong.append("sets")
    starts = arrays["starts"]
    is_whole = starts.ndim == 1 and len(starts) and starts[0] == 0 and starts[-1] == n_sets
    if wrong or not is_whole or not (np.diff(starts) > 0).all():
        raise IndexCorruptError(
            f"The arrays of the index for containment search in '{folder}' do not fit together, as "
            f"{', '.join(wrong) or 'starts'} tells: restore it from a copy, or build it again."
        )


loops = compiled("pexeso.sets.loops")

# Entries of a list that are read in the time that one look-up in a set takes, most of which is
# waiting for memory.
ENTRIES_A_PROBE = 50


@dataclass(frozen=True, eq=False)
class CsrLists:
    """The posting lists and sets of an overlap index, as arrays that loops read."""

    index: OverlapIndex

    @property
    def n_sets(self) -> int:
        return self.index.n_sets

    def sizes_of(self, sets: np.ndarray) -> np.ndarray:
        """Return the sizes of sets, int64 (c,)."""
        offsets = self.index.set_offsets
        return (offsets[sets + 1] - offsets[sets]).astype(np.int64, copy=False)

    def query(self, tokens: np.ndarray, size: int) -> CsrQuery:
        """Return the lists of a query of `size` distinct tokens.

        Those that there are have the distinct numbers `tokens`, int64 (n,).
        """
        ordered = loops.shortest_first(self.index.token_offsets, tokens)
        if ordered is None:
            raise _corrupt()
        return CsrQuery(self, *ordered, size)

    def look_up(self, texts: pa.Array) -> CsrQuery:
        """Look the texts of a query up in the dictionary; repeated ones count once."""
        texts = pc.unique(texts)
        dictionary = self.index.dictionary
        positions = find_texts(dictionary.texts, texts)
        numbers = dictionary.numbers[positions[positions >= 0]].astype(np.int64)
        return self.query(numbers, len(texts))


@dataclass(frozen=True, eq=False)
class CsrQuery:
    """A query over `CsrLists`."""

    lists: CsrLists
    tokens: np.ndarray  # int64 (n,): those with the shortest lists first
    entries: np.ndarray  # int64 (n,): entries of the lists up to each
    size: int  # Distinct tokens of the query

    def n_entries(self, needed: int) -> int:
        """Return the entries of the lists that name all sets with so many tokens.

        They are the n - needed + 1 shortest ones, none where too few of the tokens are known.
        """
        prefix = len(self.tokens) - needed + 1
        return int(self.entries[prefix - 1]) if prefix > 0 else 0

    def at_least(self, needed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the sets with so many tokens of the query, and these: int64 (c,), in no order.

        Time: a step for each of `n_entries`, and for each set met a step a list or a look-up, until
        it misses too many. Memory: 8 bytes for each set met, and 4 for each set of the lake, which
        stay with the thread.
        """
        entries, lists = self.n_entries(needed), self.lists.index
        if entries <= 0:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        counts = borrow_counters(lists.n_sets)
        sets = np.empty(min(entries, lists.n_sets) + 1, np.int32)
        arrays = lists.token_offsets, lists.list_sets, lists.set_offsets, lists.set_tokens
        n = loops.sets_with_enough(*arrays, self.tokens, needed, ENTRIES_A_PROBE, counts, sets)
        if n < 0:
            raise _corrupt()
        sets = sets[:n].astype(np.int64)
        overlaps = counts[sets].astype(np.int64)
        counts[sets] = 0
        give_back(counts)
        return sets, overlaps

    def overlaps(self, sets: np.ndarray, needed: int) -> np.ndarray:
        """Count the tokens that sets have in common with the query, -1 for less than `needed`.

        At most O(n log x) time for a set of x tokens, and a few steps for one that is not like the
        query: counting a set stops as soon as it cannot have enough.
        """
        counts, lists = np.empty(len(sets), np.int64), self.lists.index
        arrays = lists.set_offsets, lists.set_tokens
        if not loops.count_overlaps(*arrays, sets, np.sort(self.tokens), needed, counts):
            raise _corrupt()
        return counts


def _corrupt() -> IndexCorruptError:
    return cut_short("A posting list or a set of an index for containment search leads out of it")
