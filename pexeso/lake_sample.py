"""Which files of a lake are sampled for an estimate, and how what they hold is scaled up to the lake."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.files import TableFile


def format_name(file: TableFile) -> str:
    """Name a file's format as it matters for how much a byte on disk holds.

    Examples
    --------
    >>> from pathlib import Path
    >>> format_name(TableFile("a.csv.gz", Path("a.csv.gz"), "delimited", 9))
    'delimited.gz'
    """
    return file.format + (".gz" if file.table.lower().endswith(".gz") else "")


def choose_sample(files: Sequence[TableFile], seed: int, n_files: int, n_bytes: int) -> list[TableFile]:
    """Draw files at random, each format at least once, until the number or the bytes are reached; at least one file.

    Files larger than the bytes that are left are passed over.
    """
    order = [files[place] for place in np.random.default_rng(seed).permutation(len(files))]
    firsts: dict[str, TableFile] = {}
    for file in order:
        if file.n_bytes <= n_bytes:
            firsts.setdefault(format_name(file), file)
    front = list(firsts.values())
    chosen: list[TableFile] = []
    left = n_bytes
    for file in [*front, *(file for file in order if file not in firsts.values())]:
        if len(chosen) == n_files:
            break
        if file.n_bytes <= left:
            chosen.append(file)
            left -= file.n_bytes
    return chosen or [min(files, key=lambda file: file.n_bytes)]


def by_format(files: Sequence[TableFile]) -> dict[str, dict[str, int]]:
    """Give ``files`` and ``bytes`` of each format."""
    counts = Counter(format_name(file) for file in files)
    n_bytes: Counter[str] = Counter()
    for file in files:
        n_bytes[format_name(file)] += file.n_bytes
    return {name: {"files": counts[name], "bytes": n_bytes[name]} for name in sorted(counts)}


def scaled_pairs(files: Sequence[TableFile], pairs: Mapping[str, int], n_bytes: Mapping[str, int]) -> int:
    """Scale (column, value) pairs up by bytes, each format for itself.

    Parameters
    ----------
    files
        Of the lake.
    pairs, n_bytes
        Of the sampled files, by format.

    Examples
    --------
    >>> from pathlib import Path
    >>> files = [TableFile(f"{name}.csv", Path(name), "delimited", 100) for name in "abc"]
    >>> scaled_pairs(files, {"delimited": 7}, {"delimited": 100})
    21
    """
    n_sampled = sum(pairs.values())
    overall = n_sampled / max(1, sum(n_bytes.values()))
    total = 0.0
    for name, facts in by_format(files).items():
        sampled = n_bytes.get(name, 0)
        total += facts["bytes"] * (pairs.get(name, 0) / sampled if sampled else overall)
    return max(n_sampled, round(total))


def grown(sample: Sequence[pa.Array], pairs: int) -> tuple[int, float]:
    """Give the distinct values of a lake by Heaps' law: their number grows as a power of the number of pairs, fitted to the sample and its first half.

    Parameters
    ----------
    sample : sequence of pyarrow.StringArray
        For each file its values, those of all its columns one after the other.
    pairs : int
        (column, value) pairs of the lake.

    Returns
    -------
    values : int
        At most `pairs`.
    growth : float
        The exponent, in [0, 1].

    Examples
    --------
    >>> grown([pa.array(["a", "b"]), pa.array(["c", "d"])], 400), grown([pa.array(["a", "b"]), pa.array(["a", "b"])], 400)
    ((400, 1.0), (2, 0.0))
    """
    n_sampled, pairs_sampled = n_distinct(sample), sum(map(len, sample))
    half = sample[: len(sample) // 2]
    n_half, pairs_half = n_distinct(half) if half else 0, sum(map(len, half))
    growth = 1.0
    if n_half and pairs_half < pairs_sampled:
        growth = math.log(n_sampled / n_half) / math.log(pairs_sampled / pairs_half)
    growth = min(1.0, max(0.0, growth))
    return min(pairs, round(n_sampled * (pairs / max(1, pairs_sampled)) ** growth)), growth


def n_distinct(values: Sequence[pa.Array]) -> int:
    """Count the distinct values of some files together."""
    return pc.count_distinct(pa.chunked_array(values, pa.string())).as_py()
