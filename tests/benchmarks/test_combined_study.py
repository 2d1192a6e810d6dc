"""Letters and vectors in one space: products are weighted sums, and one metric."""

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks.effectiveness.combined_study import WEIGHTS, read_weights
from benchmarks.effectiveness.combined_tables import tables
from benchmarks.effectiveness.lexical.products import (
    Combined,
    all_products,
    best_by_column,
    best_by_column_of_each,
    products,
)
from benchmarks.effectiveness.sets import DATA
from pexeso.errors import InputError


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def both(seed, n):
    generator = np.random.default_rng(seed)
    letters = unit(generator.random((n, 30)) * (generator.random((n, 30)) < 0.4) + 1e-9)
    return sp.csr_matrix(letters), unit(generator.standard_normal((n, 8)))


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_products_are_those_of_vectors_put_side_by_side(weight):
    left, right = (Combined(*both(seed, n), weight) for seed, n in ((1, 12), (2, 20)))
    whole = [
        np.hstack([np.sqrt(1 - weight) * side.sparse.toarray(), np.sqrt(weight) * side.dense])
        for side in (left, right)
    ]
    np.testing.assert_allclose(np.linalg.norm(whole[0], axis=1), 1)
    expected = whole[0] @ whole[1].T
    np.testing.assert_allclose(all_products(left, right), expected, atol=1e-12)
    rows = [row.copy() for row in products(left, right)]
    np.testing.assert_allclose(rows, expected, atol=1e-12)
    held = sp.csr_matrix((np.arange(60).reshape(3, 20) % 3 == 0).astype(float))
    best = best_by_column(left, right, held, 0.2).toarray()
    nearest = np.where(held.toarray() > 0, expected[:, None], 0).max(2)
    np.testing.assert_allclose(best, np.where(nearest >= 0.2, nearest, 0), atol=1e-12)
    best_by_weight = best_by_column_of_each(left, right, held, 0.2, [weight, 0.5])
    np.testing.assert_array_equal(best_by_weight[weight].toarray(), best)
    some = np.array([3, 1])
    np.testing.assert_array_equal(all_products(left[some], right), all_products(left, right)[some])
    assert left.shape == (12, 38)


def test_at_the_ends_one_model_is_alone():
    sparse, dense = both(3, 9)
    for weight, alone in ((0.0, sparse), (1.0, dense)):
        together = Combined(sparse, dense, weight)
        np.testing.assert_allclose(
            all_products(together, together), all_products(alone, alone), atol=1e-12
        )


def test_weights_are_read_and_wrong_ones_refused():
    assert read_weights(",".join(map(str, WEIGHTS))) == WEIGHTS
    assert (WEIGHTS[0], WEIGHTS[-1], len(WEIGHTS)) == (0.0, 1.0, 11)
    for text in ("1.1", "-0.1", "half", ""):
        with pytest.raises(InputError, match="Weights must be numbers from 0 to 1"):
            read_weights(text)


def test_the_table_has_a_row_for_each_weight():
    own = {
        "distance": 0.4,
        "sets": {name: {"columns": 0.5, "values": 0.25} for name in DATA},
        "mean": 0.375,
        "semantic_recall": {"0.9": 0.6, "0.95": 0.5},
    }
    said = tables({"measured": "2026-01-02", "weights": {"0.0": own, "1.0": own}})
    first, _, *lines = said.splitlines()
    assert first.startswith("Measured 2026-01-02. F1 of columns and of values")
    assert lines[2].startswith("| 0.0 | 0.40 | .500 .250 |")
    assert lines[2].endswith("| .375 | .600 | .500 |")
    assert len({line.count("|") for line in lines}) == 1
