"""The benchmark of overlap search runs, and checks its answers."""

import json
import sys

import pytest
from click.testing import CliRunner

from benchmarks import report
from benchmarks.overlap import main, require_equal

ARGUMENTS = ["--data", "1500", "--queries", "4", "--checked", "4"]


def test_a_run_measures_every_way_and_says_what_is_left_out(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "SetSimilaritySearch", None)
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    done = CliRunner().invoke(main, [*ARGUMENTS, "--write"], catch_exceptions=False)
    assert "SetSimilaritySearch is left out: it is not installed" in done.stderr
    result = json.loads((tmp_path / "overlap" / "1500.json").read_text())["1500"]
    ways = {"MergeList", "JOSIE", "JOSIE, published", "planner", "ProbeSet"}
    assert set(result["(10, 1000)"]["k=10"]) == ways


def test_the_rival_is_asked_the_same():
    pytest.importorskip("SetSimilaritySearch", reason="SetSimilaritySearch is not installed")
    done = CliRunner().invoke(main, [*ARGUMENTS, "--json"], catch_exceptions=False)
    assert "SetSimilaritySearch" in json.loads(done.stdout)["1500"]["(10, 1000)"]["k=10"]


def test_a_wrong_answer_ends_the_run():
    with pytest.raises(SystemExit, match="JOSIE: the answer"):
        require_equal([(1, 2)], [(1, 3)], "JOSIE")
