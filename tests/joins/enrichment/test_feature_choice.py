"""Tests of feature choice for a target: candidates, kept features, scores on unseen rows."""

import json

import numpy as np
import pandas as pd
import pytest

import pexeso
from pexeso.errors import InputError
from pexeso.joins.enrichment import feature_selection as models
from pexeso.joins.enrichment.enrich import Enrichment
from pexeso.joins.enrichment.feature_selection import (
    ModelOptions,
    choose_features,
    predict_unseen,
    read_features,
    read_target,
)
from pexeso.joins.enrichment.gathering import AddedColumn, EnrichmentRules

ROWS = 80
DRAW = np.random.default_rng(5)
HELPFUL, NOISE = DRAW.normal(size=ROWS), DRAW.normal(size=ROWS)
KIND = np.where(DRAW.random(ROWS) < 0.5, "north", "south")
SALES = 3 * HELPFUL + 4 * (KIND == "north") + DRAW.normal(0, 0.2, ROWS)
NAMES = [f"city {n}" for n in range(ROWS)]


def enrichment(target="sales", values=SALES):
    table = pd.DataFrame(
        {
            "city": NAMES,
            target: values,
            "own": NOISE,
            "t:helpful": HELPFUL,
            "t:kind": KIND,
            "t:slogan": NAMES,
        }
    )
    table.loc[table.index[:3], "t:helpful"] = np.nan
    added = tuple(
        AddedColumn(f"t:{name}", "t", name, "name", 1.0, "text", 1.0, 9)
        for name in ("helpful", "kind", "slogan")
    )
    return Enrichment(table, "city", target, added, (), (), EnrichmentRules())


def test_added_columns_that_help_are_kept_and_lower_the_error():
    choice = pexeso.select_features(enrichment(), trees=4)
    assert choice.task == "regression"
    assert choice.kept[:2] == ("t:helpful", "t:kind")
    assert sum(choice.importances.values()) == pytest.approx(1)
    assert choice.left_out == {"t:slogan": "80 different texts, more than 20"}
    assert choice.scores_without["r2"] < 0.2 < 0.7 < choice.scores_with["r2"]
    assert (
        choice.scores_with["mean_squared_error"] < choice.scores_without["mean_squared_error"] / 3
    )
    assert set(choice.kept) | set(choice.eliminated) == {"own", "t:helpful", "t:kind"}
    assert "r2: " in choice.report
    assert json.loads(json.dumps(choice.to_dict()))["target"] == "sales"


def test_classes_are_told_apart():
    outcome = np.where(np.median(SALES) < SALES, "won", "lost")
    choice = pexeso.select_features(enrichment("outcome", outcome), trees=4)
    assert choice.task == "classification"
    assert choice.scores_with["accuracy"] > 0.8 > 0.65 > choice.scores_without["accuracy"]


def test_features_are_chosen_anew_in_each_fold_by_the_other_rows(monkeypatch):
    seen = []

    def first_feature(matrix, values, task, options):
        seen.append(set(values.tolist()))
        return np.arange(matrix.shape[1]) == 0

    monkeypatch.setattr(models, "choose_features", first_feature)
    target = np.arange(20.0)
    predict_unseen(DRAW.normal(size=(20, 3)), target, "regression", ModelOptions(trees=1))
    assert [len(fold) for fold in seen] == [15] * 4
    assert (
        sorted(value for fold in seen for value in set(target.tolist()) - fold) == target.tolist()
    )


def test_elimination_keeps_what_helps_and_one_feature_at_least():
    helpful = np.arange(40.0)
    matrix = np.column_stack([np.random.default_rng(1).normal(size=(40, 4)), helpful])
    kept = choose_features(matrix, helpful**2, "regression", ModelOptions(trees=5))
    assert kept[-1]
    assert choose_features(matrix[:, :1], helpful, "regression", ModelOptions()).tolist() == [True]
    assert choose_features(matrix[:, :0], helpful, "regression", ModelOptions()).tolist() == []


