"""The benchmark of overlap search runs, checks its answers, and its lake is as it says."""

import json
import sys

import numpy as np
import pytest

from benchmarks.overlap import main, require_equal
from benchmarks.overlap_lake import power_law_lake


def test_a_run_measures_every_way_and_says_what_is_left_out(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "SetSimilaritySearch", None)
    out = tmp_path / "new" / "overlap.json"
    arguments = [
        "--data",
        "1500",
        "--queries",
        "4",
        "--k",
        "1,10",
        "--checked",
        "4",
        "--folder",
        str(tmp_path),
    ]
    assert main([*arguments, "--out", str(out)]) == 0
    assert "SetSimilaritySearch is left out: it is not installed" in capsys.readouterr().err
    result = json.loads(out.read_text())["1500"]
    ways = {"MergeList", "JOSIE", "JOSIE, published", "planner", "ProbeSet", "batched"}
    for sizes in ("(10, 1000)", "(50, 3000)"):
        assert set(result[sizes]["k=10"]) == ways
    built = (tmp_path / "1500-0" / "ids.npy").stat()
    assert main(arguments) == 0
    assert (tmp_path / "1500-0" / "ids.npy").stat() == built


def test_the_rival_is_asked_the_same(capsys, tmp_path):
    pytest.importorskip("SetSimilaritySearch", reason="SetSimilaritySearch is not installed")
    arguments = [
        "--data",
        "1500",
        "--queries",
        "3",
        "--k",
        "5",
        "--folder",
        str(tmp_path),
    ]
    assert main(arguments) == 0
    assert "SetSimilaritySearch" in json.loads(capsys.readouterr().out)["1500"]["(10, 1000)"]["k=5"]


def test_a_wrong_answer_ends_the_run():
    with pytest.raises(SystemExit, match="JOSIE: the answer"):
        require_equal([[(1, 2)]], [[(1, 3)]], "JOSIE")


def test_the_lake_has_the_sizes_and_the_shared_parts_it_says():
    offsets, tokens = power_law_lake(3000, largest=500, seed=1)
    sizes = np.diff(offsets)
    assert len(sizes) == 3000
    assert sizes.min() >= 1
    assert sizes.max() <= 500
    sets = [set(part.tolist()) for part in np.split(tokens, offsets[1:-1])]
    assert [len(one) for one in sets] == sizes.tolist()
    _, counts = np.unique(tokens, return_counts=True)
    # Tokens that are in one set alone, and a few that are in a large part of all.
    assert (counts == 1).mean() > 0.5
    assert counts.max() > 300
    again = power_law_lake(3000, largest=500, seed=1)
    assert (again[1] == tokens).all()
