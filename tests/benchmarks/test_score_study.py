"""Figures of orders and cuts by hand, truth of what is asked, and measures of what is found."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from benchmarks.effectiveness import score_study
from benchmarks.effectiveness.judged import BY_MEANING, NEGATIVE, NOT_JUDGED
from benchmarks.effectiveness.score import asked_lake as asked_module
from benchmarks.effectiveness.score.asked_lake import (
    AskedLake,
    asked_lake,
    misspelt_lake,
    without_doubtful,
)
from benchmarks.effectiveness.score.figures import Ranked, difference, reliability
from benchmarks.effectiveness.score.models import FEATURES, learn, logistic
from benchmarks.effectiveness.score.pairs import Pairs, found_pairs, measures
from benchmarks.effectiveness.score.tables import STUDY, tables
from benchmarks.effectiveness.stored import RESULTS
from benchmarks.report import read_result
from pexeso.errors import InputError
from pexeso.index import build_index

TOWNS = ["Bergen", "Madrid", "Lisbon", "Dublin", "Vienna", "Prague", "Warsaw", "Berlin", "Athens"]
COLOURS = ["crimson", "orange", "yellow", "purple", "turquoise", "magenta", "scarlet", "silver"]


def pairs_of(query, right, n_right, nearest) -> Pairs:
    """Return pairs of four query values each, whose distances are given."""
    nearest = np.array(nearest, float).ravel()
    n, ends = len(query), np.arange(0, len(nearest) + 1, 4)
    return Pairs(
        np.array(query),
        np.array(right, bool),
        np.array(n_right),
        0.4,
        ends,
        ends,
        nearest,
        np.ones(4 * n, bool),
        np.ones(4 * n),
        nearest,
    )


def made_pairs(seed: int, n: int = 60) -> Pairs:
    """Return pairs that can be joined when their values are near."""
    generator = np.random.default_rng(seed)
    right = generator.random(n) < 0.4
    nearest = np.where(right[:, None], 0.2, 0.5) + generator.normal(0, 0.08, (n, 4))
    query = np.sort(generator.integers(0, 10, n))
    return pairs_of(query, right, np.bincount(query, right, 10).astype(int), nearest.clip(0, 1))


def test_an_order_and_a_cut_by_hand():
    pairs = pairs_of([0, 0, 0, 1, 1], [1, 0, 1, 0, 1], [2, 2, 0], np.zeros((5, 4)))
    ranked = Ranked(pairs, np.array([0.9, 0.8, 0.7, 0.6, 0.5]))
    # Query 0: right at ranks 1 and 3; query 1: right at rank 2, and one is not found; 2 has none.
    assert ranked.precisions[:2] == pytest.approx([(1 + 2 / 3) / 2, (1 / 2) / 2])
    assert ranked.mean_precision() == pytest.approx((5 / 6 + 1 / 4) / 2)
    assert np.isnan(ranked.precisions[2])
    assert ranked.first[:2].tolist() == [1, 0]
    assert ranked.recall() == 1 / 4
    assert ranked.recall(precision=0.6) == 3 / 4
    # Equal scores are cut together.
    assert Ranked(pairs, np.full(5, 0.5)).recall() == 0
    assert Ranked(pairs, pairs.right.astype(float)).recall() == 3 / 4


def test_differences_are_of_the_same_draws():
    pairs = made_pairs(1)
    good = Ranked(pairs, -pairs.means(pairs.nearest))
    bad = Ranked(pairs, np.random.default_rng(0).random(len(pairs.right)))
    assert difference(good, good) == {"map": [0, 0], "recall_95": [0, 0]}
    assert all(low > 0 for low, _ in difference(good, bad).values())
    assert all(high < 0 for _, high in difference(bad, good).values())


def test_reliability_is_that_of_bins():
    curve = reliability(np.array([0.05, 0.05, 0.95, 0.95, 1.0]), np.array([0, 1, 1, 1, 1], bool))
    assert curve["bins"] == [[0.05, 0.5, 2], [0.9667, 1.0, 3]]
    assert curve["error"] == pytest.approx((0.45 * 2 + 0.0333 * 3) / 5, abs=1e-3)


def test_coefficients_are_never_negative():
    rows = np.random.default_rng(0).random((400, 2))
    base, (helps, harms) = logistic(rows, (rows[:, 0] - rows[:, 1] > 0).astype(float), np.ones(400))
    assert base < 0 < helps
    assert harms == 0


@pytest.mark.parametrize("name", FEATURES)
def test_models_are_monotone_probabilities(name):
    sets = [(measures(own), own.right) for own in (made_pairs(2), made_pairs(3))]
    other = made_pairs(4)
    before = measures(other)
    scores = learn(name, sets)(before)
    assert ((scores >= 0) & (scores <= 1)).all()
    assert scores[other.right].mean() > scores[~other.right].mean() + 0.3
    more = {measure: values * 1.01 for measure, values in before.items()}
    assert (learn(name, sets)(more) >= scores - 1e-9).all()


def test_measures_and_models_are_held_against_the_best_measure():
    result = score_study.compared({name: made_pairs(seed) for seed, name in enumerate("abc")})
    result["measured"] = "today"
    own = result["measures"]["similarity"]
    assert own["mean"]["map"] == pytest.approx(
        np.mean([own[name]["map"] for name in "abc"]), abs=1e-4
    )
    assert set(result["behind"]) == {"similarity", *FEATURES} == set(result["holds"])
    for name, own in result["best"].items():
        for figure, best in own.items():
            highest = max(scores[name][figure] for scores in result["measures"].values())
            assert result["measures"][best][name][figure] == highest
    # A logistic of one measure orders and cuts as the measure does.
    assert result["behind"]["logistic of similarity"] == result["behind"]["similarity"]
    lines = tables(result).splitlines()
    assert lines.count("| | a | b | c |") == 3
    assert lines.count("| | a | b | c | mean |") == 1
    assert sum(line.startswith("| similarity |") for line in lines) == 2


def write(folder: Path, **columns) -> Path:
    folder.mkdir()
    for name, values in columns.items():
        (folder / f"{name}.csv").write_text("\n".join(["name", *values, ""]), encoding="utf-8")
    return folder


def test_misspelt_values_keep_the_truth_of_their_originals(tmp_path):
    lake = write(
        tmp_path / "lake", towns=TOWNS, same=[town.upper() for town in TOWNS], colours=COLOURS
    )
    truth = misspelt_lake("misspelt-made", lake)
    again = misspelt_lake("misspelt-made", lake)
    assert [rows.to_pylist() for rows in truth.queries] == [
        rows.to_pylist() for rows in again.queries
    ]
    assert truth.keys == [("colours.csv", 0), ("same.csv", 0), ("towns.csv", 0)]
    assert len(truth.queries) == 2, "columns of the same values are asked once"
    for values, originals, labels in zip(truth.queries, truth.originals, truth.labels, strict=True):
        distinct = {text.lower() for text in originals.to_pylist()}
        colours = len(distinct & set(COLOURS)) / len(distinct)
        assert (labels[0] == BY_MEANING) == (colours >= 0.5)
        assert (labels[1:] == BY_MEANING).all() == (colours <= 0.5)
        assert len(values) == len(originals)
    assert any(a != b for a, b in zip(truth.queries, truth.originals, strict=True))


def test_pairs_that_may_be_right_in_another_spelling_are_not_judged(tmp_path):
    lake = write(tmp_path / "lake", a=[f"{town}e" for town in TOWNS], b=COLOURS, c=TOWNS)
    labels = np.zeros((1, 3), np.int8)
    truth = AskedLake(
        "made", lake, [("a.csv", 0), ("b.csv", 0), ("c.csv", 0)], [pa.array(TOWNS)], labels
    )

    def normalise(columns):
        return [sorted({text.lower() for text in column.to_pylist()}) for column in columns]

    pairs = np.zeros(3, np.int64), np.arange(3)
    assert without_doubtful(truth, *pairs, labels[0], normalise).tolist() == [NEGATIVE] * 3
    truth = AskedLake(truth.name, lake, truth.keys, truth.queries, labels, truth.queries)
    assert without_doubtful(truth, *pairs, labels[0], normalise).tolist() == [
        NOT_JUDGED,
        NEGATIVE,
        BY_MEANING,
    ]


@pytest.mark.spark
def test_measures_are_those_of_searches(tmp_path, spark):
    some = [*TOWNS[:5], "Vianna", "Pragua"]
    lake = write(tmp_path / "lake", towns=TOWNS, some=some, colours=COLOURS)
    index = build_index(lake, tmp_path / "lake.pexeso", model="lexical")
    keys = [("towns.csv", 0), ("some.csv", 0), ("colours.csv", 0)]
    labels = np.array([[BY_MEANING, NEGATIVE, NEGATIVE]], np.int8)
    truth = AskedLake("made", lake, keys, [pa.array(some)], labels)
    pairs = found_pairs(truth, index)
    assert pairs.right.tolist() in ([True, False], [False, True])
    assert pairs.n_right.tolist() == [1]
    scores = measures(pairs)
    searched = {
        match.table: match
        for match in index.search(some, max_distance=0.4, min_joinability=0.1, k="all")
    }
    towns, own = searched["towns.csv"], searched["some.csv"]
    assert scores["similarity"][pairs.right] == pytest.approx(towns.similarity)
    assert scores["similarity"][~pairs.right] == pytest.approx(own.similarity) == 1.0
    assert scores["share"][pairs.right] == pytest.approx(towns.joinability)
    assert scores["share of equal values"][pairs.right] == pytest.approx(5 / 7)
    assert scores["share of the other column"][~pairs.right] == 1
    assert scores["number of matching values"][~pairs.right] == 7


def test_data_sets_that_are_not_there_are_told(tmp_path):
    with pytest.raises(InputError, match="The data set transform is not on this machine"):
        asked_lake("transform", tmp_path, shared=tmp_path)
    done = CliRunner().invoke(score_study.main, ["--sets", "nothing"])
    assert done.exit_code == 1
    assert "The data sets are wikitables, countries" in done.output
    done = CliRunner().invoke(score_study.main, ["--strict", "--write"])
    assert done.exit_code == 1
    assert "--write keeps what all data sets say" in done.output


@pytest.mark.lakes
def test_the_transform_cases_have_truth(shared_lakes, tmp_path):
    if not (asked_module.SHARED / "transform" / "cases.tar.gz").is_file():
        pytest.skip("the shared data set transform is not on this machine")
    truth = asked_lake("transform", tmp_path)
    assert len(truth.queries) == len(truth.labels) > 20
    partner = [(truth.labels[row] == BY_MEANING).any() for row in range(len(truth.queries))]
    assert np.mean(partner) > 0.8
    assert not list(truth.lake.rglob("ground_truth.csv"))


@pytest.mark.lakes
@pytest.mark.long
def test_what_lies_beside_the_tables_of_a_data_set_is_not_asked(shared_lakes, tmp_path):
    truth = asked_lake("autofj", tmp_path / "autofj", shared_lakes)
    assert {Path(table).suffix for table, _ in truth.keys} == {".csv"}
    assert truth.labels.shape[1] == len(truth.keys)


def test_no_model_of_the_stored_study_is_as_good_everywhere():
    result = read_result(RESULTS / f"{STUDY}.json")
    assert not any(result["holds"][model] for model in FEATURES)
    means = {
        name: sum(own["mean"][figure] for figure in score_study.FIGURES) / 2
        for name, own in result["measures"].items()
    }
    assert means[score_study.SHIPPED] > max(means.values()) - 0.01
    assert list(result["counts"]) == list(asked_module.SETS)
    assert json.loads(json.dumps(result)) == result
