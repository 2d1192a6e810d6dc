"""The list of all evidence: held against one put together from all that each search finds."""

import csv
import random

import pytest
from long_runs import long_but

import pexeso
from pexeso.semantic import combined as module

CITIES = [
    *("Oslo", "Rome", "Madrid", "Vienna", "Lisbon", "Dublin", "Helsinki", "Athens", "Prague"),
    *("Warsaw", "Budapest", "Brussels", "Paris", "Berlin", "London"),
]
PEOPLE = [
    f"{a} {b}" for a in ("Anna", "Bert", "Carla", "Emma") for b in ("Novak", "Rossi", "Smith")
]

FEW = {"max_candidates": 3}  # programs take most of the time


def written_otherwise(drawn, values):
    """Write some of the values so that they are alike and not equal, or so that a program joins."""
    how = drawn.randrange(5)
    if how == 0:
        return [value.upper() for value in values]
    if how == 1:
        return [", ".join(value.split()[::-1]) for value in values]
    if how == 2:
        return [value if drawn.random() < 0.5 else value.upper() for value in values]
    return values


def column_of(drawn):
    if drawn.random() < 0.2:
        return [str(drawn.randrange(12)) for _ in range(drawn.randint(3, 10))]
    values = drawn.choice((CITIES, PEOPLE))
    return written_otherwise(drawn, drawn.sample(values, drawn.randint(2, len(values))))


@pytest.fixture(
    scope="module", params=long_but(["lexical,hashing"], ["lexical", "lexical,hashing"])
)
def index(request, tmp_path_factory):
    drawn, folder = random.Random(3), tmp_path_factory.mktemp("lists")
    lake = folder / "lake"
    lake.mkdir()
    for number in range(60):
        cells = column_of(drawn)
        with open(lake / f"t{number:02}.csv", "w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file)
            rows.writerow(["a", "b"])
            rows.writerows([cell, f"{place}x"] for place, cell in enumerate(cells))
    return pexeso.build_index(
        lake, folder / "lake.pexeso", model=request.param, parts=["containment"], n_partitions=2
    )


def names_of(matches):
    return [(match.table, match.column) for match in matches]


def put_together(index, values, **options):
    """Return rank and evidence of every column that some search finds, best first."""
    alone = {"k": "all", "fold_copies": False}
    meaning = {}
    for model in index.models:
        by_model = index.with_model(model).search(values, rerank=False, **alone, **options)
        for match in by_model:
            name = (match.table, match.column)
            meaning[name] = max(match.joinability, meaning.get(name, 0))
    overlap = {(m.table, m.column): m.containment for m in index.overlap(values, **alone)}
    transform = {
        (m.table, m.column): m.joinability
        for m in index.search(values, method="transform", **FEW, **alone, **options)
    }
    ranked = []
    for name in {*meaning, *overlap, *transform}:
        by_meaning, equal = meaning.get(name, 0), overlap.get(name, 0)
        share = max(by_meaning, equal, transform.get(name, 0))
        ranked.append((-share, -min(by_meaning, equal), *name, by_meaning or None, equal or None))
    return sorted(ranked, key=lambda row: row[:4])


def fields_of(matches):
    return [
        (
            -match.share,
            match.rank[1],
            match.table,
            match.column,
            None if match.meaning is None else match.meaning.joinability,
            None if match.equal_text is None else match.equal_text.containment,
        )
        for match in matches
    ]


def query_of(drawn):
    values = drawn.choice((CITIES, PEOPLE))
    values = written_otherwise(drawn, drawn.sample(values, drawn.randint(1, 9)))
    return values + [str(drawn.randrange(12)) for _ in range(drawn.choice((0, 0, 3)))]


@pytest.fixture(params=["usual", "small"])
def steps(request, monkeypatch):
    """Read lists as they are, or in steps so small that most answers take several."""
    if request.param == "small":
        monkeypatch.setattr(module, "first_request", lambda k, folds: k)
        monkeypatch.setattr(module, "next_request", lambda n: n + 1)


@pytest.mark.parametrize("seed", range(3))
def test_the_k_best_are_those_of_the_whole_list(index, steps, seed):
    drawn = random.Random(seed)
    values = query_of(drawn)
    options = {"min_joinability": drawn.choice((0.2, 0.5))}
    every = index.search(values, method="all", **FEW, k="all", fold_copies=False, **options)
    assert fields_of(every) == put_together(index, values, **options)
    assert every.n_more == 0
    for k in (1, 2, 3, 7):
        some = index.search(values, method="all", **FEW, k=k, fold_copies=False, **options)
        assert fields_of(some) == fields_of(every)[:k]
        assert some.n_more in (None, len(every) - len(some))
        assert [match.found_by for match in some] == [match.found_by for match in every[:k]]


@pytest.mark.parametrize("seed", range(3))
def test_lines_of_copies_are_those_of_the_whole_list(index, steps, seed):
    drawn = random.Random(seed)
    values = query_of(drawn)
    every = index.search(values, method="all", **FEW, k="all", min_joinability=0.2)
    for k in (1, 3, 6):
        some = index.search(values, method="all", **FEW, k=k, min_joinability=0.2)
        assert fields_of(some) == fields_of(every)[:k]
        for line, whole in zip(some, every, strict=False):
            assert {*names_of(line.copies)} <= {*names_of(whole.copies)}


@pytest.mark.parametrize("seed", range(3))
def test_without_a_smallest_share_the_best_are_those_that_match_most(index, steps, seed):
    values = query_of(random.Random(seed))
    whole = put_together(index, values, min_joinability=0.000001)
    for k in (1, 4, 9):
        assert (
            fields_of(index.search(values, method="all", **FEW, k=k, fold_copies=False))
            == whole[:k]
        )
    usual = index.search(values, method="all", **FEW, fold_copies=False)
    assert fields_of(usual) == put_together(index, values, min_joinability=0.5)[:20]


def test_evidence_of_columns_that_another_search_named_is_that_of_their_own(index, monkeypatch):
    monkeypatch.setattr(module, "first_request", lambda k, folds: k)
    values = [*CITIES[:5], *(city.upper() for city in CITIES[5:8])]
    model = index.with_model(index.models[0])
    alone = {
        (match.table, match.column): match
        for match in model.search(values, k=200, rerank=False, fold_copies=False)
    }
    matches = [
        hit for hit in index.search(values, method="all", **FEW, k=5) if hit.meaning is not None
    ]
    assert matches
    for match in matches:
        by_first = match.by_model[index.models[0]] if match.by_model else match.meaning
        expected = alone[match.table, match.column]
        assert by_first == expected
        assert by_first.pairs() == expected.pairs()
