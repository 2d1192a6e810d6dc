"""Building and searching: worked examples, brute force, options, bad input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic_sets import ensemble_of, ragged, text_numbers

from pexeso.errors import InputError
from pexeso.sets.containment import EnsembleOptions
from pexeso.sets.containment import ensemble as ensemble_module
from pexeso.sets.containment.bands import Tuner
from pexeso.sets.containment.ensemble import Ensemble, bands_seconds, lists_seconds

SMALL = EnsembleOptions(permutations=64, partitions=4)
TEN = np.arange(1, 11, dtype=np.uint64)
ROUTES = ("auto", "lists", "bands")


def lake_of(*sets: list[str], options: EnsembleOptions | None = None) -> Ensemble:
    numbers = text_numbers([text for one in sets for text in one])
    return ensemble_of(numbers, np.cumsum([0, *(len(one) for one in sets)]), options)


def numbered(*sets: list[int], options: EnsembleOptions = SMALL) -> Ensemble:
    return ensemble_of(*ragged([np.array(one, np.uint64) for one in sets]), options)


def test_w1_containment_ranks_where_similarity_does_not():
    second = [
        "Illinois",
        "Chicago",
        "New York City",
        "New York",
        "Nova Scotia",
        "Halifax",
        "California",
    ]
    second += ["San Francisco", "Seattle", "Washington", "Ontario", "Toronto"]
    index = lake_of(["Alberta", "Ontario", "Manitoba"], second)
    answer = index.search(text_numbers(["Ontario", "Toronto"]), 0.5)
    assert answer.sets.tolist() == [1, 0]
    assert answer.containments.tolist() == [1.0, 0.5]
    assert answer.overlaps.tolist() == [2, 1]
    assert index.search(text_numbers(["Ontario", "Toronto"]), 1.0).sets.tolist() == [1]


@given(
    st.lists(st.lists(st.integers(0, 25), max_size=12), max_size=12),
    st.lists(st.integers(0, 30), max_size=12),
    st.sampled_from([0.1, 0.3, 0.55, 0.8, 1.0]),
)
def test_acceptance_10_what_is_found_is_right_and_posting_lists_miss_nothing(
    sets, query, threshold
):
    index = numbered(*sets, options=EnsembleOptions(permutations=16, partitions=3))
    hashed = np.array(query, np.uint64)
    size = len(set(query))
    exact = {i: len(set(one) & set(query)) for i, one in enumerate(sets)}
    truth = {i for i, count in exact.items() if size and count / size >= threshold - 1e-12}
    answer = index.search(hashed, threshold)
    assert set(answer.sets.tolist()) <= truth
    assert answer.overlaps.tolist() == [exact[i] for i in answer.sets.tolist()]
    assert answer.sizes.tolist() == [len(set(sets[i])) for i in answer.sets.tolist()]
    assert set(index.search(hashed, threshold, route="lists").sets.tolist()) == truth
    by_bands = index.search(hashed, threshold, route="bands")
    assert set(by_bands.sets.tolist()) <= truth
    assert by_bands.overlaps.tolist() == [exact[i] for i in by_bands.sets.tolist()]


def test_without_verification_estimates_order_candidates():
    index = numbered(TEN.tolist(), [*TEN.tolist(), *range(20, 25)], list(range(6, 16)))
    answer = index.search(TEN, 0.5, verify=False, route="bands")
    assert answer.overlaps.tolist() == [-1, -1, -1]
    assert answer.sets.tolist() == [0, 1, 2]
    assert answer.containments[0] == 1.0
    assert (np.diff(answer.containments) <= 0).all()
    assert np.abs(answer.containments - [1, 1, 0.5]).max() < 0.25


def test_a_partition_of_small_sets_is_skipped_and_small_sets_are_dropped():
    index = numbered(*([i] for i in range(30)), TEN.tolist())
    answer = index.search(TEN, 0.9, verify=False, route="bands")
    assert answer.sets.tolist() == [30]


def test_pitfall_3_a_share_is_not_rounded_up():
    hundred = np.arange(100, dtype=np.uint64)
    index = numbered(list(range(55)), list(range(54)))
    answer = index.search(hundred, 0.55)
    assert answer.needed == 55
    assert answer.sets.tolist() == [0]


def test_a_query_of_one_value_finds_it_in_sets_of_any_size():
    rng = np.random.default_rng(8)
    sets = [[1, *rng.integers(100, 2**40, size).tolist()] for size in (0, 1, 10, 200, 5000)]
    others = [rng.integers(100, 2**40, 50).tolist() for _ in range(50)]
    answer = numbered(*sets, *others).search(np.array([1], np.uint64), 1.0)
    assert answer.sets.tolist() == [0, 1, 2, 3, 4]
    assert answer.route == "lists"


def test_the_same_seed_gives_the_same_candidates_and_another_draws_others():
    rng = np.random.default_rng(9)
    sets = [rng.integers(0, 300, 60).tolist() for _ in range(300)]
    query = np.array(sets[0][:20] + list(range(1000, 1020)), np.uint64)

    def candidates(seed):
        index = numbered(*sets, options=EnsembleOptions(permutations=32, seed=seed))
        return index.search(
            query, 0.3, tuner=Tuner(permutations=32, recall=0.5), verify=False, route="bands"
        ).sets.tolist()

    assert candidates(1) == candidates(1)
    assert candidates(1) != candidates(2)


@pytest.mark.parametrize(
    "options",
    [
        *(
            {"permutations": 0},
            {"permutations": 64.0},
            {"max_rows": 0},
            {"max_rows": 65},
            {"partitions": 0},
        ),
        *({"seed": -1}, {"partitioning": "best"}, {"partitions": True}),
    ],
)
def test_options_that_are_not_allowed_are_refused(options):
    with pytest.raises(InputError, match=f"'{next(iter(options))}' must be"):
        EnsembleOptions(**options)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("verify", [True, False])
def test_excluded_sets_are_not_found(route, verify):
    index = numbered(TEN.tolist(), [*TEN.tolist(), 11], TEN.tolist(), [70, 71])
    for exclude in ([0, 3], [0, 3, 99]):
        answer = index.search(TEN, 0.9, exclude=np.array(exclude), route=route, verify=verify)
        assert sorted(answer.sets.tolist()) == [1, 2]
        assert answer.n_candidates == 2
    assert len(index.search(TEN, 0.9, exclude=np.arange(3), route=route)) == 0


def test_the_route_that_is_expected_to_be_sooner_done_is_taken(monkeypatch):
    sets = [list(range(100)) for _ in range(50)]
    index, query = numbered(*sets), np.arange(100, dtype=np.uint64)
    monkeypatch.setattr(ensemble_module, "lists_seconds", lambda n_tokens, n_entries: n_entries)
    monkeypatch.setattr(ensemble_module, "bands_seconds", lambda *known: 2000.0)
    # At 0.9 eleven lists of fifty sets must be read, at 0.5 fifty-one.
    assert index.search(query, 0.9).route == "lists"
    assert index.search(query, 0.5).route == "bands"


def test_where_bands_cannot_keep_the_recall_lists_are_read(monkeypatch):
    index = numbered([1], list(range(5000)))
    monkeypatch.setattr(ensemble_module, "lists_seconds", lambda n_tokens, n_entries: 1e9)
    answer = index.search(np.array([1], np.uint64), 1.0)
    assert (answer.sets.tolist(), answer.route) == ([0, 1], "lists")
    few = Tuner(permutations=64, recall=1e-9)
    assert index.search(np.array([1], np.uint64), 1.0, tuner=few).route == "bands"
    assert index.search(np.arange(4000, dtype=np.uint64), 1.0).route == "bands"


def test_more_costs_more():
    assert lists_seconds(10, 100) < lists_seconds(20, 100) < lists_seconds(20, 1000)
    usual = {
        "n_tokens": 100,
        "permutations": 256,
        "n_sets": 10**5,
        "n_entries": 10**5,
        "usual_size": 50.0,
    }
    for name, more in {
        "permutations": 512,
        "n_sets": 10**6,
        "n_entries": 10**6,
        "usual_size": 10.0,
    }.items():
        assert bands_seconds(**usual) < bands_seconds(**{**usual, name: more})


def test_few_entries_are_read_and_many_are_not():
    assert lists_seconds(20, 0) < bands_seconds(20, 256, 10, 0, 1.0)
    assert lists_seconds(1000, 10**8) > bands_seconds(1000, 256, 10**6, 10**8, 100.0)


def test_an_empty_lake_and_an_empty_query_cost_nothing_unheard_of():
    some = bands_seconds(0, 256, 2, 0, 1.0)
    assert bands_seconds(0, 256, 0, 0, 1.0) == pytest.approx(some, rel=1e-4)
    assert lists_seconds(0, 0) > 0
