"""Searches with the join graph of the lake in a file: made, used, brought up to date, refused."""

import pandas as pd
import pytest

from pexeso.acquisition_search import market_search
from pexeso.acquisition_search.graphs.stored_graph import load_graph
from pexeso.acquisition_search.graphs.table_pairs import TablePairs
from pexeso.acquisition_search.searches import AcquisitionSearches
from pexeso.errors import InputError, OutputError
from tests.acquisition_search.small_market import LAKE, PEOPLE, ZIPS, small_index

CASES = [("sick", "smog"), ("sick", "smog_level"), ("sick", ["state", "flag"]), ("sick", None)]


@pytest.fixture
def searches(tmp_path):
    return AcquisitionSearches(small_index(tmp_path / "first"))


@pytest.fixture
def graph(tmp_path):
    return tmp_path / "lake.graph"


@pytest.mark.parametrize(("columns", "want"), CASES)
def test_plans_are_those_without_a_file(searches, graph, columns, want):
    without = searches.acquire(PEOPLE, want, columns=columns)
    first = searches.acquire(PEOPLE, want, columns=columns, graph=graph)
    again = searches.acquire(PEOPLE, want, columns=columns, graph=str(graph))
    assert first.plans == again.plans == without.plans
    assert first.stats["notes"] == [
        f"The join graph of the lake, 4 tables with 2 joins, was made in '{graph}'."
    ]
    assert again.stats["notes"] == []


def test_a_file_that_is_up_to_date_is_only_read(searches, graph, monkeypatch):
    expected = searches.acquire(PEOPLE, "smog", columns="sick", graph=graph)
    written = graph.read_bytes()

    def refuse(*_, **__):
        raise AssertionError("the file has it")

    monkeypatch.setattr(market_search, "updated_graph", refuse)
    monkeypatch.setattr(market_search, "save_graph", refuse)
    monkeypatch.setattr(TablePairs, "of_tables", refuse)  # joins are not followed outwards
    again = searches.acquire(PEOPLE, "smog", columns="sick", graph=graph)
    assert again.plans == expected.plans
    assert graph.read_bytes() == written


def test_a_stale_file_is_brought_up_to_date(searches, graph, tmp_path):
    before = searches.acquire(PEOPLE, "smog", columns="sick", graph=graph)
    lake = {**LAKE, "alone.csv": {"code": ZIPS, "moon": ["new", "full", "full", "full"]}}
    del lake["direct.csv"]
    changed = AcquisitionSearches(small_index(tmp_path / "second", lake))
    result = changed.acquire(PEOPLE, "moon", columns="sick", graph=graph)
    assert result.stats["notes"] == [
        f"The join graph of the lake, 3 tables with 2 joins, was brought up to date in '{graph}'."
    ]
    assert result.plans == changed.acquire(PEOPLE, "moon", columns="sick").plans
    assert result[0].share == pytest.approx(1)
    assert "direct.csv" not in load_graph(graph).fingerprints
    assert before.plans == changed.acquire(PEOPLE, "smog", columns="sick", graph=graph).plans


def test_what_is_no_graph_is_refused_and_stays(searches, graph, tmp_path):
    pd.DataFrame({"a": [1]}).to_parquet(graph)
    written = graph.read_bytes()
    with pytest.raises(InputError, match=r"not a join graph that .*\. Choose another name"):
        searches.acquire(PEOPLE, "smog", columns="sick", graph=graph)
    assert graph.read_bytes() == written
    with pytest.raises(OutputError, match="cannot be written"):
        searches.acquire(PEOPLE, "smog", columns="sick", graph=tmp_path / "none" / "lake.graph")


def test_exclusions_hold_with_a_file(searches, graph):
    options = {"columns": "sick", "graph": graph}
    searches.acquire(PEOPLE, "smog_level", **options)
    plans = searches.acquire(
        PEOPLE, "smog_level", exclude_joins=[("direct.csv", "yours")], **options
    )
    assert [len(plan.path) for plan in plans] == [2]
    none = searches.acquire(
        PEOPLE, "smog_level", exclude_tables=["zips.csv"],
        exclude_joins=[("direct.csv", "yours")], **options,
    )  # fmt: skip
    assert none.plans == ()
