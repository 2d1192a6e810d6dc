"""How many rows of two large tables suffice to learn a program, and which ones.

Source: E. Zhu, Search and Join Algorithms for Tables in Data Lakes, PhD thesis, University of
Toronto, 2019, section 4.5. The rows of the two samples are drawn independently, since nothing is
known yet of which values belong together.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, isqrt

import numpy as np
import pyarrow as pa

from pexeso.errors import InputError
from pexeso.sets.containment.hashing import hash_bytes


@dataclass(frozen=True, slots=True)
class SampleSizes:
    """Rows to draw from two tables.

    Attributes
    ----------
    n_source, n_target : int
    """

    n_source: int
    n_target: int
    expected_pairs: float


def sample_sizes(
    n_source: int,
    n_target: int,
    *,
    participation: float = 0.01,
    min_pairs: int = 4,
    delta: float = 0.8,
) -> SampleSizes:
    """Return the smallest samples in which enough rows have their partner.

    With these sizes, or with whole tables where these are too small, at least
    ``min_pairs / (1 - delta)`` pairs are expected, and at most `min_pairs` come with a probability
    of at most ``exp(-delta ** 2 * expected_pairs / 2)``: .0017 by default. The sizes are the
    smallest whole numbers in sum that promise it, found without rounding.

    Parameters
    ----------
    n_source, n_target : int
        Distinct values that can be drawn, at least 0.
    participation : float
        Share of the target that has a partner, above 0 and at most 1.

    Examples
    --------
    >>> sample_sizes(1_000_000, 1_000_000, participation=0.1)
    SampleSizes(n_source=14142, n_target=14143, expected_pairs=20.0010306)
    """
    _require(n_source >= 0 and n_target >= 0, "tables", "at least 0 rows", (n_source, n_target))
    _require(0 < participation <= 1, "participation", "above 0 and at most 1", participation)
    _require(min_pairs >= 1, "min_pairs", "at least 1", min_pairs)
    _require(0 < delta < 1, "delta", "above 0 and below 1", delta)
    share = Fraction(str(float(participation)))
    needed_pairs = min_pairs / (1 - Fraction(str(float(delta))))  # kappa
    # The number of pairs is the product of the two sizes times share / n_source.
    product = needed_pairs * n_source / share
    target = min(_root_up(product), n_target)
    source = min(ceil(product / target), n_source) if target else 0
    target = min(ceil(product / source), n_target) if source else 0
    pairs = Fraction(source * target, n_source) * share if n_source else Fraction(0)
    return SampleSizes(source, target, float(pairs))


def sample_texts(values: pa.Array, size: int, seed: int = 0) -> np.ndarray:
    """Return the positions of some texts, chosen by what they are and not by where they stand.

    The same texts in another order are sampled alike. Samples of two columns are independent if
    their seeds differ.

    Returns
    -------
    int64 (min(n, size),)
        Ascending.

    Examples
    --------
    >>> texts = pa.array(["a", "b", "c", "d"])
    >>> texts.take(pa.array(sample_texts(texts, 2))).to_pylist()
    ['b', 'd']
    """
    if len(values) <= size:
        return np.arange(len(values))
    hashes = hash_bytes(values.cast(pa.large_string()), seed)
    last = np.partition(hashes, size - 1)[size - 1] if size else np.uint64(0)
    sure = np.flatnonzero(hashes < last)
    equal = np.flatnonzero(hashes == last)
    # Different texts of one hash: the smaller text first.
    equal = sorted(equal.tolist(), key=lambda at: values[at].as_py())[: size - len(sure)]
    return np.sort(np.concatenate([sure, np.array(equal, np.int64)]))


def _root_up(number: Fraction) -> int:
    """Return the smallest whole number whose square is not below another number."""
    whole = ceil(number)
    return isqrt(whole - 1) + 1 if whole else 0


def _require(holds: bool, name: str, allowed: str, value: object) -> None:
    if not holds:
        raise InputError(f"For sampling, {name} must have {allowed}. Got {value!r} instead.")
