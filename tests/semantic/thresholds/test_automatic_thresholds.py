"""Automatic thresholds are scored by searches of an index."""

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.effectiveness.automatic import automatic_columns, automatic_distances
from benchmarks.effectiveness.judged import BY_MEANING, BY_TEXT, NOT_JUDGED, Judged
from pexeso.index import open_index

TOWNS = ["Oslo", "Rome", "Madrid", "Vienna", "Lisbon", "Dublin", "Helsinki", "Athens"]
CAPITALS = ["OSLO", "ROME", "MADRID", "VIENNA", "BERN", "PRAGUE"]
FIRMS = ["Nordlys Energi", "Fratelli Conti", "Casa del Sol", "Donau Metall", "Tejo Vidros"]


@pytest.fixture(scope="module")
def index(small_index):
    return open_index(small_index, device="cpu")


@pytest.fixture(scope="module")
def judged():
    """Towns hold four of six capitals, and capitals half of the towns: two pairs by text."""
    keys = [("cities.csv", 0), ("nested/capitals.tsv", 0), ("nested/companies.csv", 0)]
    labels = {
        BY_TEXT: np.array([1, 3]),
        BY_MEANING: np.array([], np.int64),
        NOT_JUDGED: np.array([], np.int64),
    }
    return Judged(keys, [pa.array(texts) for texts in (TOWNS, CAPITALS, FIRMS)], labels)


def test_columns_are_found_at_the_thresholds_that_the_index_chooses(judged, index):
    pairs, scores = automatic_columns(judged, index)
    assert scores["advice"] == index.advise().to_dict()
    assert sorted(zip(pairs.query.tolist(), pairs.candidate.tolist(), strict=True)) == [
        (0, 1),
        (1, 0),
    ]
    assert (scores["precision"], scores["recall"], scores["f1"]) == (1.0, 1.0, 1.0)


def test_each_pair_of_columns_has_its_distance(index):
    texts = [
        pa.array(values)
        for values in (
            TOWNS,
            ["Olso", "Rom", "Madridd", "Viena", "Lisbonn", "Dubln", "Helsinky", "Atens"],
            ["?"],
        )
    ]
    close, none = automatic_distances(index, [(texts[1], texts[0]), (texts[2], texts[0])])
    assert 0 < close <= 1
    assert none == index.usual_max_distance
