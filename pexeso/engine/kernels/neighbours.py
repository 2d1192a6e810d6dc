"""Range search by nearest neighbours, for indexes that find nothing else."""

from __future__ import annotations

from collections.abc import Callable

import torch

FIRST_NEIGHBOURS = 16
MAX_NEIGHBOURS = 2048
"""The most that faiss finds on a GPU."""

_PAIRS_AT_ONCE = 1 << 24
"""Neighbours asked for, or products made, together: 12 bytes each."""

Nearest = Callable[[torch.Tensor, int], tuple[torch.Tensor, torch.Tensor]]
"""From query values, float32 (n, d), and a number of neighbours k to their squared distances,
float32 (n, k) and ascending, and their rows, int64 (n, k)."""


def pairs_within(
    nearest: Nearest,
    queries: torch.Tensor,
    vectors: torch.Tensor,
    limit: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return all (query value, row) pairs up to a squared distance.

    Of the query values whose last neighbour lies within the limit twice as many neighbours are
    asked for, and so on up to `MAX_NEIGHBOURS`. Those that have more are multiplied with all rows.

    Parameters
    ----------
    queries : float32 (n, d)
    vectors : float32 (N, d)
    limit : float
        Inclusive. It must allow for the rounding of `nearest` and of float32 products.

    Returns
    -------
    queries, rows : int64 (p,)
        In no order.
    """
    pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
    waiting = torch.arange(len(queries) if len(vectors) else 0, device=queries.device)
    n_neighbours = min(FIRST_NEIGHBOURS, MAX_NEIGHBOURS, len(vectors))
    while len(waiting):
        unfinished = []
        for part in torch.split(waiting, max(1, _PAIRS_AT_ONCE // n_neighbours)):
            squares, rows = nearest(queries[part], n_neighbours)
            within = squares <= limit
            more = within[:, -1] if n_neighbours < len(vectors) else torch.zeros_like(within[:, 0])
            query, rank = torch.nonzero(within & ~more[:, None], as_tuple=True)
            pairs.append((part[query], rows[query, rank]))
            unfinished.append(part[more])
        waiting = torch.cat(unfinished)
        if n_neighbours == MAX_NEIGHBOURS:
            break
        n_neighbours = min(2 * n_neighbours, MAX_NEIGHBOURS, len(vectors))
    if len(waiting):
        pairs += _pairs_by_products(queries, vectors, waiting, limit)
    if not pairs:
        return waiting, waiting
    query, row = (torch.cat(tensors) for tensors in zip(*pairs, strict=True))
    return query, row


def _pairs_by_products(
    queries: torch.Tensor, vectors: torch.Tensor, chosen: torch.Tensor, limit: float
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Compare some query values with every row."""
    pairs = []
    for part in torch.split(chosen, 1 << 12):
        ours = queries[part]
        own = ours.square().sum(1)
        step = max(1, _PAIRS_AT_ONCE // len(part))
        for begin in range(0, len(vectors), step):
            rows = vectors[begin : begin + step]
            squares = torch.addmm(own[:, None] + rows.square().sum(1), ours, rows.T, alpha=-2.0)
            query, row = torch.nonzero(squares <= limit, as_tuple=True)
            pairs.append((part[query], row + begin))
    return pairs
