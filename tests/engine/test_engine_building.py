"""Tests of building from tensors and from pieces, in bounded memory."""

import numpy as np
import pytest
import torch
from engine_lakes import build, draw_columns, sphere, to_csr

from benchmarks.gpu.building import build_from_pieces, build_tensors
from pexeso.engine.dense.building import build_partition
from pexeso.engine.dense.search import Goal, search_partition
from pexeso.engine.options import CELLS, MAPS, PartitionLayoutOptions
from pexeso.engine.partition import Partition
from pexeso.engine.stats import SearchStats
from pexeso.errors import InputError

EVERY = [(chosen, cells) for chosen in MAPS for cells in CELLS]


class Pieces:
    """Vectors in pieces of seven."""

    def __init__(self, vectors: torch.Tensor) -> None:
        self._vectors, self.shape = vectors, tuple(vectors.shape)

    def __iter__(self):
        return iter(torch.split(self._vectors, 7))


def lake(seed: int, zeros: bool) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    vectors = sphere(rng, 400, 9, "clustered")
    if zeros:
        vectors[::13] = 0
    return vectors, to_csr(draw_columns(rng, 400, 30))


def tensors_of(columns: tuple[np.ndarray, np.ndarray]) -> list[torch.Tensor]:
    return [torch.from_numpy(part) for part in columns]


def in_pieces(vectors, *rest):
    """Build from pieces; of fewer values than are sampled, axes and pivots are the same."""
    return build_from_pieces(Pieces(vectors), *rest)


@pytest.mark.parametrize(
    ("build", "zeros"), [(build_tensors, False), (build_tensors, True), (in_pieces, False)]
)
@pytest.mark.parametrize(("chosen", "cells"), EVERY)
def test_tensors_and_pieces_give_what_arrays_give(chosen, cells, build, zeros):
    options = PartitionLayoutOptions(
        map=chosen, cells=cells, n_axes=5, n_pivots=3, n_levels=3, block_size=16
    )
    vectors, columns = lake(1, zeros)
    arrays, order = build_partition(vectors, *columns, options)
    tensors, same_order = build(torch.from_numpy(vectors), *tensors_of(columns), options)
    assert arrays.keys() == tensors.keys()
    np.testing.assert_array_equal(order, same_order.numpy())
    # A product of few rows is rounded otherwise than one of many on some processors.
    rounding = 1e-6 if build is in_pieces else 0.0
    for name, array in arrays.items():
        np.testing.assert_allclose(array, tensors[name].numpy(), 0, rounding, err_msg=name)


def test_a_partition_of_tensors_answers_as_one_of_arrays():
    options = PartitionLayoutOptions(map="projection", n_axes=5)
    vectors, columns = lake(3, zeros=True)
    tensors, _ = build_tensors(torch.from_numpy(vectors), *tensors_of(columns), options)
    query, ones = torch.from_numpy(vectors[1:9]), torch.ones(8, dtype=torch.int64)
    of_arrays = Partition.from_arrays(build_partition(vectors, *columns, options)[0], options)
    answers = [
        search_partition(partition, query, ones, 8, Goal(0.02), SearchStats())
        for partition in (Partition.from_tensors(tensors, options), of_arrays)
    ]
    assert [part.tolist() for part in answers[0]] == [part.tolist() for part in answers[1]]
    assert len(answers[0][0])


@pytest.mark.parametrize("entry", [2.0, np.nan, np.inf])
def test_vectors_that_are_not_of_unit_length_are_refused(entry):
    vectors = torch.eye(20)
    vectors[15, 15] = entry
    columns = torch.tensor([0, 2]), torch.tensor([0, 1])
    options = PartitionLayoutOptions(map="projection", n_axes=2)
    with pytest.raises(InputError, match=r"at row 15 \(1 of \d+ rows are wrong\)"):
        build_tensors(vectors, *columns, options)
    with pytest.raises(
        InputError, match=r"^From row 14 on: .* at row 1 \(1 of \d+ rows are wrong\)"
    ):
        build_from_pieces(Pieces(vectors), *columns, options)


def test_pieces_hold_no_zero_vectors():
    vectors = torch.eye(20)
    vectors[3] = 0
    with pytest.raises(InputError, match=r"must be of unit length\. Got zeros from row 0 on"):
        build_from_pieces(
            Pieces(vectors),
            torch.tensor([0, 1]),
            torch.tensor([0]),
            PartitionLayoutOptions(map="projection", n_axes=2),
        )


@pytest.mark.parametrize("vectors", [torch.eye(3).double(), torch.ones(3)])
def test_what_is_no_table_of_float32_is_refused(vectors):
    with pytest.raises(InputError, match="float32 array of two axes"):
        build_tensors(vectors, torch.tensor([0, 1]), torch.tensor([0]), PartitionLayoutOptions())


def test_the_order_does_not_depend_on_the_size_of_pieces(monkeypatch):
    from pexeso.engine import blocks

    rng = np.random.default_rng(5)
    vectors = sphere(rng, 1000, 6, "coarse")
    whole, _ = build(
        vectors, [[0]], PartitionLayoutOptions(map="projection", n_axes=4, block_size=8)
    )
    monkeypatch.setattr(blocks, "_CHUNK_SIZE", 100)
    pieces, _ = build(
        vectors, [[0]], PartitionLayoutOptions(map="projection", n_axes=4, block_size=8)
    )
    assert torch.equal(whole.vectors, pieces.vectors)
    assert torch.equal(whole.blocks.codes, pieces.blocks.codes)
    assert torch.equal(whole.blocks.boxes, pieces.blocks.boxes)
