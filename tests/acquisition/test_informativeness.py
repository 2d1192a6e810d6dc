"""Join informativeness: the worked example, and its definition on outer joins formed row by row."""

import math

import numpy as np
import pyarrow as pa
import pytest

from pexeso.acquisition.graph import join_informativeness
from pexeso.errors import ColumnNotFoundError, InputError
from tests.acquisition import oracle
from tests.acquisition.motivating_tables import TABLES
from tests.acquisition.oracle import table_informativeness

W4 = [
    ("DS", "D1", ["Zipcode"], 0.127783),
    ("DS", "D4", ["Age"], 0),
    ("DS", "D4", ["Population"], 0.687350),
    ("DS", "D4", ["Age", "Population"], 0.687350),
    ("DS", "D5", ["Age"], 0),
    ("D1", "D2", ["State"], 0.268494),
    ("D2", "D3", ["Disease"], 0.126787),
    ("D2", "D3", ["Cases"], 0.531454),
    ("D2", "D3", ["Disease", "Cases"], 0.687350),
    ("D2", "D5", ["Disease"], 0),
    ("D3", "D4", ["Gender"], 0),
    ("D3", "D4", ["Race"], 0),
    ("D3", "D4", ["Gender", "Race"], 0),
    ("D3", "D5", ["Disease"], 0.171652),
    ("D4", "D5", ["Age"], 0),
]


def drawn(rng, n, names="ab", n_values=5):
    return pa.table({name: rng.integers(0, n_values, n).astype(str) for name in names})


@pytest.mark.parametrize(("left", "right", "names", "expected"), W4)
def test_w4_full_join_graph(left, right, names, expected):
    result = table_informativeness(TABLES[left], TABLES[right], names)
    assert result == pytest.approx(expected, abs=1e-6)


def test_it_is_the_definition_on_the_outer_join():
    rng = np.random.default_rng(0)
    checked = 0
    for _ in range(300):
        left = drawn(rng, rng.integers(1, 9))
        right = drawn(rng, rng.integers(1, 9))
        for names in (["a"], ["b"], ["a", "b"]):
            rows = [
                list(zip(*table.select(names).to_pydict().values(), strict=True))
                for table in (left, right)
            ]
            if len(set(oracle.outer_join(*rows))) == 1:
                continue
            result = table_informativeness(left, right, names)
            assert result == pytest.approx(oracle.informativeness(*rows), abs=1e-12)
            assert 0 <= result <= 1
            checked += 1
    assert checked > 800


def test_it_is_symmetric_and_independent_of_the_order_of_rows_to_the_last_bit():
    rng = np.random.default_rng(1)
    for _ in range(50):
        left, right = rng.integers(0, 6, (2, 40))
        order = rng.permutation(40)
        value = join_informativeness(left, right)
        assert join_informativeness(right, left) == value
        assert join_informativeness(left[order], right[order]) == value


def test_2000_matched_1000_left_500_right():
    left, right = np.repeat([1, 1, 0], [2000, 1000, 500]), np.repeat([1, 0, 1], [2000, 1000, 500])
    assert join_informativeness(left, right) == pytest.approx(0.35065, abs=1e-5)


@pytest.mark.parametrize(("left", "right", "expected"), [([4], [2], 0), ([4], [0], 1)])
def test_one_distinct_pair(left, right, expected):
    assert join_informativeness(left, right) == expected


def test_no_row_gives_nan():
    assert math.isnan(join_informativeness([], []))


def test_missing_keys_match_nothing():
    left = pa.table({"k": ["a", None, "b"], "l": [1, 1, None]})
    right = pa.table({"k": ["a", None, "c"], "l": pa.array([1, 1, 3], pa.int16())})
    known = pa.table({"k": ["a", "b"]}), pa.table({"k": ["a", "c"]})
    assert table_informativeness(left, right, ["k"]) == table_informativeness(*known, ["k"])


def test_counts_beyond_64_bits_are_multiplied():
    small, large = (join_informativeness([2**n, 1, 1], [2**n, 0, 0]) for n in (20, 40))
    assert 0 < large < small


def test_refused_input():
    table = pa.table({"k": ["a"]})
    with pytest.raises(InputError, match="at least one column"):
        table_informativeness(table, table, [])
    with pytest.raises(ColumnNotFoundError, match="'other'"):
        table_informativeness(table, table, ["other"])
    with pytest.raises(InputError, match="same type"):
        table_informativeness(table, pa.table({"k": [1]}), ["k"])
    lists = pa.table({"k": [[1]]})
    with pytest.raises(InputError, match="Flatten"):
        table_informativeness(lists, lists, ["k"])
