"""Lines of semantic answers: held against plain loops over what an exhaustive search finds."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from searching_stores import SmallLake, query_of, scan_of

from pexeso.engine.options import PartitionLayoutOptions
from pexeso.options import search_options
from pexeso.semantic import search as module
from pexeso.semantic.executor import search_store
from pexeso.semantic.search import find_lines

OPTIONS = PartitionLayoutOptions(map="projection", n_axes=4)
N_COLUMNS, N_VALUES = 40, 60


def small_lake(seed):
    """Return a lake of columns, each with a copy or two in some partition, whole or nearly."""
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(N_VALUES, 8))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    columns = []
    while len(columns) < N_COLUMNS:
        column = random.choice(N_VALUES, random.integers(1, 25), replace=False)
        columns.append(column.tolist())
        for _ in range(random.integers(0, 3)):
            columns.append(column[random.integers(0, 2) :].tolist() or column.tolist())
    names = [(f"t{number:02}", "c") for number in range(len(columns))]
    return SmallLake(vectors, columns, names, random.integers(0, 3, len(columns)).tolist())


def lines_by_loops(lake, hits):
    lines = []
    for number, _ in hits:
        one = set(lake.columns[number])
        for line in lines:
            other = set(lake.columns[line[0]])
            if 10 * len(one & other) >= 9 * len(one | other):
                line.append(number)
                break
        else:
            lines.append([number])
    return lines


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("folds", [True, False])
def test_lines_are_those_of_plain_loops(seed, folds, monkeypatch):
    # So that several searches are needed for the k best lines.
    monkeypatch.setattr(module, "first_request", lambda k, folds: k)
    lake = small_lake(seed)
    scan = scan_of(lake.store(OPTIONS), OPTIONS)
    queries = [query_of(lake.vectors[start : start + 8], [1] * 8) for start in (0, 20, 40)]
    requested = [
        search_options({"max_distance": 0.0, **given})
        for given in ({"k": 4}, {"min_joinability": 0.2}, {"k": "all", "min_joinability": None})
    ]
    answers = find_lines(partial(search_store, scan), scan, queries, requested, folds=folds)
    for query, options, answer in zip(queries, requested, answers, strict=True):
        every = lake.answer("euclidean", query, replace(options, k=None))
        expected = lines_by_loops(lake, every) if folds else [[number] for number, _ in every]
        lines = [[hit.column_id for hit in line] for line in answer.lines]
        if options.min_joinability is None and options.k == 4:
            assert [line[0] for line in lines] == [line[0] for line in expected[:4]]
            assert answer.n_more in (None, len(expected) - 4)
        else:
            assert lines == expected
            assert answer.n_more == 0
