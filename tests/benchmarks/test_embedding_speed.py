"""Tests of the embedding speed benchmark, and that pexeso is faster even on a small lake.

The rival is a Python loop of fastText's own.
"""

import json
import sys

import pytest
from click.testing import CliRunner

from benchmarks import embedding
from benchmarks.cli import main
from benchmarks.embedding import page_table, run_embedding
from pexeso.errors import InputError


@pytest.fixture(scope="module")
def demo():
    pytest.importorskip(
        "fasttext", reason="the loop needs the package fasttext-numpy2, which is not installed"
    )
    return run_embedding("demo", None, 5)


def test_every_way_is_measured_and_told(demo):
    assert json.loads(json.dumps(demo)) == demo
    loops = ["get_sentence_vector 100", "get_sentence_vector 256"]
    assert list(demo["ways"]) == ["hashing", "fasttext 100", loops[0], "fasttext 256", loops[1]]
    assert all(list(way["times"]) == loops for way in demo["ways"].values())
    assert demo["ways"]["get_sentence_vector 100"]["times"][loops[0]] == {
        "median": 1.0,
        "least": 1.0,
        "most": 1.0,
    }
    assert all(name in page_table(demo) for name in demo["ways"])
    assert demo["skipped"] is None


def test_models_are_faster_than_a_loop_of_the_same_size(demo):
    # Half of what was measured on this lake, where few words come back and there is least to gain;
    # a large lake gives twice as much.
    assert demo["ways"]["hashing"]["times"]["get_sentence_vector 256"]["median"] >= 1.4
    assert demo["ways"]["fasttext 256"]["times"]["get_sentence_vector 256"]["median"] >= 1.1
    assert demo["ways"]["fasttext 100"]["times"]["get_sentence_vector 100"]["median"] >= 1.0


def test_without_fasttext_hashing_is_measured_alone(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fasttext", None)
    monkeypatch.setattr(embedding, "RESULTS", tmp_path)
    done = CliRunner().invoke(
        main, ["embedding", "--data", "demo", "--values", "50", "--repeats", "1"]
    )
    assert done.exit_code == 0, done.output
    assert "Not measured: fastText; the package fasttext-numpy2 is not installed." in done.output
    result = json.loads((tmp_path / "embedding" / "demo_v50_r1.json").read_text("utf-8"))
    assert (result["values"], list(result["ways"])) == (50, ["hashing"])


def test_what_cannot_be_run_is_refused():
    with pytest.raises(InputError, match="Lakes are wikitables"):
        run_embedding("nowhere", None, 1)
    with pytest.raises(InputError, match="repeats must be at least 1"):
        run_embedding("demo", None, 0)
