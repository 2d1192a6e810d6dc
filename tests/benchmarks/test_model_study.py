"""The study of models: what is kept and read at the default distances, and its tables."""

import re

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.effectiveness import model_study
from benchmarks.effectiveness.lexical.data import normalised, prepared, study_set
from benchmarks.effectiveness.lexical.held_out import SetScores, held_out
from benchmarks.effectiveness.model_tables import STUDY, tables
from benchmarks.effectiveness.scoring import JOINABILITIES
from benchmarks.effectiveness.sets import DATA, SHARED
from benchmarks.effectiveness.stored import RESULTS
from benchmarks.report import read_result
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.options import DEFAULT_MAX_DISTANCE, USUAL_MAX_DISTANCES

STORED = read_result(RESULTS / f"{STUDY}.json")


def curve(peak: float) -> list[list[float]]:
    return [[float(distance == peak), 0.5] for distance in model_study.DISTANCES]


def test_models_are_read_at_their_default_distances():
    kept = {
        "models": {
            "lexical": {"curves": {"a": curve(0.4)}},
            "sentence": {"curves": {"a": curve(0.3)}},
        }
    }
    study = model_study.merged(kept, {"fasttext-mean": {"curves": {"a": curve(0.22)}}})
    assert list(study["models"]) == ["lexical", "fasttext-mean", "sentence"]
    lexical, mean = (study["models"][name]["at_default"] for name in ("lexical", "fasttext-mean"))
    assert lexical == {"distance": 0.4, "sets": {"a": [1.0, 0.5]}, "mean": 0.75}
    assert mean == {"distance": 0.06, "sets": {"a": [0.0, 0.5]}, "mean": 0.25}


def test_every_kind_of_model_is_kept_with_the_default_that_it_has_now():
    assert set(STORED["models"]) == set(model_study.MODELS)
    for name, own in STORED["models"].items():
        usual = USUAL_MAX_DISTANCES.get(name, DEFAULT_MAX_DISTANCE)
        assert own["at_default"]["distance"] == usual, "read them anew: --models '' --write"
        assert set(own["sets"]) == set(own["curves"]) == set(DATA)


@pytest.mark.parametrize("name", ["fasttext", "sentence"])
def test_the_default_of_a_trained_model_is_the_distance_that_was_best(name):
    assert STORED["models"][name]["distance"] == USUAL_MAX_DISTANCES[name]


def test_tables_have_both_distances_of_each_model():
    own = {
        "measured": "2026-11-23",
        "distance": 0.15,
        "mean": 0.5,
        "sets": {"a": {"distance": 0.1, "columns": 0.25, "values": 0.75}},
        "at_default": {"distance": 0.06, "mean": 1.0, "sets": {"a": [1.0, 1.0]}},
    }
    text = tables({"models": {"sentence": {**own, "model": "some-model"}}})
    assert text.startswith("Measured 2026-11-23. The sentence model is some-model.")
    assert "| sentence | 0.06 | 1.000 1.000 | 1.000 |" in text
    assert "| sentence | 0.15 | .250 .750 | .500 |" in text


@pytest.mark.long
@pytest.mark.skipif(not (SHARED / "entity-pairs").is_dir(), reason="needs the shared data sets")
def test_fasttext_is_trained_on_the_lake_of_a_data_set(tmp_path):
    pytest.importorskip("fasttext")
    prepare = normalised(Normaliser())
    own = prepared(study_set("entity-pairs", tmp_path / "study"), prepare)
    method = model_study.method_of("fasttext-mean", own, prepare, tmp_path, "")
    lines = (tmp_path / "corpus.txt").read_text(encoding="utf-8").splitlines()
    words = {word for line in lines for word in line.split()}
    assert words == set(own.counts)
    assert method(own.values[:3], {}).shape == (3, 100)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--models", "word2vec"], r"The models are lexical, fasttext, .* Got 'word2vec'\."),
        ([], "needs --sentence-model, or leave it out"),
    ],
)
def test_what_is_missing_is_told(given, message):
    result = CliRunner().invoke(model_study.main, given)
    assert result.exit_code == 1
    assert re.search(message, result.output)


def test_the_distance_for_others_is_one_of_those_tried():
    def scores(best: int) -> SetScores:
        f1s = np.zeros(3)
        f1s[best] = 1
        return SetScores(np.tile(f1s[:, None], len(JOINABILITIES)), f1s, {}, (0.01, 0.02, 0.03))

    result = held_out({"a": scores(0), "b": scores(2)})
    assert [result["sets"][name]["distance"] for name in "ab"] == [0.03, 0.01]
    assert result["mean"] == 0
