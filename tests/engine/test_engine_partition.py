"""Tests of partitions: what they are built from, what is refused, and read-only arrays."""

import numpy as np
import pytest
import torch
from engine_lakes import KERNELS, build, cases, kernel_named, sphere, to_csr
from hypothesis import given, settings
from long_runs import examples

from pexeso.engine.dense.building import build_partition
from pexeso.engine.dense.search import Goal, search_partition
from pexeso.engine.maps import check_vectors, slack
from pexeso.engine.options import CELLS, MAPS, PartitionLayoutOptions
from pexeso.engine.partition import GridCells, Partition
from pexeso.engine.stats import SearchStats
from pexeso.errors import InputError


@settings(max_examples=examples(50))
@given(cases())
def test_stored_rows_are_the_vectors_in_cell_order(case):
    partition = case.partition
    np.testing.assert_array_equal(partition.vectors.numpy(), case.vectors[case.order])
    mapped = partition.map.map(partition.vectors)
    if isinstance(partition.cells, GridCells):
        torch.testing.assert_close(partition.cells.mapped, mapped, rtol=0, atol=2e-6)
    else:
        assert len(partition.blocks) == -(-partition.n_values // partition.blocks.size)
        assert partition.blocks.n_rows == partition.n_values
    options, dims = partition.options, case.vectors.shape[1]
    projected = options.map == "projection"
    if projected:
        assert mapped.shape[1] == min(options.n_axes, dims) + 1
    else:
        assert 1 <= mapped.shape[1] <= options.n_pivots
    assert slack(mapped) <= partition.slack * (1 + 1e-6)
    assert partition.n_columns == len(case.columns)


@pytest.mark.parametrize("chosen", MAPS)
@pytest.mark.parametrize("cells", CELLS)
def test_the_same_input_gives_the_same_arrays(chosen, cells):
    options = PartitionLayoutOptions(map=chosen, cells=cells, n_axes=6)
    rng = np.random.default_rng(1)
    vectors, columns = sphere(rng, 50, 7, "clustered"), to_csr([[3, 4, 3], [], [49, 0]])
    first, order = build_partition(vectors, *columns, options)
    again, same_order = build_partition(vectors.copy(), *columns, options)
    assert first.keys() == again.keys()
    np.testing.assert_array_equal(order, same_order)
    for name, array in first.items():
        np.testing.assert_array_equal(array, again[name], err_msg=name)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("chosen", MAPS)
@pytest.mark.parametrize("cells", CELLS)
def test_read_only_arrays_serve_and_stay_as_they_are(kernel, chosen, cells):
    options, kernel = (
        PartitionLayoutOptions(map=chosen, cells=cells, n_pivots=2, n_axes=3),
        kernel_named(kernel),
    )
    rng = np.random.default_rng(2)
    vectors = sphere(rng, 30, 4)
    arrays, order = build_partition(
        vectors, *to_csr([list(range(15)), list(range(15, 30))]), options
    )
    before = {name: array.copy() for name, array in arrays.items()}
    for array in arrays.values():
        array.flags.writeable = False
    partition = Partition.from_arrays(arrays, options)
    query, ones = torch.from_numpy(vectors[:4]), torch.ones(4, dtype=torch.int64)
    columns, counts = search_partition(
        partition, query, ones, 4, Goal(0.0), SearchStats(), kernel=kernel
    )
    assert (columns.tolist(), counts.tolist()) == ([0], [4])
    assert sorted(order.tolist()) == list(range(30))
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)


