"""Arrays that were changed are found by the check, and lead no loop out of its memory."""

import numpy as np
import pytest
import torch
from bags import SPACE, vectors_of

from pexeso.engine.sparse import search
from pexeso.engine.sparse.partition import ARRAYS, SparsePartition, build_partition, check_arrays
from pexeso.engine.sparse.sparse_space import SparseSpace
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import BatchColumn
from pexeso.errors import IndexCorruptError

VALUES = [f"{first} {second}" for first in ("oslo", "bergen", "bodø") for second in ("by", "nord")]


@pytest.fixture
def arrays():
    partition_arrays, _ = build_partition(vectors_of(VALUES), np.array([0, 4, 6]), np.arange(6))
    return partition_arrays


def test_what_was_built_is_sound(arrays):
    assert check_arrays(arrays, SPACE) == []
    assert set(arrays) == set(ARRAYS)


# They follow from the values as a whole, of which the arrays hold the words alone: the digests of
# files tell where they were changed.
OF_VALUES = {"value_forms", "value_letters", "value_sounds", "value_marks_members"}


@pytest.mark.parametrize("name", sorted(set(ARRAYS) - OF_VALUES))
def test_every_changed_number_is_found(arrays, name):
    rng = np.random.default_rng(0)
    for _ in range(12):
        changed = {other: array.copy() for other, array in arrays.items()}
        flat = changed[name].reshape(-1)
        position = int(rng.integers(len(flat)))
        flat[position] = flat[position] + 1 if flat[position] < 100 else 1
        assert check_arrays(changed, SPACE), (name, position)


@pytest.mark.parametrize("name", sorted(ARRAYS))
def test_a_missing_array_or_one_of_another_type_is_refused(arrays, name):
    others = {other: array for other, array in arrays.items() if other != name}
    for wrong in ({}, {name: arrays[name].astype(bool)}, {name: arrays[name][None]}):
        with pytest.raises(IndexCorruptError, match=f"The array {name} of a partition"):
            SparsePartition.from_arrays({**others, **wrong}, SPACE)


@pytest.mark.parametrize("device", [None, torch.device("cpu")])
@pytest.mark.parametrize("number", [-1, 1 << 20, -(1 << 31)])
@pytest.mark.parametrize(
    "name", [name for name in sorted(ARRAYS) if ARRAYS[name][0] in ("int32", "int64")]
)
def test_no_number_leads_a_search_out_of_its_memory(arrays, name, number, device):
    changed = {**arrays, name: np.full_like(arrays[name], number)}
    query = vectors_of(VALUES)
    try:
        partition = SparsePartition.from_arrays(changed, SPACE, device)
        SparseSpace(SPACE).require_plausible(partition, "It", rows=True)
        for limit in (0.0, 0.3, 0.6):
            search.search(
                partition, query, [BatchColumn(np.arange(6), np.ones(6, np.int64), 1)],
                limit, 1, SearchStats(),
            )  # fmt: skip
    except (IndexCorruptError, IndexError, ValueError):
        pass


@pytest.mark.parametrize(
    ("name", "position", "number"),
    [
        ("word_starts", -1, -(1 << 63)),
        ("word_values_offsets", -1, -(1 << 63)),
        *(("value_words_offsets", 1, number) for number in (1 << 40, -(1 << 63), (1 << 63) - 1)),
        *(("value_columns_offsets", 1, number) for number in (1 << 40, -(1 << 40), -(1 << 63))),
        ("value_columns_offsets", 0, -1),
    ],
)
def test_one_number_that_leads_out_of_a_list_is_told(arrays, name, position, number):
    """Differences of numbers so large come out with the wrong sign."""
    changed = {**arrays, name: arrays[name].copy()}
    changed[name][position] = number
    query = [BatchColumn(np.arange(6), np.ones(6, np.int64), 1)]
    with pytest.raises(IndexCorruptError, match="'pexeso check'"):
        search.search(
            SparsePartition.from_arrays(changed, SPACE),
            vectors_of(VALUES),
            query,
            0.3,
            1,
            SearchStats(),
        )
