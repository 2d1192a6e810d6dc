"""Similarity of columns: computed as brute force does, and what it says of joins."""

import json

import numpy as np
import pytest

from pexeso.engine.stats import SearchStats
from pexeso.faces.service.verbs import Service
from pexeso.index import build_index, open_index
from pexeso.results.query import query_from_values
from pexeso.semantic import similarity
from pexeso.semantic.executor import search_store
from pexeso.semantic.similarity import REACH, similarities

PLACES = ["Oslo", "rome", " MADRID ", "Oslo", None, "Xyzzyx", "Romme"]
NEAR = [*PLACES, "Oslo Rome", "Bern"]
COMPANIES = [
    *("Acme", "Globex", "Initech", "Umbrella", "Stark Industries"),
    *("Wayne Enterprises", "Hooli", "Soylent", "Tyrell", "Cyberdyne Systems"),
]
OTHERS = [
    *("Vandelay", "Wonka Foods", "Oceanic Airlines", "Duff Brewery", "Gringotts"),
    *("Monarch Solutions", "Nakatomi Trading", "Weyland Mining", "Pied Piper", "Los Pollos"),
]


@pytest.fixture(scope="module")
def index(small_index):
    return open_index(small_index)


@pytest.fixture(scope="module")
def companies(tmp_path_factory):
    """An index by spelling of company names, as they are and with ' Inc' behind them."""
    lake = tmp_path_factory.mktemp("companies") / "lake"
    lake.mkdir()
    columns = {
        "names": COMPANIES,
        "half": [*COMPANIES[:5], *OTHERS[:5]],
        "others": [f"{name} Inc" for name in OTHERS],
    }
    for name, values in columns.items():
        text = "\n".join(["company", *values, ""])
        (lake / f"{name}.csv").write_text(text, encoding="utf-8")
    return build_index(lake, lake.parent / "lake.pexeso", model="lexical")


def similarity_by_table(index, values, **options):
    options = {"max_distance": 1.0, "min_joinability": None, "k": 9, **options}
    return {match.table: match.similarity for match in index.search(values, **options)}


@pytest.mark.parametrize("pairs_at_once", [similarity.CHUNK_SIZE, 1])
def test_it_is_that_of_brute_force(index, pairs_at_once, monkeypatch):
    monkeypatch.setattr(similarity, "CHUNK_SIZE", pairs_at_once)
    loader, query = index._opened.loader, index._opened.encode(query_from_values(NEAR))
    options = index.search_options({"min_joinability": 0.1})
    [(hits, _)] = search_store(loader, [query], [options])
    usual = index.usual_max_distance
    computed = similarities(loader, query, hits, usual, SearchStats())
    vectors = query.vectors.double()
    assert len(hits) == 3
    for hit, own in zip(hits, computed, strict=True):
        partition = loader.open(hit.partition)
        start, stop = partition.column_values.offsets[hit.position : hit.position + 2].tolist()
        values = partition.column_values.members[start:stop].long()
        distances = (vectors[:, None] - partition.vectors[values].double()[None]).norm(dim=2) / 2
        nearest = distances.numpy().min(1) / (REACH * usual)
        assert ((nearest > 0.1) & (nearest < 1)).any(), "some value is near and not equal"
        assert own == pytest.approx(np.mean(np.maximum(1 - nearest**2, 0)), abs=1e-6)
    assert len(set(computed.tolist())) > 1


def test_the_order_follows_it_and_nothing_is_lost(companies):
    options = {"max_distance": 0.45, "min_joinability": None, "joinability_of": "rows"}
    values = [*COMPANIES, *["Vandelay"] * 10]  # most rows match the column that has half of them
    plain = companies.search(values, rerank=False, **options)
    ranked = companies.search(values, **options)
    assert (plain[0].table, ranked[0].table) == ("half.csv", "names.csv")
    assert {match.table for match in ranked} == {match.table for match in plain}
    shown = [round(match.similarity, 2) for match in ranked]
    assert shown == sorted(shown, reverse=True)
    assert (ranked.reranked, plain.reranked) == (True, False)
    assert all(match.similarity is None for match in plain)
    assert "similarity" not in plain.to_dict()["results"][0]
    # Pairs belong to their columns, whatever the order.
    assert {m.table: len(m.pairs()) for m in ranked} == {m.table: len(m.pairs()) for m in plain}


