"""Prefixes: whatever part of the query values walks, the answer is that of the definition."""

from unittest.mock import patch

import numpy as np
import pytest
import torch
from engine_lakes import (
    KERNELS,
    MAPS_AND_METRICS,
    as_dict,
    build,
    cases,
    kernel_named,
    sphere,
    unit,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

from pexeso.engine.dense import prefixes
from pexeso.engine.dense.prefixes import prefix_sizes
from pexeso.engine.dense.search import Goal, search_partition
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import ALL_LEMMAS, Lemma


@given(st.lists(st.integers(1, 5), min_size=1, max_size=30), st.integers(1, 60))
def test_what_no_prefix_has_matched_often_enough_cannot_be_found(weights, min_count):
    weights = torch.tensor(weights)
    with patch.object(prefixes, "LEAST_WORK", 0):
        sizes = prefix_sizes(weights, min_count, 1)
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == len(weights)
    for size in sizes[:-1]:
        # A column with no match in the prefix can have at most what the rest weighs.
        assert int(weights[size:].sum()) < min_count


@settings(max_examples=examples(150))
@given(cases(), st.sampled_from(KERNELS), st.sampled_from((1, 0)))
def test_answers_are_those_of_the_definition(case, name, row_cost):
    for needed in {1, max(1, case.total // 2), case.total}:
        goal = Goal(case.tau, min_count=needed)
        with patch.multiple(prefixes, LEAST_WORK=0, WALKED_IN_THE_TIME_OF_A_ROW=row_cost):
            answer = search_partition(
                *case.arguments(), goal, SearchStats(), kernel=kernel_named(name)
            )
        assert as_dict(answer) == case.joinable(needed)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(("map_name", "metric"), MAPS_AND_METRICS)
def test_the_rest_looks_at_few_columns_only(name, map_name, metric):
    rng = np.random.default_rng(3)
    centres = sphere(rng, 200, 12)
    vectors = unit(np.repeat(centres, 5, 0) + 0.02 * rng.normal(size=(1000, 12)))
    columns = [list(range(begin, begin + 20)) for begin in range(0, 1000, 20)]
    partition, _ = build(
        vectors, columns, PartitionLayoutOptions(map=map_name, metric=metric, block_size=8)
    )
    query = torch.from_numpy(vectors[100:120])
    arguments = (partition, query, torch.ones(20, dtype=torch.int64), 20)
    answers, walked = [], []
    for lemmas in (ALL_LEMMAS, ALL_LEMMAS - {Lemma.COLUMN_PRUNING}):
        stats = SearchStats()
        with patch.multiple(prefixes, LEAST_WORK=0, WALKED_IN_THE_TIME_OF_A_ROW=0):
            goal = Goal(0.03, min_count=16, lemmas=lemmas)
            answers.append(
                as_dict(search_partition(*arguments, goal, stats, kernel=kernel_named(name)))
            )
        walked.append(stats.candidate_pairs)
    assert answers[0] == answers[1]
    assert answers[0]
    assert 0 < walked[0] < walked[1]
