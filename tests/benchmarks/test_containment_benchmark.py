"""The containment search benchmark: data, truth, scores, and runs with and without the rival."""

import json
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.containment import check, ensemble_of, lowered, main
from benchmarks.containment_sets import (
    ContainmentLake,
    draw_lake,
    right_answer,
    scan,
    scores,
)
from benchmarks.token_sets import texts_of

ARGUMENTS = [
    "--sets",
    "1000",
    "--queries",
    "8",
    "--thresholds",
    "0.5,0.9",
    "--datasketch",
    "--json",
]


def lake_of(sets, queries, own=None):
    offsets = np.cumsum([0, *map(len, sets)]).astype(np.int64)
    tokens = texts_of(np.array([token for one in sets for token in one]))
    queries = [texts_of(np.array(query)) for query in queries]
    return ContainmentLake(tokens, offsets, queries, own or [-1] * len(queries))


def test_a_run_measures_every_way_and_says_what_is_left_out(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasketch", None)
    done = CliRunner().invoke(main, ARGUMENTS, catch_exceptions=False)
    result = json.loads(done.stdout)
    assert "datasketch is left out: it is not installed" in done.stderr
    assert result["datasketch"] == "not installed"
    assert result["checked_by_scan"] == 8
    assert set(result["0.9"]) == {"routes", "pexeso", "lists", "bands"}
    assert result["0.5"]["lists"]["recall"] == 1.0
    assert result["0.5"]["bands"]["precision"] in (1.0, None)


def test_the_rival_is_asked_where_it_finds_as_much():
    pytest.importorskip("datasketch", reason="datasketch is not installed")
    arguments = [*ARGUMENTS, "--equal-recall", "0.9"]
    done = CliRunner().invoke(main, arguments, catch_exceptions=False)
    result = json.loads(done.stdout)["datasketch"]
    for threshold in ("0.5", "0.9"):
        one, tried = result[threshold], result["recalls"][threshold]
        assert one["pexeso"]["recall"] == 1
        assert (
            one["datasketch"]["recall"] == tried[f"{one['its_threshold']}"] == max(tried.values())
        )


class Rival:
    """Finds all right answers from a threshold on, and one of two above it."""

    def __init__(self, enough):
        self.enough, self.asked_for = enough, []

    def built(self, cutoff):
        self.asked_for.append(cutoff)
        answer = np.array([0, 1] if cutoff <= self.enough else [0])
        return lambda number, threshold: (answer, len(answer)), {}


def test_the_highest_threshold_that_finds_enough_is_taken():
    lake = lake_of([[1, 2], [1, 2, 3]], [[1, 2]])
    truths = {0.8: [np.array([0, 1])], 0.4: [np.array([0, 1])]}
    rival = Rival(0.5)
    chosen, recalls = lowered(rival, lake, truths, 0.95)
    assert chosen == {0.8: 0.5, 0.4: 0.4}
    assert recalls[0.8] == {0.8: 0.5, 0.7: 0.5, 0.6: 0.5, 0.5: 1.0}
    assert rival.asked_for == [0.8, 0.7, 0.6, 0.5, 0.4]
    # Of those with the most the highest.
    assert lowered(Rival(-1.0), lake, truths, 0.95)[0] == {0.8: 0.8, 0.4: 0.4}


def test_a_wrong_answer_ends_the_run(monkeypatch):
    lake = lake_of([[1, 2], [1, 2, 3]], [[1, 2]])
    index = ensemble_of(lake)
    assert check(index, lake, 5) == 1
    monkeypatch.setattr("benchmarks.containment.scan", lambda *_: np.array([2, 0]))
    with pytest.raises(SystemExit, match=r"query 0 at 0\.5 by auto"):
        check(index, lake, 1)


def test_a_real_lake_is_asked_with_its_own_columns(shared_lakes):
    lake = draw_lake("pudding", 0, 20, seed=1)
    assert len(lake.queries) == 20
    for number, own in enumerate(lake.own):
        counts = scan(lake, number)
        assert counts[own] == len(lake.queries[number])
        assert own not in right_answer(lake, number, counts, 1.0)


def test_a_scan_counts_and_scores_leave_out_queries_without_answers():
    lake = lake_of([[1, 2, 3], [], [3, 9], [2, 3]], [[2, 3], [50, 60]], own=[3, -1])
    assert scan(lake, 0).tolist() == [2, 0, 1, 2]
    assert right_answer(lake, 0, scan(lake, 0), 0.5).tolist() == [0, 2]
    averages = scores(
        lake, [np.array([0, 1]), np.array([], int)], [np.array([0, 2]), np.array([], int)]
    )
    assert (averages["recall"], averages["precision"], averages["answered"]) == (0.5, 0.5, 0.5)