def test_without_any_feature_the_mean_of_the_other_rows_is_predicted():
    target = np.arange(8.0)
    predicted = predict_unseen(np.zeros((8, 0)), target, "regression", ModelOptions(folds=4))
    means = {(28 - sum(pair)) / 6 for pair in [(a, b) for a in range(8) for b in range(a)]}
    assert set(predicted.tolist()) <= means
    classes = np.array(["a"] * 6 + ["b"] * 4, dtype=object)
    assert (
        predict_unseen(np.zeros((10, 0)), classes, "classification", ModelOptions(folds=2)).tolist()
        == ["a"] * 10
    )


def test_rows_without_a_target_are_passed_over():
    values = SALES.copy()
    values[10:20] = np.nan
    first = pexeso.select_features(enrichment(values=values), trees=2)
    assert first.rows == ROWS - 10
    assert pexeso.select_features(enrichment(values=values), trees=2) == first
    assert pexeso.select_features(enrichment(values=values), trees=2, seed=1) != first


def test_columns_become_numbers():
    columns = {
        "n": [1, None, 3],
        "t": ["b", None, "a"],
        "flag": [True, False, True],
        "same": ["x", "x", "x"],
        "price": ["$1", "2,5", None],
    }
    features = read_features(columns, np.array([0, 1, 2]), max_texts=2, min_number_fraction=0.9)
    assert features.names == ("n", "t", "flag", "price")
    np.testing.assert_array_equal(
        features.matrix, [[1, 1, 1, 1], [np.nan, np.nan, 0, 2.5], [3, 0, 1, np.nan]]
    )
    assert features.left_out == {"same": "the same in all rows"}
    assert features.of(["flag", "nowhere"]).tolist() == [[1], [0], [1]]


def test_numbers_that_trees_do_not_take_are_no_feature_and_no_target():
    values = [1e300, *range(29)]
    columns = {"huge": values, "n": range(30)}
    features = read_features(columns, np.arange(30), max_texts=20, min_number_fraction=0.9)
    assert features.left_out == {"huge": "the number 1e+300, of which trees take at most 3.4e+38"}
    assert features.names == ("n",)
    with pytest.raises(InputError, match=r"The target has the number 1e\+300, which no regression"):
        read_target(values, "auto", folds=4, min_number_fraction=0.9)


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (range(30), "regression"),
        ([n % 3 for n in range(30)], "classification"),
        (list("ab") * 15, "classification"),
    ],
)
def test_the_task_follows_from_the_target(values, task):
    assert read_target(list(values), "auto", folds=4, min_number_fraction=0.9).task == task


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"target": "city"},
            "must be a column of the table and not its key. Got 'city'; the columns are 'sales', "
            "'own'",
        ),
        ({"target": "nowhere"}, "Got 'nowhere'"),
        (
            {"task": "ranking"},
            "task must be one of auto, regression, classification. Got 'ranking'",
        ),
        ({"folds": 1}, "folds must be a whole number of at least 2. Got 1"),
        (
            {"trees": True},
            "trees must be a whole number of at least 1 and at most 10,000. Got True",
        ),
        ({"trees": 10**30}, "trees must be .* at most 10,000. Got 10000"),
        ({"seed": 2**32}, "seed must be .* at most 4,294,967,295. Got 4294967296"),
        ({"task": np.array(["a", "b"])}, r"task must be one of auto, .*Got array"),
        ({"task": pd.DataFrame({"a": [1]})}, "task must be one of auto"),
        ({"target": np.array(["a", "b"])}, r"The target must be a column .*Got array"),
        ({"folds": 50}, "has 80 rows with a value; 50 folds need at least 100"),
        ({"target": "t:kind", "task": "regression"}, "not one of numbers"),
        ({"target": "t:slogan"}, "has 1 row; 4 folds need at least 8 of each class"),
    ],
)
def test_wrong_arguments_are_told(options, said):
    with pytest.raises(InputError, match=said):
        pexeso.select_features(enrichment(), **options)


def test_a_target_must_be_named_and_have_two_classes():
    nameless = Enrichment(enrichment().table, "city", None, (), (), (), EnrichmentRules())
    with pytest.raises(InputError, match="Name the target"):
        pexeso.select_features(nameless)
    with pytest.raises(InputError, match="one class alone, 'x'"):
        read_target(["x"] * 20, "auto", folds=4, min_number_fraction=0.9)
