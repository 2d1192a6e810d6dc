import numpy as np
import pyarrow as pa
import pytest

from benchmarks.acquisition.plan_figures import measures_of
from benchmarks.dance_published.natural import natural_graph
from pexeso.acquisition.evaluation import Evaluator
from pexeso.acquisition.exact import find_plans
from pexeso.acquisition.graph import JoinGraph, edges_of
from pexeso.acquisition.plans import AcquisitionRequest, Terminal
from pexeso.acquisition.quality import Dependency
from pexeso.acquisition.samples import SampledPlans, with_intervals
from pexeso.acquisition.tables import CodedColumns
from tests.acquisition.oracle import market_table


def market(natural: bool, n_keys: int = 4000, skewed: bool = False):
    draw = np.random.default_rng(3)
    key = (
        np.minimum(draw.geometric(3 / n_keys, 3 * n_keys), n_keys) - 1
        if skewed
        else (draw.integers(0, n_keys, 3 * n_keys))
    )
    group = np.arange(n_keys) % 3
    kind = np.where(draw.random(len(key)) < 0.7, group[key], draw.integers(0, 3, len(key)))
    people = market_table("people", pa.table({"zip": key, "kind": kind}), owned=True)
    dirty = np.where(draw.random(n_keys) < 0.2, 9, group)
    name = "zip" if natural else "code"
    places = market_table(
        "places",
        pa.table({name: np.arange(n_keys), "group": dirty, "area": group}),
        dependencies=[Dependency(("area",), "group")],
    )
    coded = CodedColumns()
    if natural:
        graph = natural_graph([people, places], coded)
    else:
        tables = {"people": people, "places": places}
        pairs = {("people", "places"): [("zip", "code")]}
        graph = JoinGraph.of(tables.values(), edges_of(tables, pairs, coded))
    have = Terminal.of(graph, "kind", "people")
    want = (Terminal.of(graph, "group", "places"), Terminal.of(graph, "area", "places"))
    return graph, AcquisitionRequest((have,), want), coded


@pytest.mark.parametrize(("natural", "skewed"), [(True, False), (False, False), (True, True)])
def test_intervals_hold_the_measures_of_whole_tables(natural, skewed):
    graph, request, coded = market(natural, skewed=skewed)
    (plan,) = find_plans(graph, request, coded).plans
    held = 0
    for seed in range(20):
        samples = SampledPlans(graph, 0.25, seed)
        estimates = samples.estimates(plan.tree)
        evaluator = Evaluator(graph, coded, rows_of=samples.rows_of)
        measured = measures_of(evaluator, plan.tree)
        assert estimates.correlation.plug_in == pytest.approx(measured.correlation, abs=1e-9)
        assert estimates.quality.plug_in == pytest.approx(measured.quality, abs=1e-9)
        assert estimates.n_rows == measured.n_rows
        assert estimates.n_rows / samples.share_of_rows(plan.tree) == pytest.approx(12_000, rel=0.2)
        assert estimates.correlation.reliable
        held += estimates.correlation.low <= plan.measures.correlation <= estimates.correlation.high
        held += estimates.quality.low <= plan.measures.quality <= estimates.quality.high
    assert held >= 35  # of 40, each with a probability of 95 % or more


def test_all_rows_are_the_measures_themselves():
    graph, request, coded = market(natural=True)
    (plan,) = find_plans(graph, request, coded).plans
    estimates = SampledPlans(graph, 1.0).estimates(plan.tree)
    for estimate, value in (
        (estimates.correlation, plan.measures.correlation),
        (estimates.quality, plan.measures.quality),
    ):
        assert estimate.low == estimate.high == pytest.approx(value, abs=1e-9)


def test_joins_with_few_keys_are_not_thinned():
    graph, request, coded = market(natural=True, n_keys=500)
    (plan,) = find_plans(graph, request, coded).plans
    samples = SampledPlans(graph, 0.1)
    assert samples.rows_of(plan.tree, "people") is None
    assert samples.share_of_rows(plan.tree) == 1


def test_plans_of_samples_are_not_proved():
    graph, request, coded = market(natural=True)
    for rate, is_proved in ((0.25, False), (1.0, True)):
        samples = SampledPlans(graph, rate)
        evaluator = Evaluator(graph, coded, rows_of=samples.rows_of)
        outcome = find_plans(graph, request, coded, evaluator=evaluator)
        (plan,) = with_intervals(outcome, samples).plans
        assert plan.optimal == is_proved
        assert plan.estimates.correlation.plug_in == pytest.approx(plan.measures.correlation)
