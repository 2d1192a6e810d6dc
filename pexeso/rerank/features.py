"""Numeric features of a query column and the found columns, used for re-ranking.

Of all values of the columns found, and all of the query column, it is counted how many match at
each of several distances, both ways. Values count once more by how rare they are: that a column
shares "Reykjavik" says more than that it shares "yes".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from pexeso.engine.arrays import expand_ranges
from pexeso.engine.damage import damage_made_plain
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import SpacePartition, Vectors, VectorSpace
from pexeso.rerank.document_frequency import document_frequencies, n_live_columns
from pexeso.search.encoded_query import EncodedQuery
from pexeso.search.partition_loader import PartitionLoader
from pexeso.search.ranking import Hit

RATIOS = (0.0, 0.65, 0.8, 0.9, 1.0, 1.1, 1.25, 1.4)
"""Distances that are counted at, as shares of the usual one; 0 stands for equal vectors: equal
texts, and for most models the same words in another order."""

ONE_TO_ONE_AT, RARITY_AT = (0.0, 0.65, 1.0), (0.0, 1.0)
EQUAL = 1e-6
"""Distances up to here, as a fraction of the largest, are those of equal vectors."""

COLUMNS_AT_ONCE, NUMBERS_AT_ONCE = 64, 1 << 22
"""Columns whose pairs are held at a time, fewer where they and the query values come to more than
so many pairs; one at least."""

FEATURES = (
    *(f"matched {ratio:g}" for ratio in RATIOS),
    *(f"matched back {ratio:g}" for ratio in RATIOS),
    *(f"one to one {ratio:g}" for ratio in ONE_TO_ONE_AT),
    "query values",
    "lake values",
    "rarity",
    *(f"rarity matched {ratio:g}" for ratio in RARITY_AT),
    *(f"rarity matched back {ratio:g}" for ratio in RARITY_AT),
    "rarity of query values",
    "rarity of lake values",
    "same name",
    "words in names",
)
"""What is known of a query column and a lake column: shares of their values that match by distance,
how nearly one to one, logarithms of their numbers of values, how rare the values at distance 0 are
among columns, shares of their rarity that match by distance, how rare the values of each are,
whether the columns have one name, and the share of words that the names have in common."""

RARITY_STEPS = 1 << 20
"""Rarities and logarithms are rounded to steps, so many of which make 1: sums of them are exact, in
whatever order values are stored, and the last bits that one library gives a logarithm and another
does not are gone."""

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Counts:
    """What the features of n pairs of columns are made of.

    Attributes
    ----------
    matched, matched_back : float64 (n, len(RATIOS))
        Distinct values of the query column with a match in the other, and the other way round.
    query_values, lake_values : float64 (n,)
        Distinct values of the two.
    rarity : float64 (n,)
        Mean of `rarities` over the values at distance 0; 0 where there are none.
    rarity_matched, rarity_matched_back : float64 (n, len(RARITY_AT))
        Sums of `rarities` over the values that match, divided by the sums over all.
    query_rarity, lake_rarity : float64 (n,)
        Means of `rarities` over the values.
    names : sequence of (str, str)
        What the columns are called; empty where that is not known.
    """

    matched: np.ndarray
    matched_back: np.ndarray
    query_values: np.ndarray
    lake_values: np.ndarray
    rarity: np.ndarray
    rarity_matched: np.ndarray
    rarity_matched_back: np.ndarray
    query_rarity: np.ndarray
    lake_rarity: np.ndarray
    names: Sequence[tuple[str, str]]

    def features(self) -> np.ndarray:
        """Return the features: float64 (n, len(FEATURES))."""
        at = [RATIOS.index(ratio) for ratio in ONE_TO_ONE_AT]
        ours, theirs = self.matched[:, at], self.matched_back[:, at]
        names = np.array([_alike(*each) for each in self.names]).reshape(-1, 2)
        parts = (
            self.matched / np.maximum(self.query_values, 1)[:, None],
            self.matched_back / np.maximum(self.lake_values, 1)[:, None],
            np.minimum(ours, theirs) / np.maximum(np.maximum(ours, theirs), 1),
            _in_steps(np.log(np.maximum(self.query_values, 1)))[:, None],
            _in_steps(np.log(np.maximum(self.lake_values, 1)))[:, None],
            self.rarity[:, None],
            self.rarity_matched,
            self.rarity_matched_back,
            self.query_rarity[:, None],
            self.lake_rarity[:, None],
            names,
        )
        return np.hstack(parts)


def rarities(holders: np.ndarray, n_columns: int) -> np.ndarray:
    """Compute the rarity of values among columns, from 0 to 1.

    It is 1 for a value of one column or of none, and 0 for a value of all columns.

    Returns
    -------
    numpy.ndarray, float64
        ``log(columns / columns with the value) / log(columns)``, in [0, 1], to the nearest of
        `RARITY_STEPS`.
    """
    most = max(n_columns, 2)
    return _in_steps(np.log(most / np.clip(holders, 1, most)) / np.log(most))


def _in_steps(numbers: np.ndarray) -> np.ndarray:
    return np.rint(numbers * RARITY_STEPS) / RARITY_STEPS


@dataclass(frozen=True)
class LakeValues:
    """Values of columns found in one partition.

    Attributes
    ----------
    rows : int64 (n,), ascending
        Where the values stand in the partition.
    frequencies : int64 (n,)
        Columns of the index that hold each.
    n_columns : int
        Columns of the index.
    """

    rows: np.ndarray
    frequencies: np.ndarray
    n_columns: int

    def frequencies_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the frequencies of some of the values by their rows."""
        return self.frequencies[np.searchsorted(self.rows, rows)]


