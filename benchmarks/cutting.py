"""A lake cut to a share of its columns or of their values, to see how time grows with it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.lake import BenchmarkLake
from pexeso.errors import InputError


def cut_columns(lake: BenchmarkLake, share: float, seed: int) -> BenchmarkLake:
    """Keep a random share of the columns, and of the values those that are in one of them."""
    if not 0 < share <= 1:
        raise InputError(f"The share of columns must lie in (0, 1]. Got {share} instead.")
    if share == 1:
        return lake
    n_kept = max(1, round(share * lake.n_columns))
    columns = np.sort(np.random.default_rng(seed).permutation(lake.n_columns)[:n_kept])
    starts, sizes = lake.column_offsets[columns], np.diff(lake.column_offsets)[columns]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    postings = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes)
    facts = {"share_of_columns": share, "cut_seed": seed}
    return _kept(lake, columns, offsets, postings, facts)


def cut_rows(lake: BenchmarkLake, share: float, seed: int) -> BenchmarkLake:
    """Keep a random share of the values of every column, and one at least."""
    if not 0 < share <= 1:
        raise InputError(f"The share of values must lie in (0, 1]. Got {share} instead.")
    if share == 1:
        return lake
    sizes = np.diff(lake.column_offsets)
    owners = np.repeat(np.arange(lake.n_columns), sizes)
    drawn = np.random.default_rng(seed).random(len(owners))
    # Within each column the postings by what was drawn for them.
    order = np.lexsort((drawn, owners))
    new_sizes = np.where(sizes > 0, np.maximum(1, np.rint(share * sizes)), 0).astype(np.int64)
    positions = np.arange(len(order)) - np.repeat(lake.column_offsets[:-1], sizes)
    postings = np.sort(order[positions < new_sizes[owners]])
    offsets = np.concatenate([[0], np.cumsum(new_sizes)]).astype(np.int64)
    facts = {"share_of_values": share, "cut_seed": seed}
    cut = _kept(lake, np.arange(lake.n_columns), offsets, postings, facts)
    dropped = np.delete(np.arange(len(owners)), postings)
    lost = np.bincount(owners[dropped], lake.value_rows[dropped], lake.n_columns)
    return replace(cut, column_rows=lake.column_rows - lost.astype(np.int64))


def _kept(
    lake: BenchmarkLake,
    columns: np.ndarray,
    offsets: np.ndarray,
    postings: np.ndarray,
    facts: dict[str, object],
) -> BenchmarkLake:
    """Return the lake of some columns and postings, with no other values."""
    old, rows = lake.column_values[postings], lake.value_rows[postings]
    used = np.zeros(lake.n_values, dtype=bool)
    used[old] = True
    new_numbers = np.cumsum(used) - 1
    return BenchmarkLake(
        lake.name,
        lake.vectors[used],
        offsets,
        new_numbers[old].astype(np.int64),
        rows,
        lake.column_rows[columns],
        [lake.columns[column] for column in columns],
        {**lake.facts, **facts},
    )
