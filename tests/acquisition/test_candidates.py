import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.acquisition.plan_figures import measures_of
from benchmarks.dance_published.natural import natural_graph
from pexeso.acquisition import paths
from pexeso.acquisition.candidates import rank_candidates
from pexeso.acquisition.evaluation import Evaluator
from pexeso.acquisition.exact import Limits
from pexeso.acquisition.graph import JoinGraph
from pexeso.acquisition.plans import Terminal
from pexeso.acquisition.tables import CodedColumns
from tests.acquisition.oracle import market_table
from tests.acquisition.random_markets import random_market

N_PLACES, N_STATES = 200, 20


def market(numeric: bool = False):
    draw = np.random.default_rng(0)
    smog = np.arange(N_STATES) % 2
    state = draw.integers(0, N_STATES, N_PLACES)
    place = draw.integers(0, N_PLACES, 2000)
    sick = np.where(draw.random(2000) < 0.9, smog[state[place]], draw.integers(0, 2, 2000))
    amount = sick * 100 + draw.integers(0, 10, 2000)
    tables = [
        market_table(
            "people",
            pa.table({"place": place, "sick": amount if numeric else sick}),
            owned=True,
            numeric=["sick"] if numeric else [],
        ),
        market_table(
            "places",
            pa.table(
                {
                    "place": np.arange(N_PLACES),
                    "state": state,
                    "mayor": [f"mayor {number}" for number in range(N_PLACES)],
                    "colour": draw.integers(0, 3, N_PLACES),
                }
            ),
        ),
        market_table("states", pa.table({"state": np.arange(N_STATES), "smog": smog})),
        market_table("moons", pa.table({"moon": ["new", "full"]})),
        # Several rows of a key: rows would multiply.
        market_table("visits", pa.table({"place": place[:600], "visitor": sick[:600]})),
    ]
    coded = CodedColumns()
    return natural_graph(tables, coded), coded


def ranked(graph, coded, **options):
    have = [Terminal.of(graph, "sick", "people")]
    return rank_candidates(graph, have, coded=coded, **options)


@pytest.mark.parametrize("numeric", [False, True])
def test_what_tells_most_comes_first_and_names_of_keys_tell_nothing(numeric):
    graph, coded = market(numeric)
    ranking = ranked(graph, coded)
    columns = [plan.tree.want[0] for plan in ranking.plans]
    assert set(columns[:2]) == {("places", "state"), ("states", "smog")}  # a state has one smog
    smog = ranking.plans[columns.index(("states", "smog"))]
    assert smog.tree.tables == ("people", "places", "states")
    assert all(plan.optimal for plan in ranking.plans)
    assert ("places", "mayor") not in columns
    assert ("places", "place") not in columns
    assert not any(table in ("moons", "visits", "people") for table, _ in columns)
    gains = [plan.measures.correlation - plan.chance for plan in ranking.plans]
    assert gains == sorted(gains, reverse=True)
    assert gains[1] > 0
    assert all(gain < gains[1] / 10 for gain in gains[2:])


def test_rows_may_multiply_where_that_is_asked_for():
    graph, coded = market()
    ranking = ranked(graph, coded, bounds={"max_fan_out": 1000})
    assert ("visits", "visitor") in [plan.tree.want[0] for plan in ranking.plans]


def test_bounds_and_limits():
    graph, coded = market()
    near = ranked(graph, coded, bounds={"max_tables": 2})
    assert [plan.tree.want for plan in near.plans[:1]] == [(("places", "state"),)]
    free = ranked(graph, coded, bounds={"budget": 0})
    assert not free.plans
    assert "columns within reach explains more than chance" in free.reason
    late = ranked(graph, coded, limits=Limits(max_seconds=0))
    assert late.stopped == "time"
    assert not late.plans


def test_no_table_within_reach():
    graph, coded = market()
    alone = ranked(JoinGraph.of([graph.tables["people"]]), coded)
    assert alone.reason == "No joins lead from your table to another within the bounds."


def test_the_same_seed_gives_the_same_answer():
    graph, coded = market()
    one, other = (ranked(graph, coded, seed=5) for _ in range(2))
    assert one.plans == other.plans


@pytest.mark.parametrize("max_entries", [2, paths.MAX_ENTRIES])
@pytest.mark.parametrize("natural", [True, False])
def test_measures_are_those_of_the_evaluator_and_of_any_blocks(natural, max_entries, monkeypatch):
    monkeypatch.setattr(paths, "MAX_ENTRIES", max_entries)
    n_plans = 0
    for seed in range(60, 75):
        graph, request = random_market(seed, natural=natural)
        start = request.terminals[0].tables[0]
        have = [Terminal(name, (start,)) for name in graph.tables[start].columns[:2]]
        bounds = {"max_fan_out": math.inf, "max_tables": 3}
        for plan in rank_candidates(graph, have, bounds).plans:
            expected = measures_of(Evaluator(graph), plan.tree)
            assert plan.measures.correlation == pytest.approx(expected.correlation, abs=1e-12)
            assert replace(plan.measures, correlation=0) == replace(expected, correlation=0)
            n_plans += 1
    assert n_plans > 5


def test_little_memory_gives_the_same_answer(monkeypatch):
    graph, coded = market()
    expected = ranked(graph, coded).plans
    monkeypatch.setattr(paths, "MAX_BYTES", 1)
    assert ranked(graph, coded).plans == expected
