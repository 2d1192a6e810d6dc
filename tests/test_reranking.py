"""Re-ranking: counts by brute force, an order that follows the scores, and the same columns as without it."""

import numpy as np
import pytest

from pexeso import reranking
from pexeso.boosted_trees import trees_of
from pexeso.engine.stats import SearchStats
from pexeso.index import open_index
from pexeso.prepared import prepare
from pexeso.queries import QueryColumn, query_from_values
from pexeso.reranking import EQUAL, FEATURES, RATIOS, Counts, count

PLACES = ["Oslo", "rome", " MADRID ", "Oslo", None, "Xyzzyx", "Romme"]


@pytest.fixture(scope="module")
def index(small_index):
    return open_index(small_index)


@pytest.fixture
def by_names(monkeypatch):
    """Trees that know the name alone."""
    leaf = {"feature": 0, "threshold": 0.0, "left": 0, "right": 0, "count": 1, "is_leaf": True}
    root = {"feature": FEATURES.index("same name"), "threshold": 0.5, "left": 1, "right": 2, "value": 0, "count": 2}
    trees = trees_of(FEATURES, 0.0, [[{**root, "is_leaf": False}, {**leaf, "value": -1.0}, {**leaf, "value": 1.0}]])
    monkeypatch.setattr(reranking, "reranker", lambda: trees)


def test_counts_are_those_of_brute_force(index):
    query = prepare(query_from_values(PLACES), index.normaliser, index.embedder)
    (found,) = index._search([query], [index.search_options({"min_joinability": 0.1})])
    hits, usual = found[0], index.usual_max_distance
    counts = count(index._scan, query, hits, usual, SearchStats())
    vectors = query.vectors.double()
    for place, hit in enumerate(hits):
        partition = index._scan.open(hit.partition)
        start, stop = partition.column_values.offsets[hit.place : hit.place + 2].tolist()
        values = partition.column_values.members[start:stop].long()
        distances = (vectors[:, None] - partition.vectors[values].double()[None]).norm(dim=2).numpy() / 2
        for number, ratio in enumerate(RATIOS):
            near = distances <= max(ratio * usual, EQUAL)
            assert counts.matched[place, number] == near.any(1).sum()
            assert counts.matched_back[place, number] == near.any(0).sum()
        assert counts.lake_values[place] == len(values)
        holders = partition.value_columns.sizes_of(values).numpy()[(distances <= EQUAL).any(0)]
        rarity = np.log(partition.n_columns / holders) / np.log(partition.n_columns)
        assert counts.rarity[place] == pytest.approx(rarity.mean())
    assert counts.query_values.tolist() == [len(query.values)] * len(hits)


def test_features_are_shares_and_names():
    n = len(RATIOS)
    counts = Counts(
        np.full((2, n), 2.0),
        np.full((2, n), 1.0),
        np.array([4.0, 4.0]),
        np.array([10.0, 1.0]),
        np.zeros(2),
        [("Home Team", "home team"), ("", "")],
    )
    first, second = (dict(zip(FEATURES, row, strict=True)) for row in counts.features())
    assert (first["matched 1"], first["matched back 1"], first["one to one 1"]) == (0.5, 0.1, 0.5)
    assert (first["same name"], first["words in names"]) == (1.0, 1.0)
    assert (second["same name"], second["words in names"], second["lake values"]) == (0.0, 0.0, 0.0)


def test_the_order_follows_the_scores_and_nothing_is_lost(index, by_names):
    query = QueryColumn(query_from_values(PLACES).values, column="place")
    plain = index.search(query, min_joinability=0.1)
    ranked = index.search(query, min_joinability=0.1, rerank=True)
    assert {match.table for match in ranked} == {match.table for match in plain}
    assert ranked[0].column == "place"
    assert plain[0].column != "place"
    shown = [round(match.opinion.score, 2) for match in ranked]
    assert shown == sorted(shown, reverse=True)
    assert ranked[0].opinion.reasons[0] == ("same name", pytest.approx(1.0, abs=0.5))
    assert ranked.to_dict()["results"][0]["score"] > 0.5
    assert "score" in ranked.to_pandas()
    assert "score" not in plain.to_dict()["results"][0]
    # Pairs belong to their columns, whatever the order.
    assert {m.table: len(m.pairs()) for m in ranked} == {m.table: len(m.pairs()) for m in plain}


def test_what_is_not_looked_at_stays_behind_in_its_order(index, by_names, monkeypatch):
    monkeypatch.setattr(reranking, "MOST_HITS", 1)
    plain = index.search(PLACES, min_joinability=0.1)
    ranked = index.search(PLACES, min_joinability=0.1, rerank=True)
    assert [match.table for match in ranked] == [match.table for match in plain]
    assert [match.opinion is None for match in ranked] == [False, True, True]


def test_nothing_found_is_ranked_without_complaint(index):
    assert len(index.search(["Xyzzyx"], rerank=True)) == 0


def test_the_trees_of_the_package_know_these_features():
    trees = reranking.reranker()
    assert trees.features == FEATURES
    everything, nothing = np.zeros((2, len(FEATURES)))
    everything[: 2 * len(RATIOS)] = 1.0
    everything[FEATURES.index("query values") :][:2] = np.log(20)
    nothing[FEATURES.index("query values") :][:2] = np.log(20)
    high, low = trees.scores(np.stack([everything, nothing]))
    assert high > 0.9 > 0.1 > low
