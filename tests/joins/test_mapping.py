"""The mapping of values, and one-to-one assignment against every possible one."""

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

from pexeso.joins import mapping as assignment
from pexeso.joins.mapping import PairColumns, assign, make_mapping, steps_of
from pexeso.results.matches import Pair


def mapping_of(links, values="nearest", texts=None):
    """Return a mapping of query values and lake values that are letters.

    Each query value has one text, or those given.
    """
    texts = texts or {query: [query.upper()] for query, _ in links}
    known = sorted(texts)
    of_text = [(text, known.index(query)) for query in known for text in texts[query]]
    pairs = [
        Pair(text, key.title(), distance, key, "spelling")
        for (query, key), distance in links.items()
        for text in texts[query]
    ]
    names, places = (
        [text for text, _ in of_text],
        np.array([place for _, place in of_text], dtype=np.int64),
    )
    return make_mapping(
        pa.array(names, pa.string()),
        places,
        pa.array(known, pa.string()),
        PairColumns.of(pairs),
        values,
    )


def chosen(mapping):
    names = [
        mapping.query_names.take(pa.array(mapping.query)).to_pylist(),
        mapping.lake_keys.take(pa.array(mapping.lake)).to_pylist(),
    ]
    return [
        pair
        for pair, is_chosen in zip(zip(*names, strict=True), mapping.chosen, strict=True)
        if is_chosen
    ]


LINKS = {("a", "x"): 0.2, ("a", "y"): 0.1, ("b", "y"): 0.3}


@pytest.mark.parametrize(
    ("links", "how", "expected"),
    [
        pytest.param(LINKS, (), [("A", "y"), ("B", "y")], id="nearest, which may be taken twice"),
        pytest.param(LINKS, ("all",), [("A", "y"), ("A", "x"), ("B", "y")], id="all"),
        pytest.param(LINKS, ("one-to-one",), [("A", "x"), ("B", "y")], id="second best"),
        pytest.param({("b", "b"): 0.0, ("b", "a"): 0.0}, (), [("B", "b")], id="same text"),
        pytest.param({("b", "y"): 0.1, ("b", "x"): 0.1}, (), [("B", "x")], id="code point"),
        pytest.param({("b", "é"): 0.1, ("b", "z"): 0.1}, (), [("B", "z")], id="beyond ASCII"),
        # Without the rule for the same text, a-b and c-a would be two matches.
        pytest.param(
            {("a", "a"): 0.0, ("a", "b"): 0.1, ("c", "a"): 0.1},
            ("one-to-one",),
            [("A", "a")],
            id="never parts the same text",
        ),
    ],
)
def test_values_are_chosen(links, how, expected):
    assert chosen(mapping_of(links, *how)) == expected


@settings(max_examples=50)
@given(
    st.dictionaries(
        st.tuples(st.sampled_from("abc"), st.sampled_from("abwxyz")),
        st.sampled_from([0.0, 0.1, 0.5]),
        max_size=12,
    ),
    st.permutations("abwxyz"),
    st.integers(1, 6),
)
def test_of_equally_near_values_the_same_text_wins_then_the_first_row(links, rows, n_rows):
    links = {pair: 0.0 if pair[0] == pair[1] else distance for pair, distance in links.items()}
    rows = rows[:n_rows]  # the others are gone from the table
    place = {key: rows.index(key) if key in rows else len(rows) for key in "abwxyz"}
    best = {}
    for (query, key), distance in links.items():
        rank = (distance, query != key, place[key], key)
        best[query] = min(best.get(query, rank), rank)
    mapping = mapping_of(links)
    first = np.array([place[key] for key in mapping.lake_keys.to_pylist()], np.int64)
    expected = [(query.upper(), best[query][3]) for query in sorted(best)]
    assert chosen(mapping.in_order(first, "nearest")) == expected


def test_a_one_to_one_join_takes_the_first_rows_of_equally_good_ones():
    mapping = mapping_of({("a", key): 0.1 for key in "xyz"}, "one-to-one")
    assert chosen(mapping) == [("A", "x")]
    assert chosen(mapping.in_order(np.array([2, 1, 0]), "one-to-one")) == [("A", "z")]


def test_texts_of_one_value_are_one_value():
    texts = {"a": ["A", " a "], "b": ["B"]}
    mapping = mapping_of({("a", "x"): 0.1, ("b", "x"): 0.2}, "one-to-one", texts)
    assert chosen(mapping) == [("A", "x")]
    assert mapping.query_of_text.tolist() == [0, 0, 1]
    assert len(mapping.query) == 2


@pytest.mark.parametrize("values", ["nearest", "one-to-one", "all"])
def test_a_query_without_a_match_gives_an_empty_mapping(values):
    mapping = make_mapping(
        pa.array(["A"]), np.array([0]), pa.array(["a"]), PairColumns.of([]), values
    )
    assert (len(mapping.lake_keys), mapping.chosen.tolist(), mapping.nearest.tolist()) == (
        0,
        [],
        [],
    )
    empty = make_mapping(
        pa.array([], pa.string()),
        np.array([], dtype=np.int64),
        pa.array([], pa.string()),
        PairColumns.of([]),
        values,
    )
    assert len(empty.query_names) == 0


