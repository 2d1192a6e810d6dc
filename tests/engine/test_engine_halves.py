"""Partitions of float16 vectors: every number is read as it is, and answers are those of float32.

What all tests of kernels draw has vectors of both precisions (`engine_lakes.options`).
"""

import dataclasses

import numpy as np
import pytest
import torch
from engine_lakes import draw_columns, sphere, to_csr

from embed.stored import in_half
from pexeso.engine.dense.building import build_partition
from pexeso.engine.dense.search import BatchQuery, Goal, search_batch_partition, search_partition
from pexeso.engine.dense.space import DenseSpace
from pexeso.engine.kernels.choice import choose_kernel
from pexeso.engine.kernels.compiled import loops
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.engine.partition import Partition
from pexeso.engine.stats import SearchStats
from pexeso.errors import InputError

SINGLE = PartitionLayoutOptions(map="projection", n_axes=7)
HALF = dataclasses.replace(SINGLE, vector_precision="half")


def both(n: int, dims: int, seed: int = 0, options: PartitionLayoutOptions = SINGLE):
    """Return one lake with vectors of 32 and of 16 bits, and the vectors."""
    rng = np.random.default_rng(seed)
    vectors = in_half(sphere(rng, n, dims, "clustered"))
    columns = to_csr(draw_columns(rng, n, 40))
    half = dataclasses.replace(options, vector_precision="half")
    arrays = [build_partition(vectors, *columns, layout)[0] for layout in (options, half)]
    return *(Partition.from_arrays(built, options) for built in arrays), torch.from_numpy(vectors)


def test_loops_read_every_finite_number():
    bits = np.arange(1 << 16, dtype=np.uint16)
    bits = bits[np.isfinite(bits.view(np.float16))]
    numbers = bits.view(np.float16).astype(np.float32)
    # No rounding: the square of a number of 11 bits has 22, and the root of a square is its number.
    below = np.full(1, -(2.0**17), np.float32)
    read = [loops.defining_distance(below, bits[row : row + 1]) for row in range(len(bits))]
    assert (np.array(read) - 2.0**17 == numbers).all()


@pytest.mark.parametrize("dims", [1, 4, 15, 16, 50, 64, 300])
def test_quick_distances_are_those_of_float32(dims):
    rng = np.random.default_rng(dims)
    left, halves = sphere(rng, 2, dims), in_half(sphere(rng, 2, dims)).astype(np.float16)
    halves[1] *= np.float16(2.0**-14)  # numbers below the normal ones too
    for a, b in zip(left, halves, strict=True):
        for limit in (0.1, 9.0):
            half = loops.quick_distance(a, b.view(np.uint16), limit)
            assert half == loops.quick_distance(a, b.astype(np.float32), limit)


def test_half_the_bytes_hold_the_same_numbers():
    single, half, _ = both(700, 24)
    assert half.vectors.dtype == torch.float16
    assert (half.vector_bytes, single.vector_bytes) == (48, 96)
    assert torch.equal(half.vectors.float(), single.vectors)
    assert torch.equal(half.blocks.codes, single.blocks.codes)


def test_vectors_that_float16_does_not_have_are_refused():
    vectors = in_half(sphere(np.random.default_rng(0), 30, 8))
    columns = to_csr([[0, 29]])
    build_partition(vectors, *columns, HALF)
    vectors[29, 3] += np.float32(2.0**-20)
    with pytest.raises(InputError, match=r"must hold numbers that float16 has.*rows 0 to 29"):
        build_partition(vectors, *columns, HALF)


@pytest.mark.parametrize("name", ["compiled", "torch"])
@pytest.mark.parametrize("distance", [0.01, 0.3, 0.6])
def test_searches_and_batches_give_what_float32_gives(name, distance):
    """Large enough for products, of which 0.6 leaves nearly all pairs."""
    *partitions, vectors = both(3000, 64)
    kernel = choose_kernel(name, torch.device("cpu"))
    query, ones = vectors[5:800:9], torch.ones(89, dtype=torch.int64)
    batch = [BatchQuery(torch.arange(n), ones[:n], 2) for n in (3, 40, 89)]
    answers = []
    for partition in partitions:
        stats = SearchStats()
        alone = search_partition(
            partition, query, ones, 89, Goal(distance, 2), stats, kernel=kernel
        )
        together = search_batch_partition(partition, query, batch, distance, stats, kernel=kernel)
        answers.append([tensor.tolist() for pair in (alone, *together) for tensor in pair])
        assert stats.distances > 0
    assert answers[0] == answers[1]
    assert any(answers[0])


def test_pairs_and_nearest_values_are_those_of_float32():
    *partitions, vectors = both(900, 32)
    space, rows, columns = DenseSpace(SINGLE), np.arange(3, 890, 2), np.arange(40)
    single, half = (
        [
            space.stored(partition, rows).numpy(),
            *space.nearest(partition, vectors[:50], rows),
            *space.column_pairs(partition, vectors[:50], columns, 0.3, SearchStats()),
        ]
        for partition in partitions
    )
    for left, right in zip(single, half, strict=True):
        assert left.dtype == right.dtype
        assert np.array_equal(left, right)
    assert len(single[-1])
