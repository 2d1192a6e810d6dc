"""What finds sets by bands of their signatures: partitions by size, settings, and tables.

A filter for the largest set of a partition must let few of the others through that do not qualify.
With the Jaccard threshold of the largest size u, a set of size x passes wrongly with a probability
of at most ``1 - x / u`` (equation E8), whatever the query and the threshold. The division into n
partitions with the least sum of these is found exactly, by dynamic programming (E9). The recurrence
that the source prints lacks its minimum over the position of the last cut; this is the whole of it,
with K distinct sizes x_1 < ... < x_K::

    F(i, c) = min over k < c of F(i - 1, k) + cost(k + 1, c)
    cost(a, c) = C_c - C_{a-1} - (W_c - W_{a-1}) / x_c
    C, W: sums over sizes of counts, and of counts times sizes

For one i this is the lower envelope of lines, of slope W_k and intercept F(i - 1, k) - C_k, looked
up at 1 / x_c. Slopes rise and positions sink with their index, so one walk over a monotone convex
hull finds all c: O(n K) time instead of O(n K^2), and no matrix of costs.

Bands and rows depend on the threshold t*, and on the ratio rho of the largest size of a partition
to that of the query. The source takes the setting with the least area of false positives and false
negatives (E15). The latter is taken over containments from the threshold to 1, so it vanishes as
the threshold nears 1: at 1.0 the choice returns nothing, and at 0.9 it gives up all answers in sets
five times the query. So the choice here is another: the setting with the least area of false
positives among those that find a set right at the threshold with at least a given probability, the
floor of the recall. More than the threshold contained only makes a set easier to find, and so does
a smaller one.

Two layouts of dynamic LSH are known: prefix trees over few bands, which cannot serve many bands of
few rows, and a table of keys for each (rows, band), 694 entries a set at 256 hash functions and 8
rows. Here there is one table for each value of a signature: all sets in the order of that value,
those with the same one in the order of their rows. A band is looked up by its first value; the sets
that have it lie together, those of one partition next to each other, and the other values of the
band are compared in the signatures themselves. So 256 entries a set serve all settings, one look-up
serves all partitions, and no keys fall together. All look-ups of a search take each step of the
binary search in turn: steps do not wait for each other's memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pexeso.errors import IndexCorruptError
from pexeso.runtime.compiled import compiled
from pexeso.runtime.threads import borrow_counters, give_back
from pexeso.sets.containment import FEW_SETS

loops = compiled("pexeso.sets.loops")

# The floor of a search. Of sets that are each found with exactly 0.95, the floor of the
# specification, every other sample shows less than that; with this about one in fifty samples of a
# hundred sets does.
USUAL_RECALL = 0.98

_STEPS_AN_OCTAVE = 4
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(64)
_ROW_BITS = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_ROWS_TURNED = 1024

Ratio = np.ndarray | float


def jaccard_of(containment: Ratio, ratio: Ratio) -> Ratio:
    """Compute the Jaccard similarity of a query and a set with a given containment (E3, E5).

    It sinks as the set grows. So the similarity for the largest set of a partition is no more than
    that of any other with the same containment: a filter at it loses nothing.
    """
    return containment / (ratio + 1 - containment)


def containment_of(jaccard: Ratio, ratio: Ratio) -> Ratio:
    """Compute the containment of a query in a set from their Jaccard similarity (E4)."""
    return (ratio + 1) * jaccard / (1 + jaccard)


def candidate_probability(
    jaccard: Ratio, bands: np.ndarray | int, rows: np.ndarray | int
) -> np.ndarray:
    """Return how likely one of b bands of r rows agrees in full for two sets of this similarity.

    It is ``1 - (1 - s**r)**b`` (equation E1; with `jaccard_of`, E12).
    """
    # Of equal sets the logarithm is minus infinity, which is right.
    with np.errstate(divide="ignore"):
        return -np.expm1(bands * np.log1p(-(np.asarray(jaccard, np.float64) ** rows)))


def optimal_partitions(sizes: np.ndarray, n: int) -> np.ndarray:
    """Return the largest size of each of n ranges of sizes with the least cost: int64.

    There are fewer where there are fewer sizes. O(K log K + n K) time for K distinct sizes; memory
    O(K) and four bytes for each of n K cuts. Of equally good cuts it takes the smallest, as far as
    float64 distinguishes their costs.
    """
    distinct, counts = np.unique(sizes, return_counts=True)
    n = min(n, len(distinct))
    before = np.concatenate([[0.0], np.cumsum(counts, dtype=np.float64)])
    weighted = np.concatenate([[0.0], np.cumsum(counts * distinct.astype(np.float64))])
    cuts = np.zeros((n, len(distinct) + 1), np.int32)
    if n:
        loops.fill_cuts(before, weighted, distinct.astype(np.float64), cuts)
    ends = np.empty(n + 1, np.int64)
    ends[n] = len(distinct)
    for i in range(n - 1, -1, -1):
        ends[i] = cuts[i, ends[i + 1]]
    return distinct[ends[1:] - 1]


@dataclass(frozen=True)
class Tuner:
    """Choice of bands and rows over a grid of ratios and thresholds, each point computed once.

    The recall, in (0, 1), is the probability with which a set of the largest size right at the
    threshold must be found.
    """

    permutations: int = 256
    max_rows: int = 8
    recall: float = USUAL_RECALL

    def choose_all(
        self, ratios: np.ndarray, threshold: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return bands and rows, int64 (p,), for ratios above 0, and the recalls, float64 (p,).

        They are those of the nearest point of the grid that requires no less: ratios up to the next
        of 2**(k/4), the threshold down to the next hundredth, but not to 0. Where no setting keeps
        the recall, it is ``(m, 1)``.
        """
        threshold = np.floor(threshold * 100 + 1e-9) / 100 or threshold
        steps = np.ceil(_STEPS_AN_OCTAVE * np.log2(ratios) - 1e-9).tolist()
        settings = [
            best_setting(self, 2.0 ** (step / _STEPS_AN_OCTAVE), float(threshold)) for step in steps
        ]
        bands, rows, recalls = np.array(settings, np.float64).reshape(-1, 3).T
        return bands.astype(np.int64), rows.astype(np.int64), recalls