@dataclass(frozen=True)
class Lake:
    """The values of all columns found, by partition, and the number of columns of the index."""

    partitions: dict[int, LakeValues]
    n_columns: int


@damage_made_plain("the index")
def lake_of(scan: PartitionLoader, hits: Sequence[Hit]) -> Lake:
    """Count the columns of the index that hold each value of the found columns.

    The found columns of all queries of a pass are processed together.

    Parameters
    ----------
    hits : sequence of Hit
        Those of all queries that `count` is to be asked for.
    """
    positions: dict[int, set[int]] = {}
    for hit in hits:
        positions.setdefault(hit.partition, set()).add(hit.position)
    rows = {
        number: _rows_of(scan, number, sorted(positions[number])) for number in sorted(positions)
    }
    frequencies, n_columns = document_frequencies(scan, rows), n_live_columns(scan)
    return Lake(
        {number: LakeValues(rows[number], frequencies[number], n_columns) for number in rows},
        n_columns,
    )


def _rows_of(scan: PartitionLoader, number: int, positions: Sequence[int]) -> np.ndarray:
    """List the distinct values of some columns of a partition: rows there, ascending."""
    postings, columns = scan.mapped(number).column_values, torch.tensor(positions)
    _, posting = expand_ranges(postings.offsets[columns], postings.sizes_of(columns))
    return np.unique(postings.members[posting].numpy()).astype(np.int64)


