"""Sparse products beside lexical searches: the same vectors, the same pairs, and what is told."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks import report, sparse_speed
from benchmarks.lexical_speed import planted_partition
from benchmarks.sparse_speed import (
    ROWS,
    WAYS,
    differences,
    drawn_columns,
    letters_of,
    main,
    table_of,
    whole_words_of,
)


@pytest.fixture(scope="module")
def partition():
    return planted_partition(1000)


@pytest.fixture(scope="module")
def letters(partition):
    return letters_of(partition)


def test_cosines_of_the_matrix_are_those_of_the_definition(partition, letters):
    some = np.arange(0, partition.n_values, 97)
    cosines = (letters.left[some] @ letters.right).toarray()
    distances = partition.vectors.take(some).distances(partition.vectors)
    np.testing.assert_allclose(np.sqrt((1 - np.minimum(cosines, 1)) / 2), distances, atol=2e-3)
    np.testing.assert_allclose(cosines, 1 - 2 * distances**2, atol=1e-5)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rows", ROWS)
def test_products_find_what_a_search_finds(partition, letters, way, rows):
    columns, tuning = drawn_columns(partition)
    members = np.concatenate([*columns[:2], *tuning[:1]])
    product = replace(letters, way=way, rows=rows)
    for distance in (0.06, 0.4):
        assert differences(product, members, distance) == 0
    assert len(product.pairs(members, 0.4)[0]) > len(members), "not each value alone"


def test_whole_words_have_other_answers(partition):
    members = np.arange(0, partition.n_values, 31)
    assert differences(whole_words_of(partition), members, 0.4) > 0


def test_columns_that_are_tuned_on_are_not_measured(partition):
    columns, tuning = drawn_columns(partition)
    measured = {tuple(column) for column in columns}
    assert len(tuning) == sparse_speed.N_TUNING
    assert not measured & {tuple(column) for column in tuning}


def test_the_command_tells_ratios_and_refuses_other_answers(partition, tmp_path, monkeypatch):
    monkeypatch.setattr(sparse_speed, "partition_of", lambda path: partition)
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(sparse_speed, "DISTANCES", (0.4,))
    monkeypatch.setattr(sparse_speed, "N_COLUMNS", 3)
    done = CliRunner().invoke(main, [str(tmp_path), "--write"], catch_exceptions=False)
    result = json.loads((tmp_path / "lexical" / "sparse.json").read_text("utf-8"))
    assert table_of(result) in done.output
    [row] = result["measured"]
    assert {"scipy", "words"} <= set(row["over_search"]) == set(result["tuned"])
    assert result["columns"] == 3
    monkeypatch.setattr(sparse_speed, "differences", lambda *args: 7)
    done = CliRunner().invoke(main, [str(tmp_path)], catch_exceptions=False)
    assert "scipy and a search differ in 7 pairs at 0.4" in done.stderr
    assert done.exit_code == 2
