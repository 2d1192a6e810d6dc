"""Query columns that stay on the host: checked as ever, and mapped when they are asked for."""

import numpy as np
import pytest
import torch
from engine_lakes import draw_case

from pexeso.engine.dense.prefixes import UnmappedQuery, prepare_query, real_rows, threshold_of
from pexeso.engine.maps import check_vectors
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.engine.vector_space import ALL_LEMMAS
from pexeso.errors import InputError


@pytest.mark.parametrize("map_name", ["projection", "pivots"])
def test_it_is_the_query_that_tensor_operations_prepare(map_name):
    rng = np.random.default_rng(0)
    options = PartitionLayoutOptions(map=map_name, n_axes=3 if map_name == "projection" else None)
    partition, vectors, weights, total = draw_case(
        rng, options, 9, 60, 12, 20, "clustered", "middle"
    ).arguments()
    vectors[3], weights[5] = 0, 0
    threshold = threshold_of(partition, 0.1, ALL_LEMMAS)
    query, real = prepare_query(partition, vectors, weights, total, threshold)
    given = UnmappedQuery(partition, threshold, vectors.numpy(), weights.numpy(), total).real()
    assert len(given) == len(query) < 20
    assert given.total == query.total
    some = torch.tensor([4, 0])
    for mine, right in ((given, query), (given.take(some), query.take(some))):
        for name in ("vectors", "mapped", "weights"):
            assert torch.equal(getattr(mine, name), getattr(right, name))
    assert torch.equal(torch.from_numpy(real_rows(vectors.numpy(), weights.numpy())), real)


@pytest.mark.parametrize("dims", [3, 300, 16_384])
@pytest.mark.parametrize(
    "factor",
    [1, 1 + 4e-4, 1 - 4e-4, 1 + 9.9e-4, 1 - 9.9e-4, 1.0011, 0.9989, 0, 1e30, np.inf, np.nan],
)
def test_what_is_not_of_unit_length_is_refused_as_ever(dims, factor):
    rng = np.random.default_rng(dims)
    vectors = rng.normal(size=(8, dims))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        vectors[3] *= np.float32(factor)

    def rows_or_error(work):
        try:
            return work().tolist()
        except InputError as error:
            return str(error)

    right = rows_or_error(lambda: check_vectors(vectors))
    assert rows_or_error(lambda: real_rows(vectors, np.ones(8, np.int64))) == right
