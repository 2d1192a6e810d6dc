"""Prices of projections: the worked example, and what keeps them free of arbitrage."""

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from pexeso.acquisition.tables import projection_price
from pexeso.errors import ColumnNotFoundError
from tests.acquisition import oracle
from tests.acquisition.motivating_tables import TABLES

NAMES = "abcd"
SETS = [chosen for n in range(5) for chosen in combinations(NAMES, n)]


def drawn(rng, n):
    return pa.table({name: rng.integers(0, 4, n) * 0.5 for name in NAMES})


@pytest.mark.parametrize(
    ("names", "expected"),
    [(["Gender"], 4.622556), (["Race"], 6), (["Gender", "Race"], 7.622556)],
)
def test_w5_prices(names, expected):
    bought = ("D3", ["Disease", *names]), ("D4", ["Age", *names])
    prices = [projection_price(TABLES[name], chosen) for name, chosen in bought]
    assert sum(prices) == pytest.approx(expected, abs=1e-6)


def test_they_are_the_entropies_of_rows():
    rng = np.random.default_rng(0)
    for _ in range(40):
        table = drawn(rng, 9)
        columns = table.select(["a", "b"]).to_pydict().values()
        price = projection_price(table, ["a", "b"])
        assert price == pytest.approx(sum(map(oracle.entropy, columns)), abs=1e-12)


def test_they_are_monotone_and_subadditive():
    rng = np.random.default_rng(1)
    for _ in range(10):
        table = drawn(rng, 12)
        price = {frozenset(one): projection_price(table, one) for one in SETS}
        for one in price:
            for other in price:
                both = price[one | other]
                assert max(price[one], price[other]) <= both + 1e-12
                assert both <= price[one] + price[other] + 1e-12


def test_nothing_costs_nothing():
    table = TABLES["D3"]
    assert projection_price(table, []) == projection_price(table.slice(4), ["Race"]) == 0
    assert projection_price(table, ["Race", "Race"]) == projection_price(table, ["Race"]) == 1.5


def test_refused_input():
    table = TABLES["D3"]
    with pytest.raises(ColumnNotFoundError, match="'Age'"):
        projection_price(table, ["Age"])
