"""Tests of what queries of a batch share: the values that count and the order of answers."""

from types import SimpleNamespace

import numpy as np
import torch

from pexeso.engine.dense.search import BatchQuery, batch_counts

PARTITION = SimpleNamespace(device=torch.device("cpu"), n_columns=9)


class GivenCounts:
    """A kernel that has counted already, and says so in no order."""

    def __init__(self, *counted: list[int]) -> None:
        self._counted = tuple(torch.tensor(numbers, dtype=torch.int64) for numbers in counted)

    def count_batch(self, partition, matches, groups):
        self.groups = groups
        return self._counted


def test_values_that_cannot_match_or_never_occur_are_in_no_group():
    place = np.array([0, -1, 1, 2])
    queries = [
        BatchQuery(torch.tensor([3, 1, 0]), torch.tensor([2, 5, 1]), 2),
        BatchQuery(torch.tensor([], dtype=torch.int64), torch.tensor([], dtype=torch.int64), 1),
        BatchQuery(torch.tensor([2, 0]), torch.tensor([0, 4]), 3),
    ]
    kernel = GivenCounts([2, 0, 0], [4, 8, 1], [3, 2, 3])
    answers = batch_counts(PARTITION, kernel, queries, place, None)
    assert [(columns.tolist(), counts.tolist()) for columns, counts in answers] == [
        ([1, 8], [3, 2]),
        ([], []),
        ([4], [3]),
    ]
    groups = kernel.groups
    assert groups.offsets.tolist() == [0, 2, 2, 3]
    assert (groups.members.tolist(), groups.weights.tolist()) == ([2, 0, 0], [2, 1, 4])
    assert groups.needed.tolist() == [2, 1, 3]


def test_a_batch_of_none_has_no_answer():
    kernel = GivenCounts([], [], [])
    assert batch_counts(PARTITION, kernel, [], np.zeros(0, np.int64), None) == []
