"""Dependencies of tables: discovered on samples of rows, and read from files."""

import numpy as np
import pyarrow as pa

from pexeso.acquisition import quality
from pexeso.acquisition.quality import (
    Dependency,
    LazyDependencies,
    discovered,
    sampled,
)


def places(n_rows):
    zips = [f"z{at % 50}" for at in range(n_rows)]
    states = [f"s{int(zip_[1:]) % 7}" for zip_ in zips]
    streets = [f"street {at}" for at in range(n_rows)]
    return pa.table({"zip": zips, "state": states, "street": streets, "one": zips})


def test_discovered_on_a_sample():
    rules = discovered(places(400).select, places(1).column_names, ["one"])
    assert rules == (Dependency(("zip",), "state"),)
    assert discovered(places(400).select, ["zip"], []) == ()


def test_wide_tables_are_looked_at_in_part(monkeypatch):
    monkeypatch.setattr(quality, "MAX_COLUMNS", 3)
    rows = places(400)
    read = []

    def select(names):
        read.extend(names)
        return rows.select(names)

    discovered(select, rows.column_names, [])
    assert read == ["zip", "state", "street"]


def test_samples_do_not_depend_on_the_order_of_rows():
    rows = places(300)
    order = np.random.default_rng(0).permutation(300)
    one, counts = sampled(rows, 100)
    other, counts_of_other = sampled(rows.take(pa.array(order)), 100)
    assert one.num_rows == 100
    assert one.to_pylist() == other.to_pylist()
    assert counts.tolist() == counts_of_other.tolist()
    both = pa.concat_tables([rows, rows.slice(0, 20)])
    whole, counts = sampled(both, 1000)
    assert (whole.num_rows, counts.sum()) == (300, 320)
    # Cells that change places are another row, and a missing cell is no empty text.
    swapped = pa.table({"a": ["x", "y", None], "b": ["y", "x", ""]})
    assert sampled(swapped, 10)[0].num_rows == 3
    assert sampled(rows.slice(0, 0), 10)[0].num_rows == 0


def test_worked_out_when_they_are_asked_for():
    made = []

    def make():
        made.append(1)
        return (Dependency(("a",), "b"),)

    lazy = LazyDependencies(make)
    assert made == []
    assert list(lazy) == [Dependency(("a",), "b")]
    assert (len(lazy), lazy[0].right, made) == (1, "b", [1])
