import math

import pytest
from long_runs import long_but

from pexeso.acquisition.exact import Limits, _Front, find_plans
from tests.acquisition.exhaustive import plans_within
from tests.acquisition.random_markets import random_market


def values(measures):
    return measures.price, measures.informativeness, measures.quality, measures.correlation


@pytest.mark.parametrize("natural", [True, False])
@pytest.mark.parametrize("seed", long_but(range(8), range(60)))
def test_the_front_is_that_of_all_plans(seed, natural):
    graph, request = random_market(seed, natural=natural)
    within = [candidate for candidate in plans_within(graph, request) if candidate[1].n_rows]
    front = _Front(is_whole=True)
    for candidate in within:
        front.add(*candidate)
    expected = [measures for _, measures in front.ranked()]
    outcome = find_plans(graph, request)
    assert [
        (plan.measures.price, plan.measures.quality, plan.measures.correlation)
        for plan in outcome.plans
    ] == [
        pytest.approx((measures.price, measures.quality, measures.correlation), abs=1e-9)
        for measures in expected
    ]
    of_tree = {tree.signature: measures for tree, measures in within}
    for plan in outcome.plans:
        assert values(plan.measures) == pytest.approx(
            values(of_tree[plan.tree.signature]), abs=1e-9
        )
        assert plan.measures.n_rows == of_tree[plan.tree.signature].n_rows
        assert plan.optimal
        assert plan.gap == 0
    if not within:
        assert outcome.reason
    first = find_plans(graph, request, limits=Limits(front=False))
    best = max((measures.correlation for _, measures in within), default=-math.inf)
    assert [plan.measures.correlation for plan in first.plans] == pytest.approx(
        [best] if within else [], abs=1e-9
    )
