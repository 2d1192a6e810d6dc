"""Groups of similar values in a column are the components of its matching pairs."""

import os
import tempfile
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pexeso

SYLLABLES = ["ka", "lo", "mi", "ren", "sto", "var", "bel", "nu", "zan", "dor", "fi", "ger", "hal"]
RULES = pexeso.ColumnRules(min_rows=1, min_distinct=1, max_median_tokens=1e9)


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", os.fspath(folder))
    yield
    assert os.listdir(folder) == []


def misspelt_names(seed, n_names=60, n_rows=400):
    rng = np.random.default_rng(seed)
    words = ["".join(rng.choice(SYLLABLES, 3)) for _ in range(n_names)]
    names = [" ".join(rng.choice(words, 2)) + rng.choice(["", " 1", " 2"]) for _ in range(n_names)]
    rows = []
    for name in rng.choice(names, n_rows):
        at = int(rng.integers(len(name) - 2))
        wrong = name[:at] + str(rng.choice(list("aeiou"))) + name[at + 1 :]
        rows.append(str(rng.choice([name, name.upper(), wrong])))
    return [*rows, None, "", "n/a"]


def plain_components(rows, max_distance, folder):
    """Return the groups of texts by a search through the matrix of all distances."""
    file = folder / "column.csv"
    pd.DataFrame({"name": rows}).to_csv(file, index=False)
    index = pexeso.build_index(os.fspath(file), folder / "column.pexeso", rules=RULES)
    opened = index._snapshot.semantic.opened
    query = opened.encode(rows)
    space = opened.loader.space
    n = len(query.values)
    one, other = (ends.ravel() for ends in np.indices((n, n)))
    pairs = space.pair_distances(query.vectors.take(one), query.vectors.take(other))
    near = np.asarray(pairs, np.float64).reshape(n, n) <= max_distance
    group = [-1] * n
    for first in range(n):
        waiting = [first] if group[first] < 0 else []
        while waiting:
            value = waiting.pop()
            group[value] = first
            waiting += [int(at) for at in np.flatnonzero(near[value]) if group[at] < 0]
    texts, value_of_text = query.texts
    members = {}
    for text, value in zip(texts, value_of_text.tolist(), strict=True):
        members.setdefault(group[value], set()).add(text)
    return {frozenset(some) for some in members.values() if len(some) > 1}


@pytest.mark.parametrize("max_distance", [0.0, 0.2, 0.4])
@pytest.mark.parametrize("seed", [0, 1])
def test_groups_are_the_components_of_all_pairs(seed, max_distance, tmp_path):
    rows = misspelt_names(seed)
    clusters = pexeso.cluster(rows, max_distance=max_distance)
    expected = plain_components(rows, max_distance, tmp_path)
    assert expected
    assert {frozenset(group.values) for group in clusters.groups} == expected
    counts = Counter(row for row in rows if row)
    for group in clusters.groups:
        assert group.counts == tuple(counts[value] for value in group.values)
        assert list(group.counts) == sorted(group.counts, reverse=True)
    sizes = [sum(group.counts) for group in clusters.groups]
    assert sizes == sorted(sizes, reverse=True)
    assert clusters.n_values == len(counts) - 1  # "n/a" is a missing value
    assert clusters.max_distance == max_distance


def test_of_equally_frequent_values_and_groups_the_first_come_first():
    clusters = pexeso.cluster(["OSLO", "rome", "Oslo", "Rome", "oslo", "Bern"])
    assert [group.values for group in clusters.groups] == [
        ("OSLO", "Oslo", "oslo"),
        ("rome", "Rome"),
    ]


def test_a_chain_is_one_group_and_what_rules_tell_apart_is_not_similar():
    chain = ["Rotterdam", "Roterdam", "Roterdan", "Soterdan"]
    assert pexeso.cluster([chain[0], chain[-1]]).groups == ()
    clusters = pexeso.cluster([*chain, "Terminal 1", "Terminal 2", "Gate 11", "Gate 13"])
    assert [set(group.values) for group in clusters.groups] == [set(chain)]


def test_a_group_is_had_as_every_kind_of_table():
    clusters = pexeso.cluster({"town": ["Oslo", "OSLO", None, "OSLO", "Rome"]}, on="town")
    rows = [(1, "OSLO", 2, "OSLO"), (1, "Oslo", 1, "OSLO")]
    expected = [dict(zip(clusters.fields, row, strict=True)) for row in rows]
    assert clusters.to_arrow().to_pylist() == expected
    pd.testing.assert_frame_equal(clusters.to_pandas(), pd.DataFrame(expected))
    assert clusters.to_polars().equals(pl.DataFrame(expected))
    assert repr(clusters) == "Clusters(1 group with 2 of 3 values, within distance 0.4)"


@pytest.mark.parametrize(
    ("values", "n_values"),
    [
        (["a"] * 100_000, 1),
        (["a", "b", "c"], 3),
        ([10, 20, 10, None], 2),
        (["2024-01-05", "2024-01-06"], 2),
    ],
)
def test_values_without_a_similar_one_are_in_no_group(values, n_values):
    clusters = pexeso.cluster(values)
    assert (clusters.groups, clusters.n_values) == ((), n_values)
    assert clusters.to_arrow().num_rows == 0
    assert clusters.to_pandas().columns.tolist() == list(clusters.fields)


def test_dates_of_one_day_are_a_group():
    clusters = pexeso.cluster(["2024-01-05", "5 Jan 2024", "2024-02-05"])
    assert [set(group.values) for group in clusters.groups] == [{"2024-01-05", "5 Jan 2024"}]
    assert clusters.max_distance == 0


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (([],), pexeso.InputError, "'value' has no values to compare"),
        ((["n/a", None],), pexeso.InputError, "'value' has no values to compare"),
        (("Oslo",), pexeso.QueryError, "not one text"),
        ((pa.table({"a": ["x"]}), "b"), pexeso.ColumnNotFoundError, "'b'"),
    ],
)
def test_what_is_no_column_is_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        pexeso.cluster(*arguments)


def test_a_distance_outside_its_range_is_refused():
    with pytest.raises(pexeso.InputError, match="max_distance"):
        pexeso.cluster(["a", "b"], max_distance=1.5)
