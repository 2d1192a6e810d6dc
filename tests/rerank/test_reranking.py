"""Re-ranking: an order that follows the scores, and the same columns as without it."""

import numpy as np
import pytest

from benchmarks.effectiveness.reranker import trees_of
from pexeso.index import open_index
from pexeso.rerank import reranker
from pexeso.rerank.features import FEATURES, RATIOS
from pexeso.search.query import QueryColumn, query_from_values

PLACES = ["Oslo", "rome", " MADRID ", "Oslo", None, "Xyzzyx", "Romme"]


@pytest.fixture(scope="module")
def index(small_index):
    return open_index(small_index)


@pytest.fixture
def by_names(monkeypatch):
    """Trees that know the name alone."""
    leaf = {"feature": 0, "threshold": 0.0, "left": 0, "right": 0, "count": 1, "is_leaf": True}
    root = {
        "feature": FEATURES.index("same name"),
        "threshold": 0.5,
        "left": 1,
        "right": 2,
        "value": 0,
        "count": 2,
    }
    trees = trees_of(
        FEATURES,
        0.0,
        [[{**root, "is_leaf": False}, {**leaf, "value": -1.0}, {**leaf, "value": 1.0}]],
    )
    monkeypatch.setattr(reranker, "reranker", lambda: trees)


def test_the_order_follows_the_scores_and_nothing_is_lost(index, by_names):
    query = QueryColumn(query_from_values(PLACES).values, column="place")
    plain = index.search(query, min_joinability=0.1, rerank=False)
    ranked = index.search(query, min_joinability=0.1)
    assert {match.table for match in ranked} == {match.table for match in plain}
    assert ranked[0].column == "place"
    assert plain[0].column != "place"
    shown = [round(match.opinion.score, 2) for match in ranked]
    assert shown == sorted(shown, reverse=True)
    assert ranked[0].opinion.reasons[0] == ("same name", pytest.approx(1.0, abs=0.5), 1.0)
    # Features that these trees do not know are no reasons for people.
    assert ranked[0].opinion.in_words() == [
        ("evidence for it", ["the two columns have the same name"])
    ]
    assert ranked[1].opinion.in_words() == [
        ("evidence against it", ["the two columns have different names"])
    ]
    assert ranked.to_dict()["results"][0]["score"] > 0.5
    assert ranked.to_pandas()["score"].tolist() == [
        result["score"] for result in ranked.to_dict()["results"]
    ]
    assert "score" not in plain.to_dict()["results"][0]
    assert (ranked.reranked, plain.reranked) == (True, False)
    # Pairs belong to their columns, whatever the order.
    assert {m.table: len(m.pairs()) for m in ranked} == {m.table: len(m.pairs()) for m in plain}


def test_what_is_not_looked_at_stays_behind_in_its_order(index, by_names, monkeypatch):
    monkeypatch.setattr(reranker, "MOST_HITS", 1)
    plain = index.search(PLACES, min_joinability=0.1, rerank=False)
    ranked = index.search(PLACES, min_joinability=0.1)
    assert [match.table for match in ranked] == [match.table for match in plain]
    assert [match.opinion is None for match in ranked] == [False, True, True]
    assert ranked.to_pandas()["score"].isna().tolist() == [False, True, True]
    assert [list(result) for result in ranked.to_dict()["results"]] == [
        [
            "table",
            "column",
            "joinability",
            "matched",
            "total",
            "joinability_of",
            "score",
            "reasons",
            "copies",
            "brings",
        ]
    ] * 3
    assert [result["score"] is None for result in ranked.to_dict()["results"]] == [
        False,
        True,
        True,
    ]


def test_nothing_found_is_ranked_without_complaint(index):
    ranked = index.search(["Xyzzyx"])
    assert len(ranked) == 0
    assert "score" in ranked.to_pandas()


def test_the_trees_of_the_package_know_these_features():
    trees = reranker.reranker()
    assert trees.features == FEATURES
    everything, nothing = np.zeros((2, len(FEATURES)))
    everything[: 2 * len(RATIOS)] = 1.0
    for name in FEATURES:
        if name.startswith("rarity"):
            everything[FEATURES.index(name)] = 0.8
    everything[FEATURES.index("query values") :][:2] = np.log(20)
    nothing[FEATURES.index("query values") :][:2] = np.log(20)
    high, low = trees.scores(np.stack([everything, nothing]))
    assert high > 0.9 > 0.1 > low
