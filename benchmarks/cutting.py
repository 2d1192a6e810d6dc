"""A lake cut to a share of its columns, to see how time grows with the lake."""

from __future__ import annotations

import numpy as np

from benchmarks.lake import BenchmarkLake
from pexeso.errors import InputError


def cut_columns(lake: BenchmarkLake, share: float, seed: int) -> BenchmarkLake:
    """Keep a random share of the columns, and of the values those that are in one of them.

    Of one seed, a smaller cut holds some of the columns of a larger one and no others.

    Parameters
    ----------
    lake : BenchmarkLake
    share : float
        In (0, 1]; one column is kept at least. 1 gives the lake itself.
    seed : int

    Returns
    -------
    BenchmarkLake
        Columns and values stand in the order that they had.
    """
    if not 0 < share <= 1:
        raise InputError(f"The share of columns must lie in (0, 1]. Got {share} instead.")
    if share == 1:
        return lake
    n_kept = max(1, round(share * lake.n_columns))
    kept = np.sort(np.random.default_rng(seed).permutation(lake.n_columns)[:n_kept])
    starts, sizes = lake.column_offsets[kept], np.diff(lake.column_offsets)[kept]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    postings = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes)
    old = lake.column_values[postings]
    used = np.zeros(lake.n_values, dtype=bool)
    used[old] = True
    place = np.cumsum(used) - 1
    return BenchmarkLake(
        lake.name,
        lake.vectors[used],
        offsets,
        place[old].astype(np.int64),
        lake.value_rows[postings],
        lake.column_rows[kept],
        [lake.columns[column] for column in kept],
        {**lake.facts, "share_of_columns": share, "cut_seed": seed},
    )