@damage_made_plain("the index")
def count(
    scan: PartitionLoader,
    query: EncodedQuery,
    hits: Sequence[Hit],
    lake: Lake,
    usual_distance: float,
    stats: SearchStats,
) -> Counts:
    """Count what matches between a query column and columns found.

    Parameters
    ----------
    usual_distance : float
        Of the index's model, as a fraction of the largest: what `RATIOS` are shares of.

    Notes
    -----
    The values of each column are all compared with those of the query column; pairs are held for
    `COLUMNS_AT_ONCE` columns at a time at most, and of each column two bits a query value. How many
    columns have a value is counted in the whole index (`pexeso.rerank.document_frequency`); a query
    value that no column found has is taken to be rare.
    """
    n, n_values = len(hits), len(query.values)
    of_hits = _zeros(n, n_values)
    chunk_size = max(1, min(COLUMNS_AT_ONCE, NUMBERS_AT_ONCE // max(n_values, 1)))
    of_partition = {
        number: np.array([position for position, hit in enumerate(hits) if hit.partition == number])
        for number in sorted({hit.partition for hit in hits})
    }
    n_columns, most = lake.n_columns, np.zeros(n_values, np.int64)
    for number, here in of_partition.items():
        partition, values = scan.open(number), lake.partitions[number]
        for start in range(0, len(here), chunk_size):
            some = here[start : start + chunk_size]
            positions = torch.tensor([hits[position].position for position in some])
            found, held = _counted(
                scan.space, partition, query.vectors, positions, values, usual_distance, stats
            )
            for name, array in found.items():
                of_hits[name][some] = array
            np.maximum(most, held, out=most)
    rare, bits = rarities(most, n_columns), of_hits.pop("bits")
    matched = [np.unpackbits(each, axis=1, count=n_values) @ rare for each in bits]
    return Counts(
        **of_hits,
        query_values=np.full(n, float(n_values)),
        rarity_matched=np.array(matched).reshape(n, len(RARITY_AT)) / max(rare.sum(), EQUAL),
        query_rarity=np.full(n, rare.mean() if n_values else 0.0),
        names=[(query.column.column or "", hit.label or "") for hit in hits],
    )


def _zeros(n: int, n_values: int) -> dict[str, np.ndarray]:
    shapes = {
        "matched": (n, len(RATIOS)),
        "matched_back": (n, len(RATIOS)),
        "lake_values": (n,),
        "rarity": (n,),
        "rarity_matched_back": (n, len(RARITY_AT)),
        "lake_rarity": (n,),
    }
    bits = np.zeros((n, len(RARITY_AT), -(-n_values // 8)), np.uint8)
    return {name: np.zeros(shape) for name, shape in shapes.items()} | {"bits": bits}


def _counted(
    space: VectorSpace,
    partition: SpacePartition,
    vectors: Vectors,
    positions: torch.Tensor,
    lake: LakeValues,
    usual_distance: float,
    stats: SearchStats,
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Compute the counts for some columns of a partition, and query value frequencies.

    A frequency is the number of columns that have a query value. It is known if one of these
    columns has the value.
    """
    reach = min(max(RATIOS) * usual_distance, 1.0)
    column, value, posting, distance = (
        each.cpu().numpy()
        for each in space.column_pairs(partition, vectors, positions, reach, stats)
    )
    n, n_values = len(positions), len(vectors)
    bounds = [max(ratio * usual_distance, EQUAL) for ratio in RATIOS]
    owner, rank, rare, holders = _values_of(partition, positions, lake)
    theirs, ours = np.full(len(owner), np.inf), np.full(n * n_values, np.inf)
    np.minimum.at(theirs, rank(column, posting), distance)
    np.minimum.at(ours, column * n_values + value, distance)
    ours, equal = ours.reshape(n, n_values), distance <= EQUAL
    held = np.zeros(n_values, np.int64)
    np.maximum.at(held, value[equal], holders[rank(column[equal], posting[equal])])
    at = [bounds[RATIOS.index(ratio)] for ratio in RARITY_AT]

    def sums(some: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        return np.bincount(owner[some], None if weights is None else weights[some], n).astype(float)

    sizes, total, alike = (
        sums(np.ones(len(owner), bool)),
        sums(np.ones(len(owner), bool), rare),
        theirs <= EQUAL,
    )
    return {
        "matched": np.stack([(ours <= bound).sum(1) for bound in bounds], 1),
        "matched_back": np.stack([sums(theirs <= bound) for bound in bounds], 1),
        "lake_values": sizes,
        "rarity": sums(alike, rare) / np.maximum(sums(alike), 1),
        "rarity_matched_back": np.stack([sums(theirs <= bound, rare) for bound in at], 1)
        / np.maximum(total, EQUAL)[:, None],
        "lake_rarity": total / np.maximum(sizes, 1),
        "bits": np.packbits(np.stack([ours <= bound for bound in at], 1), axis=2),
    }, held


def _values_of(
    partition: SpacePartition, positions: torch.Tensor, lake: LakeValues
) -> tuple[np.ndarray, Callable[[np.ndarray, np.ndarray], np.ndarray], np.ndarray, np.ndarray]:
    """List the values of some columns, with owners, posting ranks, rarities and frequencies.

    A rank is the position of a column's posting in the list. A frequency is the number of columns
    that have the value.
    """
    postings, positions = partition.column_values, positions.to(partition.device)
    starts, sizes = postings.offsets[positions], postings.sizes_of(positions)
    owner, posting = expand_ranges(starts, sizes)
    holders = lake.frequencies_of(postings.members[posting].cpu().numpy())
    shift = (torch.cumsum(sizes, 0) - sizes - starts).cpu().numpy()

    def rank(column: np.ndarray, posting: np.ndarray) -> np.ndarray:
        return posting + shift[column]

    return owner.cpu().numpy(), rank, rarities(holders, lake.n_columns), holders


def _alike(ours: str, theirs: str) -> tuple[float, float]:
    """Return whether two names are the same, and which share of their words they have in common."""
    one, other = (" ".join(_WORD.findall(name.casefold())) for name in (ours, theirs))
    words, others = set(one.split()), set(other.split())
    return float(bool(one) and one == other), len(words & others) / max(len(words | others), 1)