@lru_cache(maxsize=1 << 16)
def best_setting(tuner: Tuner, ratio: float, threshold: float) -> tuple[int, int, float]:
    """Return the bands and rows with the least area of false positives that keep the recall.

    The third number is the recall that they have right at the threshold.
    """
    rows = np.arange(1, min(tuner.max_rows, tuner.permutations) + 1)
    with np.errstate(divide="ignore"):
        misses = np.log1p(-(jaccard_of(threshold, ratio) ** rows))
        bands = np.maximum(np.ceil(np.log1p(-tuner.recall) / misses), 1)
    able = bands <= tuner.permutations // rows
    best = tuner.permutations, 1
    if able.any():
        bands, rows = bands[able].astype(np.int64), rows[able]
        positives = integral(min(threshold, ratio), ratio, bands, rows)
        at = int(np.argmin(positives))
        best = int(bands[at]), int(rows[at])
    # A partition whose sets are all smaller than required is never searched; here the most that can
    # be contained represents it.
    similarity = jaccard_of(min(threshold, ratio), ratio)
    return *best, float(candidate_probability(similarity, *best))


def integral(high: float, ratio: float, bands: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Integrate the probability of a candidate over containments from 0 to `high`: float64 (g,).

    Gauss-Legendre quadrature with 64 points is used.
    """
    similarities = jaccard_of(high / 2 * (_POINTS + 1), ratio)
    return (
        high / 2 * (candidate_probability(similarities, bands[:, None], rows[:, None]) @ _WEIGHTS)
    )


@dataclass(frozen=True)
class BandTables:
    """One table for each value of a signature."""

    # uint16 or uint32 (m, s): ``values[k]``: the k-th values of all sets, ascending; of the type of
    # the signatures
    values: np.ndarray
    # uint16 or int32 (m, s): the set that each value is of: a row of the signatures; ascending
    # where values are equal
    sets: np.ndarray


def build_tables(signatures: np.ndarray) -> BandTables:
    """Order the sets by each value of their signatures, uint16 or uint32 (s, m).

    O(m s log s) time, 16 bytes a set beside the result.
    """
    n_sets, permutations = signatures.shape
    values = np.empty((permutations, n_sets), signatures.dtype)
    sets = np.empty((permutations, n_sets), np.uint16 if n_sets <= FEW_SETS else np.int32)
    # So many rows stay in the processor's cache until each of their columns is written.
    for row in range(0, n_sets, _ROWS_TURNED):
        values[:, row : row + _ROWS_TURNED] = signatures[row : row + _ROWS_TURNED].T
    numbers = np.arange(n_sets, dtype=np.uint64)
    for position in range(permutations):
        keys = (values[position].astype(np.uint64) << _ROW_BITS) | numbers
        keys.sort()
        sets[position] = keys & _LOW
        keys >>= _ROW_BITS
        values[position] = keys
    return BandTables(values, sets)


def band_hits(
    tables: BandTables,
    signatures: np.ndarray,
    query: np.ndarray,
    ranges: np.ndarray,
    settings: np.ndarray,
) -> np.ndarray:
    """Return the rows of the sets that agree with the query in a whole band: int64 (c,), ascending.

    O(m log s) time, and a comparison for each set that has the first value of a band. A row of
    `ranges` is a partition to look into: its first row, its end, and the first row that counts;
    `settings` has its bands and rows.
    """
    if not len(ranges):
        return np.empty(0, np.int64)
    hits = borrow_counters(len(signatures))
    found_rows = np.empty(int((ranges[:, 1] - ranges[:, 2]).sum()), np.int32)
    n_places = int((settings[:, 0] * settings[:, 1]).max())
    n = loops.sets_in_bands(
        tables.values, tables.sets, signatures, query, ranges, settings, n_places, hits, found_rows
    )
    if n < 0:
        raise IndexCorruptError(
            "A table of an index for containment search names a set that there is not: build it "
            "again."
        )
    rows = np.sort(found_rows[:n]).astype(np.int64)
    hits[rows] = 0
    give_back(hits)
    return rows
