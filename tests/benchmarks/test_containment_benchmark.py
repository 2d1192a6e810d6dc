"""The benchmark of containment search runs, with and without the rival."""

import json
import sys

import numpy as np
import pytest

from benchmarks.containment import RATIOS, SyntheticLake, main, scores


def test_a_run_measures_every_threshold_and_says_what_is_left_out(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "datasketch", None)
    assert main(["--sets", "1000", "--queries", "8"]) == 0
    out, err = capsys.readouterr()
    result = json.loads(out)
    assert "datasketch is left out: it is not installed" in err
    assert set(result["pexeso"]) >= {"0.5", "0.6", "0.7", "0.8", "0.9", "1.0", "build_seconds"}
    assert result["pexeso"]["0.9"]["precision"] == 1.0
    assert "datasketch" not in result


def test_the_rival_is_asked_the_same(capsys):
    pytest.importorskip("datasketch", reason="datasketch is not installed")
    assert main(["--sets", "1000", "--queries", "8", "--thresholds", "0.5"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert 0.5 < result["datasketch"]["0.5"]["recall"] <= 1


def test_planted_sets_come_first_and_contain_their_query():
    lake = SyntheticLake(1000, 6, seed=3)
    assert len(lake.offsets) == 1001
    for number in range(3):
        for place, ratio in enumerate(RATIOS):
            row = number * len(RATIOS) + place
            one = lake.tokens[lake.offsets[row] : lake.offsets[row + 1]]
            assert np.isin(lake.queries[number], one).all()
            assert len(one) == pytest.approx(ratio * len(lake.queries[number]), rel=0.01)


def test_scores_leave_out_queries_without_answers():
    truth = [(np.array([0, 1, 7]), np.array([1.0, 0.9, 0.5])), (np.array([], np.int64), np.array([]))]
    found = scores([{0, 2, 7}, set()], truth, 0.9)
    assert (found["recall"], found["precision"]) == (0.5, pytest.approx(1 / 3))
    assert (found["recall_2x"], found["recall_5x"]) == (1.0, 0.0)
