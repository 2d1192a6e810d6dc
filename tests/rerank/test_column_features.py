"""What two columns say together: counted as brute force counts, whatever is held at a time."""

import numpy as np
import pytest

from pexeso.engine.stats import SearchStats
from pexeso.index import open_index
from pexeso.rerank import features
from pexeso.rerank.features import (
    EQUAL,
    FEATURES,
    RARITY_AT,
    RATIOS,
    Counts,
    count,
    lake_of,
    rarities,
)
from pexeso.search.encoded_query import prepare
from pexeso.search.executor import search_store
from pexeso.search.query import query_from_values

PLACES = ["Oslo", "rome", " MADRID ", "Oslo", None, "Xyzzyx", "Romme"]


@pytest.fixture(scope="module")
def index(small_index):
    return open_index(small_index)


def own_rarities(index, query, hits):
    """Look through all columns found for each query value."""
    holders = np.zeros(len(query.values), int)
    partition = index._opened.loader.open(0)
    assert {hit.partition for hit in hits} == {0}
    for hit in hits:
        start, stop = partition.column_values.offsets[hit.position : hit.position + 2].tolist()
        for value in partition.column_values.members[start:stop].tolist():
            equal = (query.vectors - partition.vectors[value]).norm(dim=1).numpy() / 2 <= EQUAL
            holders[equal] = int(
                partition.value_columns.sizes_of(
                    partition.column_values.members.new_tensor([value]).long()
                )
            )
    return rarities(holders, partition.n_columns)


@pytest.mark.parametrize("numbers_at_once", [features.NUMBERS_AT_ONCE, 1])
def test_counts_are_those_of_brute_force(index, numbers_at_once, monkeypatch):
    monkeypatch.setattr(features, "NUMBERS_AT_ONCE", numbers_at_once)
    query = prepare(query_from_values(PLACES), index.normaliser, index.embedder)
    (found,) = search_store(
        index._opened.loader, [query], [index.search_options({"min_joinability": 0.1})]
    )
    hits, usual = found[0], index.usual_max_distance
    counts = count(
        index._opened.loader, query, hits, lake_of(index._opened.loader, hits), usual, SearchStats()
    )
    vectors = query.vectors.double()
    own = own_rarities(index, query, hits)
    np.testing.assert_allclose(counts.query_rarity, own.mean())
    for place, hit in enumerate(hits):
        partition = index._opened.loader.open(hit.partition)
        start, stop = partition.column_values.offsets[hit.position : hit.position + 2].tolist()
        values = partition.column_values.members[start:stop].long()
        distances = (vectors[:, None] - partition.vectors[values].double()[None]).norm(
            dim=2
        ).numpy() / 2
        for number, ratio in enumerate(RATIOS):
            near = distances <= max(ratio * usual, EQUAL)
            assert counts.matched[place, number] == near.any(1).sum()
            assert counts.matched_back[place, number] == near.any(0).sum()
        assert counts.lake_values[place] == len(values)
        rare = rarities(partition.value_columns.sizes_of(values).numpy(), partition.n_columns)
        assert counts.rarity[place] == pytest.approx(rare[(distances <= EQUAL).any(0)].mean())
        assert counts.lake_rarity[place] == pytest.approx(rare.mean())
        for number, ratio in enumerate(RARITY_AT):
            near = distances <= max(ratio * usual, EQUAL)
            assert counts.rarity_matched[place, number] == pytest.approx(
                own[near.any(1)].sum() / own.sum()
            )
            assert counts.rarity_matched_back[place, number] == pytest.approx(
                rare[near.any(0)].sum() / rare.sum()
            )
    assert counts.query_values.tolist() == [len(query.values)] * len(hits)


def test_features_are_shares_and_names():
    n = len(RATIOS)
    counts = Counts(
        np.full((2, n), 2.0),
        np.full((2, n), 1.0),
        np.array([4.0, 4.0]),
        np.array([10.0, 1.0]),
        *(np.zeros(shape) for shape in (2, (2, 2), (2, 2), 2, 2)),
        [("Home Team", "home team"), ("", "")],
    )
    first, second = (dict(zip(FEATURES, row, strict=True)) for row in counts.features())
    assert (first["matched 1"], first["matched back 1"], first["one to one 1"]) == (0.5, 0.1, 0.5)
    assert (first["same name"], first["words in names"]) == (1.0, 1.0)
    assert (second["same name"], second["words in names"], second["lake values"]) == (0.0, 0.0, 0.0)
