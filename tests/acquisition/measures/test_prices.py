"""Prices of projections: the worked example, and what keeps them free of arbitrage."""

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from pexeso.acquisition.measures.prices import projection_price
from pexeso.errors import ColumnNotFoundError, InputError
from tests.acquisition import oracle
from tests.acquisition.motivating_tables import TABLES

NAMES = "abcd"
SETS = [chosen for n in range(5) for chosen in combinations(NAMES, n)]


def drawn(rng, n):
    return pa.table({name: rng.integers(0, 4, n) * 0.5 for name in NAMES})


@pytest.mark.parametrize(
    ("names", "by_sum", "joint"),
    [(["Gender"], 4.622556, 3.5), (["Race"], 6, 4), (["Gender", "Race"], 7.622556, 4)],
)
def test_w5_prices(names, by_sum, joint):
    for model, expected in (("sum", by_sum), ("joint", joint)):
        bought = ("D3", ["Disease", *names]), ("D4", ["Age", *names])
        prices = [projection_price(TABLES[name], chosen, model=model) for name, chosen in bought]
        assert sum(prices) == pytest.approx(expected, abs=1e-6)


def test_they_are_the_entropies_of_rows():
    rng = np.random.default_rng(0)
    for _ in range(40):
        table, counts = drawn(rng, 9), rng.integers(0, 3, 9)
        whole = table.take(pa.array(np.repeat(np.arange(9), counts)))
        rows = list(zip(*whole.select(["a", "b"]).to_pydict().values(), strict=True))
        expected = {"joint": oracle.entropy(rows)}
        expected["sum"] = sum(map(oracle.entropy, zip(*rows, strict=True)))
        for model, bits in expected.items():
            price = projection_price(table, ["a", "b"], model=model, scale=3, counts=counts)
            assert price == pytest.approx(3 * bits, abs=1e-12)


@pytest.mark.parametrize("model", ["sum", "joint"])
def test_they_are_monotone_and_subadditive(model):
    rng = np.random.default_rng(1)
    for _ in range(10):
        table = drawn(rng, 12)
        price = {frozenset(one): projection_price(table, one, model=model) for one in SETS}
        for one in price:
            for other in price:
                both = price[one | other]
                assert max(price[one], price[other]) <= both + 1e-12
                assert both <= price[one] + price[other] + 1e-12


def test_nothing_costs_nothing():
    table = TABLES["D3"]
    assert projection_price(table, []) == projection_price(table, [], model="joint") == 0
    assert (
        projection_price(table.slice(4), ["Race"])
        == projection_price(table, ["Race"], scale=0)
        == 0
    )
    assert projection_price(table, ["Race", "Race"]) == projection_price(table, ["Race"]) == 1.5


def test_refused_input():
    table = TABLES["D3"]
    with pytest.raises(InputError, match="model"):
        projection_price(table, ["Race"], model="rows")
    with pytest.raises(InputError, match="scale"):
        projection_price(table, ["Race"], scale=-1)
    with pytest.raises(ColumnNotFoundError, match="'Age'"):
        projection_price(table, ["Age"])
