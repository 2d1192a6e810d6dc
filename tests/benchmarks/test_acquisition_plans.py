"""Searches for plans are measured on small markets, and held against plans measured one by one."""

import json

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from benchmarks import report
from benchmarks.acquisition import command
from benchmarks.acquisition import plan_figures as resampling
from benchmarks.acquisition.market import About, Query, determined, market_of
from benchmarks.acquisition.plan_figures import (
    Setting,
    measured_plans,
    measures_of,
    price_range,
    resampled,
)
from benchmarks.cli import main
from pexeso.acquisition.evaluation import Evaluator
from pexeso.acquisition.plans import TreeSearch


def made_market(n_rows=3000):
    """Return people who live in towns of states; towns also lie by rivers, which tell nothing."""
    rng = np.random.default_rng(0)
    town = rng.integers(1500, size=n_rows)
    state_of_town = rng.integers(12, size=1500)
    mood = state_of_town[town] + (rng.random(n_rows) < 0.2)
    tables = {
        "people": pa.table({"town": town, "mood": mood % 3}),
        "towns": pa.table(
            {
                "town": np.arange(1500),
                "state": state_of_town,
                "river": rng.integers(4, size=1500),
            }
        ),
        "states": pa.table(
            {"state": np.arange(12), "law": np.arange(12) % 3, "river": np.arange(12) % 5 % 4}
        ),
        "rivers": pa.table({"river": np.arange(4), "length": np.arange(4.0)}),
    }
    about = About(
        "little",
        ("length",),
        {"towns": determined(("state",), "river")},
        (),
        (
            Query("short", ("mood",), ("state",), 2),
            Query("long", ("mood",), ("law",), 3),
        ),
    )
    market = market_of(about, tables.items(), {"seed": 0})
    market.prices["rivers", "length"] = 400.0  # so that plans cost a tenth of the market
    return market


@pytest.fixture(scope="module")
def market():
    return made_market()


@pytest.fixture(scope="module")
def setting(market):
    return Setting.of(market, repeats=1)


@pytest.fixture(scope="module")
def result(market):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resampling, "THINNED_FROM", 500)
        patch.setattr(resampling, "RHOS", (0.5, 1.0))
        return measured_plans(market, repeats=1)


def test_all_searches_find_the_best_of_plans_measured_one_by_one(setting, result):
    for query in setting.market.about.queries:
        request = setting.request(query)
        evaluator = Evaluator(setting.graph, setting.coded)
        measured = [measures_of(evaluator, tree) for tree in TreeSearch(setting.graph, request)]
        best = max(measures.correlation for measures in measured if measures.n_rows)
        outcome = result["queries"][query.name]
        assert outcome["exact"]["plan"]["correlation"] == pytest.approx(best, abs=1e-12)
        assert outcome["exact"]["proved"]
        assert outcome["front"]["all_proved"]
        assert outcome["all_plans"]["difference"] == pytest.approx(0, abs=1e-12)
        assert outcome["all_plans"]["measured"] == len(measured) == outcome["prices"]["plans"]
        assert outcome["published"]["difference"] >= -1e-12
        assert outcome["unbounded"]["plan"]["tables"]


def test_budgets_bound_prices(setting, result):
    for query in result["queries"].values():
        (row,) = query["budgets"]
        assert row["exact"]["plan"]["price"] <= row["budget"]
        assert row["exact"]["plan"]["correlation"] <= query["exact"]["plan"]["correlation"]
    query = setting.market.about.queries[1]
    row = resampling._budget(setting, query, price_range(setting, query), 0.01)
    assert not row["affordable"]
    assert "exact" not in row


def test_resampled_joins_come_to_the_whole_one(market, setting, result, monkeypatch):
    query = market.about.queries[1]
    outcome = result["queries"]["long"]["resampling"]
    request = setting.request(query)
    evaluator = Evaluator(setting.graph, setting.coded)
    plans = [tree for tree in TreeSearch(setting.graph, request) if len(tree.tables) > 2]
    largest = max(plans, key=evaluator.n_rows)
    assert outcome["rows"] == evaluator.n_rows(largest)
    assert [row["rho"] for row in outcome["kept"]] == [0.5, 1.0]
    assert outcome["kept"][0]["difference"] > 0
    assert outcome["kept"][1]["difference"] == 0
    whole = measures_of(evaluator, largest).correlation
    assert outcome["kept"][1]["correlation"] == pytest.approx(whole, abs=1e-9)
    assert result["queries"]["short"]["resampling"] is None
    monkeypatch.setattr(resampling, "MOST_ROWS", 10)
    assert resampled(setting, query) is None


def test_the_command_measures_markets(market, monkeypatch, tmp_path):
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(command, "market_of", lambda *_: market)
    monkeypatch.setattr(command.tpch, "tpch_tables", lambda *_, **__: ())
    monkeypatch.setattr(resampling, "RHOS", (1.0,))
    run = CliRunner().invoke(main, ["acquisition", "--repeats", "1", "--write", "--json"])
    assert run.exit_code == 0, run.output
    document = json.loads(run.output)
    assert json.loads((tmp_path / "acquisition" / "plans.json").read_text()) == document
