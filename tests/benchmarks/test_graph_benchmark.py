"""The benchmark of join graphs: both ways agree, and a wrong answer ends it."""

import json

import click
import pytest
from click.testing import CliRunner

import pexeso
from benchmarks import graph, report
from benchmarks.cli import main

pytestmark = pytest.mark.spark

CITIES = ["Oslo", "Rome", "Madrid", "Vienna", "Lisbon", "Dublin", "Helsinki", "Athens"]


@pytest.fixture(scope="module")
def index(spark, tmp_path_factory):
    """Index three tables of cities that share some of their values."""
    lake = tmp_path_factory.mktemp("cities")
    for number in range(3):
        rows = "\n".join(["city", *CITIES[number : number + 6]])
        (lake / f"t{number}.csv").write_text(f"{rows}\n")
    path = lake.parent / "cities.pexeso"
    return pexeso.build_index(lake, path, model="hashing", dimensions=64, parts=["overlap"])


def test_both_ways_are_measured_and_agree(index, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(graph, "pin_threads", lambda n: None)  # of this process
    done = CliRunner().invoke(main, ["graph", str(index.path), "--queries", "2", "--name", "small"])
    assert done.exit_code == 0, done.output
    kept = json.loads((tmp_path / "graph" / "small.json").read_text())
    assert kept["methods"].keys() == {"overlap", "semantic"}
    for measured in kept["methods"].values():
        assert measured["answers_alike"] == 2
        assert measured["edges"] > 0
        assert measured["graph_seconds"] > 0


def test_a_wrong_answer_ends_it(index, monkeypatch):
    monkeypatch.setattr(graph, "MIN_JOINABILITY", 0.2)
    monkeypatch.setattr(graph, "count_needed", lambda share, total: total + 1)
    with pytest.raises(click.ClickException, match="answers differ"):
        graph._measured(index, "overlap", 100, 0)
