"""Partitions built where their vectors are, on any device, for lakes that fit no other way.

What comes out is the product's own format.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from benchmarks.datasets.calibrated import VectorChunks
from pexeso.engine.dense.building import (
    build_checked,
    cut_into_cells,
    n_coordinates,
    turned_postings,
)
from pexeso.engine.maps import SAMPLE_ROWS, check_vectors, choose_anchors, map_of
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.errors import InputError


def build_tensors(
    vectors: torch.Tensor,
    column_offsets: torch.Tensor,
    column_values: torch.Tensor,
    options: PartitionLayoutOptions,
) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Build a partition as `build_partition` does, on the device of the vectors."""
    return build_checked(vectors, check_vectors(vectors), column_offsets, column_values, options)


def build_from_pieces(
    pieces: VectorChunks,
    column_offsets: torch.Tensor,
    column_values: torch.Tensor,
    options: PartitionLayoutOptions,
) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Build a partition as `build_tensors` does, from vectors in pieces."""
    n, dimensions = pieces.shape
    anchors = choose_anchors(_sample_of(pieces, options.seed), None, options)
    device = next(iter(anchors.values())).device
    chosen = map_of(anchors)
    mapped = torch.empty((n, n_coordinates(anchors)), dtype=torch.float32, device=device)
    for begin, piece in _placed(pieces):
        mapped[begin : begin + len(piece)] = chosen.map(piece)
    cells, order = cut_into_cells(mapped, options)
    del mapped
    postings = turned_postings(column_offsets, column_values, order, n)
    new_rows = torch.empty_like(order)
    new_rows[order] = torch.arange(n, device=device)
    vectors = torch.empty((n, dimensions), dtype=torch.float32, device=device)
    for begin, piece in _placed(pieces):
        vectors[new_rows[begin : begin + len(piece)]] = piece
    return {"vectors": vectors, **anchors, **cells, **postings}, order


def _placed(pieces: VectorChunks) -> Iterator[tuple[int, torch.Tensor]]:
    begin = 0
    for piece in pieces:
        yield begin, piece
        begin += len(piece)


def _sample_of(pieces: VectorChunks, seed: int) -> torch.Tensor:
    """Draw as many rows as axes and pivots are chosen from; all of them are checked on the way."""
    n, generator = pieces.shape[0], np.random.default_rng(seed)
    chosen = torch.from_numpy(np.sort(generator.choice(n, min(n, SAMPLE_ROWS), replace=False)))
    rows = []
    for begin, piece in _placed(pieces):
        try:
            n_real = len(check_vectors(piece))
        except InputError as error:
            raise InputError(f"From row {begin} on: {error}") from error
        if n_real < len(piece):
            raise InputError(
                f"Vectors that come in pieces must be of unit length. Got zeros from row {begin} "
                "on."
            )
        bounds = torch.searchsorted(chosen, torch.tensor([begin, begin + len(piece)]))
        rows.append(piece[(chosen[bounds[0] : bounds[1]] - begin).to(piece.device)])
    return torch.cat(rows)
