"""A lake cut to a share of its columns or of their values, to see how time grows with it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.lake import BenchmarkLake


def cut_columns(lake: BenchmarkLake, share: float, seed: int) -> BenchmarkLake:
    """Keep a random share of the columns, and of the values those that are in one of them."""
    if share == 1:
        return lake
    n_kept = max(1, round(share * lake.n_columns))
    columns = np.sort(np.random.default_rng(seed).permutation(lake.n_columns)[:n_kept])
    facts = {"share_of_columns": share, "cut_seed": seed}
    return _kept(lake, columns, np.isin(_owners(lake), columns), facts)


def cut_rows(lake: BenchmarkLake, share: float, seed: int) -> BenchmarkLake:
    """Keep a random share of the values of every column, and one at least."""
    if share == 1:
        return lake
    sizes, owners = np.diff(lake.column_offsets), _owners(lake)
    # Within each column the postings by what was drawn for them.
    order = np.lexsort((np.random.default_rng(seed).random(len(owners)), owners))
    n_kept = np.where(sizes > 0, np.maximum(1, np.rint(share * sizes)), 0)
    positions = np.arange(len(order)) - np.repeat(lake.column_offsets[:-1], sizes)
    postings = np.zeros(len(owners), bool)
    postings[order[positions < n_kept[owners]]] = True
    facts = {"share_of_values": share, "cut_seed": seed}
    cut = _kept(lake, np.arange(lake.n_columns), postings, facts)
    lost = np.bincount(owners[~postings], lake.value_rows[~postings], lake.n_columns)
    return replace(cut, column_rows=lake.column_rows - lost.astype(np.int64))


def _owners(lake: BenchmarkLake) -> np.ndarray:
    """Return the column of each posting."""
    return np.repeat(np.arange(lake.n_columns), np.diff(lake.column_offsets))


def _kept(
    lake: BenchmarkLake, columns: np.ndarray, postings: np.ndarray, facts: dict[str, object]
) -> BenchmarkLake:
    """Return the lake of some columns and of the postings of a mask, with no other values."""
    sizes = np.bincount(_owners(lake)[postings], minlength=lake.n_columns)[columns]
    used, values = np.unique(lake.column_values[postings], return_inverse=True)
    return BenchmarkLake(
        lake.name,
        lake.vectors[used],
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        values.astype(np.int64),
        lake.value_rows[postings],
        lake.column_rows[columns],
        [lake.columns[column] for column in columns],
        {**lake.facts, **facts},
    )
