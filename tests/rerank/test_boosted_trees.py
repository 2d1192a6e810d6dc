"""Boosted trees kept as numbers: scores by hand and by scikit-learn, contributions that add up."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.effectiveness.reranker import trees_of
from pexeso.errors import IndexCorruptError
from pexeso.rerank.boosted_trees import BoostedTrees

STUMP = [
    {
        "feature": 1,
        "threshold": 0.5,
        "left": 1,
        "right": 2,
        "value": 0.0,
        "count": 4,
        "is_leaf": False,
    },
    {
        "feature": 0,
        "threshold": 0.0,
        "left": 0,
        "right": 0,
        "value": -1.0,
        "count": 3,
        "is_leaf": True,
    },
    {
        "feature": 0,
        "threshold": 0.0,
        "left": 0,
        "right": 0,
        "value": 3.0,
        "count": 1,
        "is_leaf": True,
    },
]
LEAF = [
    {
        "feature": 0,
        "threshold": 0.0,
        "left": 0,
        "right": 0,
        "value": 0.25,
        "count": 4,
        "is_leaf": True,
    }
]


def test_scores_and_contributions_by_hand() -> None:
    trees = trees_of(("a", "b"), 0.5, [STUMP, LEAF])
    rows = np.array([[9.0, 0.5], [9.0, 0.6]])
    np.testing.assert_allclose(
        trees.scores(rows), 1 / (1 + np.exp(-(0.5 + 0.25 + np.array([-1.0, 3.0]))))
    )
    # The root is worth (3 * -1 + 3) / 4 = 0.
    np.testing.assert_allclose(trees.explained(rows)[1], [[0, -1], [0, 3]])


def test_they_are_what_scikit_learn_has_learned(tmp_path: Path) -> None:
    from benchmarks.effectiveness.judged import BY_TEXT, NEGATIVE
    from benchmarks.effectiveness.reranker import LEARNING_RATE, LEAVES, TREES, learn
    from pexeso.rerank.features import FEATURES

    generator = np.random.default_rng(0)
    rows = generator.random((400, len(FEATURES)))
    labels = np.where(rows[:, 0] + rows[:, 3] * rows[:, 5] > 0.8, BY_TEXT, NEGATIVE)
    trees = learn(rows, labels)
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(
        max_iter=TREES,
        max_leaf_nodes=LEAVES,
        learning_rate=LEARNING_RATE,
        l2_regularization=1.0,
        random_state=0,
    ).fit(rows, labels == BY_TEXT)
    np.testing.assert_allclose(trees.scores(rows), model.predict_proba(rows)[:, 1], atol=1e-9)
    (tmp_path / "trees.json").write_text(json.dumps(trees.to_dict()))
    opened = BoostedTrees.from_json(tmp_path / "trees.json")
    np.testing.assert_allclose(opened.scores(rows), trees.scores(rows), atol=1e-5)
    whole = trees.base + trees.value[:, 0].sum() + trees.explained(rows)[1].sum(1)
    np.testing.assert_allclose(1 / (1 + np.exp(-whole)), trees.scores(rows))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"features": 3}'])
def test_a_damaged_file_is_refused_in_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "trees.json").write_text(text)
    with pytest.raises(IndexCorruptError, match=r"trees\.json' is damaged: install pexeso again\."):
        BoostedTrees.from_json(tmp_path / "trees.json")
    with pytest.raises(IndexCorruptError, match="install pexeso again"):
        BoostedTrees.from_json(tmp_path / "nothing.json")
