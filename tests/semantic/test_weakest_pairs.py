"""Tests of which pairs are shown as those that most need judging."""

import numpy as np
import pyarrow as pa

from pexeso.semantic.pairs import PairTable


def table(text, distances):
    names = pa.array([f"v{at}" for at in range(len(text))])
    texts = pa.array([f"t{at}" for at in range(5)])
    kinds = np.zeros(len(text), np.int8)
    return PairTable(texts, np.array(text), names, names, np.array(distances), kinds)


def test_of_each_text_the_nearest_pair_counts_and_the_farthest_of_these_come_first():
    pairs = table([0, 0, 1, 2, 2, 3, 4], [0.0, 0.9, 0.2, 0.3, 0.8, 0.1, 0.3])
    weakest = pairs.weakest(3)
    assert weakest.text.tolist() == [2, 4, 1]
    assert weakest.values.to_pylist() == ["v3", "v6", "v2"]
    assert len(pairs.weakest(9)) == 4


def test_where_all_texts_have_an_equal_value_there_is_none():
    assert len(table([0, 1, 1], [0.0, 0.0, 0.5]).weakest(3)) == 0