def test_equal_vectors_of_different_values_stay_apart():
    vectors = np.repeat(np.eye(2, dtype=np.float32), 3, axis=0)
    partition, order = build(vectors, [[0], [1, 2], [5]], PartitionLayoutOptions())
    assert partition.n_values == 6
    assert sorted(order.tolist()) == list(range(6))
    assert len(partition.map.pivots) == 2
    answer = search_partition(
        partition, torch.eye(2)[:1], torch.tensor([1]), 1, Goal(0.0), SearchStats()
    )
    assert answer[0].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("entry", "length"),
    [
        (2.0, "2.0"),
        (0.5, "0.5"),
        (np.nan, "nan"),
        (np.inf, "inf"),
        (1e-30, "1e-30"),
        (1e30, "1e+30"),
    ],
)
def test_vectors_of_another_length_are_refused(entry, length):
    vectors = np.eye(3, dtype=np.float32)
    vectors[1] = [0, entry, 0]
    with pytest.raises(InputError) as raised:
        check_vectors(vectors)
    message = str(raised.value)
    with pytest.raises(InputError) as raised:
        check_vectors(torch.from_numpy(vectors))
    assert str(raised.value) == message
    assert message.startswith("Vectors must be of unit length or zero. Got length ")
    assert message.endswith(
        " at row 1 (1 of 3 rows are wrong); divide each vector by its length, and leave out "
        "those with NaN or infinite entries."
    )
    assert float(message.split()[10]) == pytest.approx(float(length), rel=1e-6, nan_ok=True)
    with pytest.raises(InputError, match="unit length"):
        build_partition(vectors, *to_csr([[0]]), PartitionLayoutOptions())


def test_zero_vectors_and_lengths_within_rounding_are_taken():
    vectors = np.array([[0, 0], [1.0005, 0], [0, -0.9995], [-0.0, 0.0]], dtype=np.float32)
    assert check_vectors(vectors).tolist() == [1, 2]
    assert check_vectors(torch.from_numpy(vectors)).tolist() == [1, 2]
    assert check_vectors(np.zeros((0, 3), np.float32)).tolist() == []
    assert check_vectors(torch.zeros(0, 3)).tolist() == []


@pytest.mark.parametrize(
    ("vectors", "got"),
    [
        (np.eye(3), r"float64 of shape \(3, 3\)"),
        (np.ones(3, np.float32), r"float32 of shape \(3,\)"),
        (np.eye(2, dtype=np.float16), r"float16 of shape \(2, 2\)"),
    ],
)
def test_arrays_of_another_kind_are_refused(vectors, got):
    with pytest.raises(
        InputError, match=rf"^Vectors must be a float32 array of two axes\. Got {got} instead\.$"
    ):
        check_vectors(vectors)


def test_options_are_checked_where_they_are_made():
    with pytest.raises(
        InputError, match=r"^The metric must be one of euclidean, .* Got 'hamming' instead\."
    ):
        PartitionLayoutOptions(metric="hamming")
    for name in ("n_pivots", "n_levels", "n_axes", "block_size"):
        with pytest.raises(InputError, match=rf"^{name} must be at least 1\. Got 0 instead\.$"):
            PartitionLayoutOptions(**{name: 0})
    for name, limit in (("n_axes", "127"), ("block_size", "4,096")):
        with pytest.raises(
            InputError, match=rf"^{name} must be at most {limit}\. Got 5,000 instead\.$"
        ):
            PartitionLayoutOptions(**{name: 5000})
    with pytest.raises(
        InputError,
        match=r"^The option map must be one of auto, projection, pivots\. Got 'pca' instead\.$",
    ):
        PartitionLayoutOptions(map="pca")
    with pytest.raises(
        InputError, match=r"^The option cells must be one of blocks, grid\. Got 'tree' instead\.$"
    ):
        PartitionLayoutOptions(cells="tree")
    with pytest.raises(
        InputError, match=r"^The pivot choice must be one of pca, random\. Got 'best' instead\.$"
    ):
        PartitionLayoutOptions(pivot_choice="best")


def test_more_dimensions_than_the_tolerance_covers_are_refused():
    vectors = np.zeros((1, 16_385), dtype=np.float32)
    with pytest.raises(InputError, match="at most 16,384 dimensions"):
        build_partition(vectors, np.array([0, 1]), np.array([0]), PartitionLayoutOptions())
