"""Named columns that no program joins: the most similar keys, as brute force finds them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from embed.corpus import write_corpus
from embed.registry import create_embedder
from pexeso import learn_transformation
from pexeso.build.parts.metadata import sparse_vectors
from pexeso.engine.sparse.vectors import pair_distances
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.transform.joins import learned
from pexeso.transform.nearest import nearest_values

TEAMS = ["Buffalo Bills", "New York Jets", "Oakland Raiders", "Denver Broncos", "Miami Dolphins"]
LIKE = ["Buffalo Bils", "NY Jets", "Los Angeles Raiders", "Dolphins of Miami", "Chess", "Bern"]


def brute_force(texts, keys, folder):
    columns = [pa.array(side, pa.string()) for side in (texts, keys)]
    left, right = Normaliser().normalise_columns(columns)
    corpus = folder / "corpus.txt"
    held = pa.table({"group": np.zeros(len(right), np.int64), "value": right})
    write_corpus(held.to_batches(), corpus)
    embedder = create_embedder("lexical", corpus=corpus)
    queries, stored = (sparse_vectors(embedder, side) for side in (left, right))
    shape = len(texts), len(keys)
    row, key = (positions.ravel() for positions in np.indices(shape))
    return pair_distances(queries.take(row), stored.take(key)).reshape(shape)


def test_the_nearest_key_within_the_usual_distance(tmp_path):
    distances = brute_force(LIKE, TEAMS, tmp_path)
    places, nearest = nearest_values(pa.array(LIKE), pa.array(TEAMS))
    smallest = distances.min(axis=1)
    expected = np.where(smallest <= 0.4, distances.argmin(axis=1), -1)
    assert places.tolist() == expected.tolist()
    assert np.array_equal(nearest, np.where(smallest <= 0.4, smallest, 0.0))
    assert places.tolist()[0] == 0
    assert -1 in places.tolist()


def test_named_columns_without_a_program_are_joined_by_similarity():
    tables = {"a": [*LIKE, "Denver Broncos"]}, {"b": TEAMS}
    joined = learn_transformation(*tables, columns="a", target_columns="b")
    assert joined.program is None
    assert ("Denver Broncos", "Denver Broncos", "equal") in joined.pairs
    assert ("Buffalo Bils", "Buffalo Bills", "fuzzy") in joined.pairs
    assert {kind for *_, kind in joined.pairs} == {"equal", "fuzzy"}
    for options in ({}, {"columns": "a"}, {"columns": "a", "target_columns": "b", "fuzzy": False}):
        alone = learn_transformation(*tables, **options)
        assert alone.pairs == [("Denver Broncos", "Denver Broncos", "equal")]


@pytest.mark.parametrize(
    ("texts", "keys", "max_values"),
    [
        # Six texts have no partner: what repeats, and what is equal to a key, does not count.
        ([*LIKE, *LIKE, "Denver Broncos"], TEAMS, 6),
        (TEAMS[:2], [*LIKE, "Denver Broncos"], 7),
    ],
)
def test_more_values_than_the_limit_are_not_compared(monkeypatch, texts, keys, max_values):
    def joined(limit):
        monkeypatch.setattr(learned, "MAX_VALUES", limit)
        return learn_transformation({"a": texts}, {"b": keys}, columns="a", target_columns="b")

    compared, left_out = joined(max_values), joined(max_values - 1)
    assert "fuzzy" in {kind for *_, kind in compared.pairs}
    assert "fuzzy" not in {kind for *_, kind in left_out.pairs}
    assert left_out.tried == (
        f"{compared.tried}; similar values were not joined either, as a column has more than "
        f"{max_values - 1} distinct ones: index one table and use 'pexeso join', or give fewer rows"
    )


def test_columns_of_many_different_values_end_at_once():
    n_values = learned.MAX_VALUES + 1
    many = {"a": [f"{number:x}" for number in np.random.default_rng(0).permutation(n_values)]}
    joined = learn_transformation(many, {"b": ["zz top"]}, columns="a", target_columns="b")
    assert joined.pairs == []
    assert "more than 15,000 distinct ones" in joined.tried


@pytest.mark.parametrize(
    ("texts", "keys", "places"),
    [
        (["AB0017X", "AB0071X", "GH-9999"], ["AB0017Y", "AB0071Z", "gh-9999"], [-1, -1, 2]),
        (["2019", "2020", "2021"], ["2019/20", "2020-21", "2021."], [-1, -1, 2]),
        (["j.smith@a.org", "b.lee@a.org"], ["j.smyth@a.org", "b.lee@A.org"], [-1, 1]),
        # Most are equal with the day first.
        (["05/01/2024", "06/01/2024"], ["2024-05-01", "2024-01-05", "2024-01-06"], [1, 2]),
        (["2024-01-05", "2024-01-06"], ["01/05/2024", "06/01/2024", "05/01/2024"], [2, 1]),
    ],
)
def test_of_codes_numbers_and_dates_equal_ones_alone(texts, keys, places):
    assert nearest_values(pa.array(texts), pa.array(keys))[0].tolist() == places
    tables = {"a": texts}, {"b": keys}
    joined = learn_transformation(*tables, columns="a", target_columns="b")
    assert [left for left, *_ in joined.pairs] == [
        text for text, place in zip(texts, places, strict=True) if place >= 0
    ]