ends = st.tuples(st.sampled_from("abcd"), st.sampled_from("abwxyz"))


@settings(max_examples=50)
@given(
    st.dictionaries(ends, st.sampled_from([0.0, 0.1, 0.5]), max_size=12),
    st.randoms(use_true_random=False),
)
def test_the_order_of_pairs_does_not_matter(links, random):
    mixed = list(links)
    random.shuffle(mixed)
    texts = {query: [query.upper()] for query, _ in links}
    for values in ("nearest", "one-to-one", "all"):
        again = mapping_of({pair: links[pair] for pair in mixed}, values, texts)
        assert chosen(again) == chosen(mapping_of(links, values, texts))


def best_by_trying_all(links):
    """Return the largest number of links without a common end, and their least total distance."""
    queries = sorted({query for query, _ in links})
    best = (0, 0.0)
    for partners in product(
        *[[None, *(lake for query, lake in links if query == own_query)] for own_query in queries]
    ):
        chosen = [
            (query, lake) for query, lake in zip(queries, partners, strict=True) if lake is not None
        ]
        if len({lake for _, lake in chosen}) == len(chosen):
            total = sum(links[pair] for pair in chosen)
            best = min(best, (-len(chosen), total))
    return -best[0], best[1]


def run(links):
    pairs = list(links)
    query, lake = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (0, 1))
    chosen = assign(query, lake, np.array([links[pair] for pair in pairs], dtype=np.float64))
    return [pair for pair, is_chosen in zip(pairs, chosen, strict=True) if is_chosen]


def check(links):
    chosen = run(links)
    assert len({query for query, _ in chosen}) == len({lake for _, lake in chosen}) == len(chosen)
    n_best, min_total = best_by_trying_all(links)
    assert len(chosen) == n_best
    assert sum(links[pair] for pair in chosen) == pytest.approx(min_total, abs=1e-9)


renumbered_ends = st.tuples(st.integers(0, 4), st.integers(0, 4))
distances = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(0, 1))


@settings(max_examples=examples(50))
@given(st.dictionaries(renumbered_ends, distances, max_size=14))
def test_as_many_links_as_possible_and_of_these_the_least_total(links):
    check(links)


@settings(max_examples=examples(50))
@given(
    st.dictionaries(renumbered_ends, st.sampled_from([0.0, 0.5]), max_size=14),
    st.randoms(use_true_random=False),
)
def test_the_order_in_which_links_come_does_not_matter(links, random):
    mixed = list(links)
    random.shuffle(mixed)
    assert sorted(run({pair: links[pair] for pair in mixed})) == sorted(run(links))


@settings(max_examples=examples(50))
@given(st.dictionaries(renumbered_ends, distances, max_size=14))
def test_components_in_parcels_of_their_own_give_the_same(links):
    together = run(links)
    before = assignment.CHUNK_NODES
    assignment.CHUNK_NODES = 1
    try:
        assert run(links) == together
    finally:
        assignment.CHUNK_NODES = before


def test_a_second_match_is_worth_more_than_any_distance():
    # 0-0 alone would cost nothing; both values have a partner at a total of 2.
    assert run({(0, 0): 0.0, (0, 1): 1.0, (1, 0): 1.0}) == [(0, 1), (1, 0)]


def test_equal_totals_are_decided_by_the_order_of_values():
    assert run({(0, 1): 0.5, (0, 0): 0.5}) == [(0, 0)]
    assert run({(1, 0): 0.5, (0, 0): 0.5}) == [(0, 0)]


def test_no_links_no_choice():
    assert run({}) == []


def test_many_components_and_a_large_one_are_solved_together():
    rng = np.random.default_rng(3)
    # a component of two by two each: crossed links, 0.1 in the right choice, 0.2 in the wrong one
    n_small = 400
    blocks = np.repeat(np.arange(n_small) * 2, 4)
    query, lake = blocks + np.tile([0, 0, 1, 1], n_small), blocks + np.tile([0, 1, 0, 1], n_small)
    distance = np.tile([0.2, 0.1, 0.1, 0.2], n_small)
    n_large = 60
    large = 2 * n_small + np.arange(n_large)
    query = np.concatenate([query, np.repeat(large, n_large)])
    lake = np.concatenate([lake, np.tile(large, n_large)])
    dense = rng.random((n_large, n_large))
    distance = np.concatenate([distance, dense.ravel()])
    chosen = assign(query, lake, distance)
    assert chosen.sum() == 2 * n_small + n_large
    assert distance[chosen][: 2 * n_small].tolist() == [0.1] * (2 * n_small)
    from scipy.optimize import linear_sum_assignment

    assert distance[chosen][2 * n_small :].sum() == pytest.approx(
        dense[linear_sum_assignment(dense)].sum(), abs=1e-9
    )


@pytest.mark.parametrize("n_queries", [1, 2, 1000, 10**6, 10**9])
def test_costs_are_whole_numbers_that_float64_holds(n_queries):
    nobody = (n_queries + 1) * steps_of(n_queries)
    assert 2 * (nobody + 1) <= 2**53
    assert nobody > n_queries * steps_of(n_queries)
