"""Tests of the containment search benchmark: data, truth, scores, and runs.

The benchmark runs with and without the rival.
"""

import json
import sys

import numpy as np
import pytest
from long_runs import long_but

from benchmarks.containment import main
from benchmarks.containment_equal import lowered
from benchmarks.containment_sets import (
    RATIOS,
    ContainmentLake,
    draw_lake,
    right_answer,
    scan,
    scores,
)


def lake_of(sets, queries, own=None):
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in sets])]).astype(np.int64)
    tokens = np.array([token for one in sets for token in one], np.uint64)
    return ContainmentLake(
        tokens, offsets, [np.array(one, np.uint64) for one in queries], own or [-1] * len(queries)
    )


@pytest.mark.parametrize("data", long_but(["power"], ["planted", "power"]))
def test_a_run_measures_every_way_and_says_what_is_left_out(monkeypatch, capsys, data):
    monkeypatch.setitem(sys.modules, "datasketch", None)
    arguments = [
        "--data",
        data,
        "--sets",
        "1000",
        "--queries",
        "8",
        "--thresholds",
        "0.5,0.9",
        "--datasketch",
    ]
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    result = json.loads(out)
    assert "datasketch is left out: it is not installed" in err
    assert result["datasketch"] == "not installed"
    assert result["checked_by_scan"]["queries"] == 8
    ways = {
        "pexeso",
        "lists",
        "bands",
    }
    assert set(result["0.9"]) == {"routes", *ways}
    assert result["0.5"]["lists"]["recall"] == 1.0
    assert result["0.5"]["bands"]["precision"] in (1.0, None)
    assert set(result["bytes"]) == {"signatures_and_tables", "lists"}


def test_the_rival_is_asked_the_same(capsys):
    pytest.importorskip("datasketch", reason="datasketch is not installed")
    assert (
        main(
            [
                "--sets",
                "1000",
                "--queries",
                "8",
                "--thresholds",
                "0.5",
                "--datasketch",
            ]
        )
        == 0
    )
    result = json.loads(capsys.readouterr().out)["datasketch"]
    assert 0.5 < result["0.5"]["datasketch"]["recall"] <= 1
    assert result["0.5"]["pexeso"]["recall"] == 1


def test_the_rival_is_asked_where_it_finds_as_much(capsys):
    pytest.importorskip("datasketch", reason="datasketch is not installed")
    arguments = [
        "--sets",
        "300",
        "--queries",
        "8",
        "--thresholds",
        "0.5,0.9",
        "--datasketch",
        "--partitions",
        "4",
    ]
    assert (
        main(
            [
                *arguments,
                "--equal-recall",
                "0.9",
                "--lower",
                "0.3,0.0",
                "--builds",
                "2",
            ]
        )
        == 0
    )
    result = json.loads(capsys.readouterr().out)["datasketch"]
    assert len(result["pexeso_build_seconds"]) == 2
    for threshold in ("0.5", "0.9"):  # a run stops where what was foreseen is not what was found
        foreseen, one = result["foreseen_recalls"][threshold], result[threshold]
        assert foreseen["0.0"] == max(foreseen.values())
        assert one["datasketch"]["recall"] == foreseen[f"{one['its_threshold']}"]
        assert one["datasketch"]["recall"] >= 0.9 or foreseen["0.0"] < 0.9


def test_a_run_stops_where_the_rival_finds_what_was_not_foreseen(monkeypatch):
    pytest.importorskip("datasketch", reason="datasketch is not installed")
    monkeypatch.setattr("benchmarks.containment.foreseen_recalls", lambda *_: {0.5: 0.123})
    with pytest.raises(SystemExit, match="not find what was foreseen"):
        main(
            [
                "--sets",
                "100",
                "--queries",
                "4",
                "--thresholds",
                "0.5",
                "--datasketch",
                "--equal-recall",
                "0.9",
            ]
        )


def test_the_highest_threshold_that_finds_enough_is_taken():
    recalls = {0.5: 0.4, 0.3: 0.96, 0.2: 0.97, 0.1: 0.97}
    assert lowered(recalls, 0.95) == 0.3
    assert lowered(recalls, 0.99) == 0.2  # the highest of those with the most


def test_planted_sets_come_first_and_contain_their_query():
    lake = draw_lake("planted", 1000, 6, seed=3)
    assert (len(lake), lake.n_planted) == (1000, 3)
    for number in range(3):
        for place, ratio in enumerate(RATIOS):
            row = number * len(RATIOS) + place
            one = lake.tokens[lake.offsets[row] : lake.offsets[row + 1]]
            assert np.isin(lake.queries[number], one).all()
            assert len(one) == pytest.approx(ratio * len(lake.queries[number]), rel=0.01)


def test_a_real_lake_is_asked_with_its_own_columns(shared_lakes):
    lake = draw_lake("pudding", 0, 20, seed=1)
    assert len(lake.queries) == 20
    for number, own in enumerate(lake.own):
        counts = scan(lake, lake.queries[number])
        assert counts[own] == len(lake.queries[number])
        assert own not in right_answer(lake, number, counts, 1.0)


def test_a_scan_counts_and_scores_leave_out_queries_without_answers():
    lake = lake_of([[1, 2, 3], [], [3, 9], [2, 3]], [[2, 3], [50, 60]], own=[3, -1])
    assert scan(lake, lake.queries[0]).tolist() == [2, 0, 1, 2]
    assert right_answer(lake, 0, scan(lake, lake.queries[0]), 0.5).tolist() == [0, 2]
    averages = scores(
        lake, [np.array([0, 1]), np.array([], int)], [np.array([0, 2]), np.array([], int)]
    )
    assert (averages["recall"], averages["precision"], averages["answered"]) == (0.5, 0.5, 0.5)
