"""Tests that vectors of other cells and non-finite boxes are refused before a search."""

import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from engine_lakes import sphere

from pexeso.engine.dense.building import build_partition
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.engine.partition import PLAUSIBLE_ROWS, Partition, require_plausible
from pexeso.errors import IndexCorruptError

LAYOUTS = {
    "projection": PartitionLayoutOptions(map="projection", n_axes=7, block_size=16),
    "pivots": PartitionLayoutOptions(map="pivots", block_size=17),
    "grid": PartitionLayoutOptions(map="pivots", n_pivots=3, cells="grid", n_levels=3),
    "projected grid": PartitionLayoutOptions(map="projection", n_axes=3, cells="grid", n_levels=2),
}


def arrays_of(name: str, n: int = 700) -> dict[str, np.ndarray]:
    vectors = sphere(np.random.default_rng(0), n, 12)
    return build_partition(vectors, np.array([0, n]), np.arange(n), LAYOUTS[name])[0]


def look_at(arrays: dict[str, np.ndarray], name: str) -> None:
    partition = Partition.from_arrays(arrays, LAYOUTS[name])
    require_plausible(partition, "Here", rows=False)
    require_plausible(partition, "Here", rows=True)


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("n", [0, 1, 15, 17, 65, 700])
def test_what_is_built_is_plausible(name, n):
    look_at(arrays_of(name, n), name)


def shuffled(vectors: np.ndarray) -> np.ndarray:
    return vectors[np.random.default_rng(1).permutation(len(vectors))]


VECTORS = {
    "shuffled": (shuffled, "16 do not lie in their cells|1[0-5] do not lie in their cells"),
    "zeroed": (np.zeros_like, "16 are not of unit length"),
    "scaled": (lambda vectors: vectors * np.float32(1e30), "16 are not of unit length"),
    "not a number": (lambda vectors: vectors * np.float32(np.nan), "16 are not of unit length"),
    "turned": (
        lambda vectors: np.ascontiguousarray(vectors[:, ::-1]),
        "16 do not lie in their cells",
    ),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("damage", VECTORS)
def test_other_vectors_are_refused(name, damage):
    change, said = VECTORS[damage]
    arrays = arrays_of(name)
    with pytest.raises(
        IndexCorruptError,
        match=f"Here cannot be searched: Of {PLAUSIBLE_ROWS} vectors looked at ({said})",
    ):
        look_at({**arrays, "vectors": change(arrays["vectors"])}, name)


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_boxes_that_are_not_finite_are_refused(name, value):
    arrays = {key: array.copy() for key, array in arrays_of(name).items()}
    for box in ("boxes", "cell_lower"):
        if box in arrays:
            arrays[box].flat[0] = value
    with pytest.raises(IndexCorruptError, match="Boxes are not finite"):
        look_at(arrays, name)


class Recorded:
    """Pages that write down what is asked for."""

    def __init__(self) -> None:
        self.wanted: dict[str, int] = {}

    def missing(self) -> bool:
        return True

    def want(self, name: str, rows: torch.Tensor) -> None:
        self.wanted[name] = len(rows)


@pytest.mark.parametrize("name", LAYOUTS)
def test_no_more_is_read_than_some_rows_and_their_boxes(name):
    partition = replace(
        Partition.from_arrays(arrays_of(name), LAYOUTS[name]), pages=(pages := Recorded())
    )
    require_plausible(partition, "Here", rows=True)
    own = {"mapped"} if "grid" in name else {"block_codes", "boxes"}
    assert set(pages.wanted) == {"vectors"} | own
    assert max(pages.wanted.values()) == PLAUSIBLE_ROWS


def test_a_glance_takes_no_more_time_where_there_is_more():
    """The fastest of some glances, in processor time: at 20,000 vectors milliseconds, as at 700."""
    seconds = {}
    for n in (700, 20_000):
        partition = Partition.from_arrays(arrays_of("projection", n), LAYOUTS["projection"])
        durations = []
        for _ in range(5):
            started = time.process_time()
            require_plausible(partition, "Here", rows=False)
            require_plausible(partition, "Here", rows=True)
            durations.append(time.process_time() - started)
        seconds[n] = min(durations)
    assert seconds[20_000] < 3 * seconds[700] + 0.002