def test_columns_beyond_the_first_stay_behind_in_their_order(index, monkeypatch):
    monkeypatch.setattr(similarity, "MAX_HITS", 1)
    plain = index.search(PLACES, min_joinability=0.1, rerank=False)
    ranked = index.search(PLACES, min_joinability=0.1)
    assert [match.table for match in ranked] == [match.table for match in plain]
    assert [match.similarity is None for match in ranked] == [False, True, True]
    assert ranked.to_pandas()["similarity"].isna().tolist() == [False, True, True]
    counts = ["joinability", "matched", "total", "joinability_of"]
    sizes = ["rows_per_value", "is_small_domain"]
    names = ["table", "column", *counts, "similarity", "copies", "brings", *sizes]
    assert [list(result) for result in ranked.to_dict()["results"]] == [names] * 3


def test_nothing_found_is_ranked_without_complaint(index):
    ranked = index.search(["Xyzzyx"])
    assert len(ranked) == 0
    assert "similarity" in ranked.to_pandas()


def test_it_does_not_depend_on_thresholds_and_rows(companies):
    strict = similarity_by_table(companies, COMPANIES, max_distance=0.0)["half.csv"]
    assert strict == similarity_by_table(companies, COMPANIES * 2 + COMPANIES[:1] * 7)["half.csv"]
    assert strict == pytest.approx(0.5, abs=0.1)


def test_names_with_a_suffix_are_a_perfect_join_and_the_suffix_alone_is_none(companies):
    alike = similarity_by_table(companies, [f"{name} Inc" for name in COMPANIES])
    assert alike["names.csv"] > 0.9
    assert alike.get("others.csv", 0.0) < 0.1
    assert similarity_by_table(companies, COMPANIES)["names.csv"] == 1.0


def test_misspelt_names_are_above_a_column_with_some_of_them(companies):
    misspelt = [f"{name[:3]}{name[2:]}" for name in COMPANIES]
    alike = similarity_by_table(companies, misspelt)
    assert alike["names.csv"] > 0.5
    assert alike["names.csv"] > 1.5 * alike["half.csv"] > 0


def test_several_spellings_of_each_value_are_a_join_too(companies):
    spellings = [*COMPANIES, *(f"{name} Inc" for name in COMPANIES), *map(str.upper, COMPANIES)]
    spellings += [f"{name[:3]}{name[2:]}" for name in COMPANIES]
    assert similarity_by_table(companies, spellings)["names.csv"] > 0.8


def test_python_a_batch_and_the_service_agree(companies):
    options = {"max_distance": 0.4, "k": 5, "min_joinability": 0.1}
    values = [f"{name} Inc" for name in COMPANIES]
    alone = companies.search(values, **options).to_dict()["results"]
    [batch] = companies.search_batch([values], **options)
    assert batch.to_dict()["results"] == alone
    request = {"index": str(companies.path), **options}
    service = Service()
    searched = service.answer({"verb": "search", "query": values, **request})
    [in_batch] = service.answer({"verb": "batch", "queries": [{"values": values}], **request})[
        "answers"
    ]
    assert json.loads(json.dumps(alone)) == searched["results"] == in_batch["results"]
    assert [result["similarity"] for result in alone] == sorted(
        (result["similarity"] for result in alone), reverse=True
    )


@pytest.fixture(scope="module")
def alike(tmp_path_factory):
    """An index where 40 columns match the company names, from the least alike to the most."""
    lake = tmp_path_factory.mktemp("alike") / "lake"
    lake.mkdir()
    for number in range(40):
        written = [
            name if place * 4 < number else f"{name} Incorporated"
            for place, name in enumerate(COMPANIES)
        ]
        text = "\n".join(["company", *written[: 10 - number % 3], *OTHERS[: number % 7], ""])
        (lake / f"t{number:02}.csv").write_text(text, encoding="utf-8")
    return build_index(lake, lake.parent / "lake.pexeso", model="lexical")


@pytest.mark.parametrize("folds", [True, False])
def test_of_equally_joinable_columns_the_most_similar_are_found(alike, folds):
    options = {"max_distance": 0.5, "fold_copies": folds}
    every = alike.search(COMPANIES, k="all", min_joinability=0.01, **options)
    assert len({match.joinability for match in every}) > 1
    place = {match.table: number for number, match in enumerate(every)}
    best = sorted(every, key=lambda match: (-match.joinability, place[match.table]))
    assert [match.table for match in best] != sorted(match.table for match in best)
    for k in (1, 2, 5, 30):
        expected = sorted((match.table for match in best[:k]), key=place.__getitem__)
        assert [match.table for match in alike.search(COMPANIES, k=k, **options)] == expected
