"""Named columns that no program joins: the most similar keys, as brute force finds them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from embed.corpus import CorpusOptions, write_corpus
from embed.registry import create_embedder
from pexeso import learn_transformation
from pexeso.engine.sparse.vectors import pair_distances
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.parts.encode import sparse_vectors
from pexeso.transform_join.similar import nearest_values

TEAMS = ["Buffalo Bills", "New York Jets", "Oakland Raiders", "Denver Broncos", "Miami Dolphins"]
LIKE = ["Buffalo Bils", "NY Jets", "Los Angeles Raiders", "Dolphins of Miami", "Chess", "Bern"]


def brute_force(texts, keys, folder):
    columns = [pa.array(side, pa.string()) for side in (texts, keys)]
    left, right = Normaliser().normalise_columns(columns)
    corpus = folder / "corpus.txt"
    held = pa.table({"group": np.zeros(len(right), np.int64), "value": right})
    write_corpus(held.to_batches(), corpus, CorpusOptions())
    embedder = create_embedder("lexical", corpus=corpus)
    asked, stored = (sparse_vectors(embedder, side) for side in (left, right))
    shape = len(texts), len(keys)
    row, key = (each.ravel() for each in np.indices(shape))
    return pair_distances(asked.take(row), stored.take(key)).reshape(shape)


def test_the_nearest_key_within_the_usual_distance(tmp_path):
    distances = brute_force(LIKE, TEAMS, tmp_path)
    places, nearest = nearest_values(pa.array(LIKE), pa.array(TEAMS))
    least = distances.min(axis=1)
    expected = np.where(least <= 0.4, distances.argmin(axis=1), -1)
    assert places.tolist() == expected.tolist()
    assert np.array_equal(nearest, np.where(least <= 0.4, least, 0.0))
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
