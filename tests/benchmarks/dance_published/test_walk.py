import math
from collections import Counter
from dataclasses import replace
from functools import cache, partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.dance_published.graphs import landmarks_of, minimal_graphs
from benchmarks.dance_published.walk import (
    SAME,
    JoinChoices,
    KnownPlans,
    PublishedOptions,
    best_plan,
    closed_tree,
    walk,
    walk_random,
)
from pexeso.acquisition.graph import JoinEdge, JoinGraph
from pexeso.acquisition.plans import AcquisitionRequest, PlanMeasures, Terminal
from tests.acquisition.exhaustive import all_plans, is_closed, is_within, measured
from tests.acquisition.markets import markets, requests
from tests.acquisition.motivating_graphs import RULES, age_and_disease, graph_of
from tests.acquisition.weighted_graphs import join_set, weighted_graph

quick = settings(derandomize=True, deadline=None, max_examples=25)
WALKS = PublishedOptions(always_walk=True, n_steps=2000)
BOTH, GENDER, RACE = ("Gender", "Race"), ("Gender",), ("Race",)
CORRELATIONS = {GENDER: 0.144484, RACE: 0.333333, BOTH: 0.333333}


@cache
def two_tables(rules: bool = True) -> JoinGraph:
    return graph_of("D3", "D4", dependencies={"D3": RULES} if rules else {})


def choices_of(graph: JoinGraph, request: AcquisitionRequest, measure=None, **options):
    minimal = minimal_graphs(graph, request, landmarks_of(graph))
    known = KnownPlans(graph, request, measure or partial(measured, graph, request), **options)
    return [JoinChoices(minimal_graph, known) for minimal_graph in minimal]


def two_table_choices(**bounds) -> JoinChoices:
    graph = two_tables()
    (choices,) = choices_of(graph, age_and_disease(graph, "D4", "D3", **bounds))
    return choices


def joined_by(plan) -> tuple[str, ...] | None:
    return plan and plan.tree.joins[0].join_set.left


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({"budget": 10}, RACE),
        ({"budget": 5}, GENDER),
        ({"budget": 4}, None),
        ({"budget": 10, "min_quality": 0.68}, GENDER),
        ({"budget": 7}, RACE),
        ({"budget": 6}, RACE),
        ({"min_quality": 0.71}, None),
        ({"max_informativeness": 0}, RACE),
        ({"budget": 6.5, "min_quality": 2 / 3}, RACE),
    ],
)
def test_worked_example_of_two_tables(bounds, expected):
    assert joined_by(best_plan(two_table_choices(**bounds), PublishedOptions())) == expected
    assert joined_by(best_plan(two_table_choices(**bounds), WALKS)) == expected


def test_a_long_walk_is_at_each_plan_in_proportion_to_its_correlation():
    choices = two_table_choices()
    random = walk_random(7, choices, 0)
    visits = Counter(joined_by(plan) for plan in walk(choices, (0,), 200_000, random))
    law = {GENDER: 0.178122, RACE: 0.410939, BOTH: 0.410939}
    assert {name: n / 200_000 for name, n in visits.items()} == pytest.approx(law, abs=0.01)


def test_a_walk_within_the_bounds_never_leaves_them():
    choices = two_table_choices(budget=7)
    visits = Counter(
        joined_by(plan) for plan in walk(choices, (0,), 20_000, walk_random(1, choices, 0))
    )
    total = CORRELATIONS[GENDER] + CORRELATIONS[RACE]
    assert set(visits) == {GENDER, RACE}
    assert visits[RACE] / 20_000 == pytest.approx(CORRELATIONS[RACE] / total, abs=0.02)


def test_a_walk_that_starts_outside_goes_freely_until_it_is_within():
    choices = two_table_choices(budget=5)
    start = choices.sizes[0] - 1
    assert not choices.plan((start,)).is_within
    for seed in range(10):
        met = [
            joined_by(plan) for plan in walk(choices, (start,), 50, walk_random(seed, choices, 0))
        ]
        inside = met.index(GENDER)
        assert set(met[inside:]) == {GENDER}
        assert GENDER not in met[:inside]


def test_further_walks_reach_plans_that_no_single_step_leads_to():
    ends = weighted_graph({("a", "b"): 0.5, ("b", "c"): 0.5}, dict.fromkeys("abc", "m"))
    sets = [join_set("k", 0.1), join_set("m", 0.2)]
    graph = JoinGraph(ends.tables, {pair: JoinEdge.of(*pair, sets) for pair in ends.edges})
    request = AcquisitionRequest(
        (Terminal.of(graph, "a"),), (Terminal.of(graph, "c"),), min_quality=0.5
    )

    def measure(tree) -> PlanMeasures:
        columns = [join.join_set.left[0] for join in tree.joins]
        quality = float(columns[0] == columns[1])
        return PlanMeasures(0.0, tree.weight, quality, 0.9 if columns[0] == "m" else 0.1, 1)

    (choices,) = choices_of(graph, request, measure)
    assert choices.n_choices == 4
    one = best_plan(choices, replace(WALKS, n_walks=1, n_steps=500))
    assert one.measures.correlation == 0.1
    several = best_plan(choices, replace(WALKS, n_walks=12, n_steps=500))
    assert several.measures.correlation == 0.9


@quick
@given(st.data())
def test_all_plans_on_a_minimal_graph_are_tried_and_walks_find_no_better(data):
    graph = data.draw(markets(max_tables=3))
    request = data.draw(requests(graph))
    possible = all_plans(graph, replace(request, max_tables=3))
    measure = cache(partial(measured, graph, request))
    for choices in choices_of(graph, request, measure)[:1]:
        minimal = choices.minimal
        both = [
            (tree, measure(tree))
            for tree in possible
            if (tree.have, tree.want) == (minimal.have, minimal.want)
            and tuple((join.left, join.right) for join in tree.joins) == minimal.pairs
        ]
        on_it = [(tree, measures) for tree, measures in both if is_within(request, measures)]
        best = best_plan(choices, PublishedOptions())
        assert (best is None) == (not on_it)
        walked = best_plan(choices, PublishedOptions(always_walk=True, n_steps=20))
        for plan in (best, walked):
            if plan is not None:
                assert plan.tree.signature in {tree.signature for tree, _ in on_it}
        if best is None:
            continue
        highest = max(measures.correlation for _, measures in on_it)
        assert best.measures.correlation == pytest.approx(highest, abs=SAME)
        cheapest = min(
            measures.price for _, measures in on_it if highest - measures.correlation <= SAME
        )
        assert best.price == pytest.approx(cheapest)
        assert walked is None or not walked.is_better(best)


@quick
@given(st.data())
def test_plans_join_by_all_that_they_share_and_closing_again_changes_nothing(data):
    graph = data.draw(markets())
    request = data.draw(requests(graph))
    same = PlanMeasures(1.0, 1.0, 1.0, 1.0, 1)
    for choices in choices_of(graph, request, measure=lambda tree: same):
        lightest = choices.minimal.weight
        for plan in walk(choices, (0,) * len(choices.sizes), 30, walk_random(0, choices, 0)):
            assert is_closed(plan.tree, graph)
            assert closed_tree(plan.tree, graph).signature == plan.tree.signature
            assert plan.tree.have == choices.minimal.have
            assert plan.informativeness >= lightest - 1e-12 * math.ceil(lightest)
