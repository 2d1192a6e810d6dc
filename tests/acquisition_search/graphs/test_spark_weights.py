"""Joins weighed by Spark are worth what this process finds."""

import numpy as np
import pyarrow as pa
import pytest

from pexeso.acquisition_search.graphs.spark_weights import key_counts, weighed_by_spark
from pexeso.acquisition_search.graphs.stored_graph import updated_graph, weighed_here
from pexeso.acquisition_search.market.lake_market import Market
from tests.acquisition_search.indexes import opened_lake, write_lake


def random_tables(seed):
    random = np.random.default_rng(seed)
    words = ["a", "b b", "é", "1", "1.0", "01", "", "-", "x,y", "\x1fz"]
    tables = {}
    for at, n_rows in enumerate((40, 25, 60)):
        drawn = {
            name: [f'"{words[index]}"' for index in random.integers(0, n_words, n_rows)]
            for name, n_words in (("one", 10), ("two", 4), ("three", 7))
        }
        tables[f"t{at}.csv"] = drawn
    tables["t3.csv"] = {"one": ["q", "r"], "two": ["s", "t"], "three": ["-", "n/a"]}
    return tables


def joins_of(tables):
    pairs = [(name, name) for name in ("one", "two", "three")]
    sets = [pairs[:1], pairs[1:2], [pairs[0], pairs[1]], sorted(pairs), [("one", "three")]]
    names = sorted(tables)
    return [
        (left, right, tuple(chosen))
        for at, left in enumerate(names)
        for right in names[at + 1 :]
        for chosen in sets
    ]


@pytest.mark.spark
def test_spark_weighs_as_this_process_does(spark, tmp_path):
    tables = random_tables(0)
    write_lake(tmp_path / "lake", tables)
    market = Market.of(opened_lake(tmp_path / "lake", tmp_path / "index"))
    columns = {name: list(table) for name, table in tables.items()}
    read = {table.name: table for table in market.tables(sorted(tables), columns)}
    joins = joins_of(tables)
    here = list(weighed_here()(read, joins))
    join_sets = list(weighed_by_spark(spark, market.rows)(read, joins))
    assert len(join_sets) == len(here) == 30
    for one, other in zip(join_sets, here, strict=True):
        assert one.pairs == other.pairs
        assert (one.n_keys, one.left_most, one.right_most) == (
            other.n_keys,
            other.left_most,
            other.right_most,
        )
        mine, theirs = one.informativeness, other.informativeness
        assert mine.value == pytest.approx(theirs.value, abs=1e-9, nan_ok=True)
        assert (mine.matched, mine.left_only, mine.right_only, mine.null_rows) == (
            theirs.matched,
            theirs.left_only,
            theirs.right_only,
            theirs.null_rows,
        )
    assert any(np.isnan(join_set.informativeness.value) for join_set in here) or any(
        not join_set.n_keys for join_set in here
    )
    stored, _ = updated_graph(market)
    by_spark, changes = updated_graph(market, weigh=weighed_by_spark(spark, market.rows))
    assert changes.n_weighed > 3
    assert by_spark.edges.keys() == stored.edges.keys()
    assert list(weighed_by_spark(spark, market.rows)({}, [])) == []


def test_keys_are_counted_whole():
    rows = pa.table({"a": ["x", "x", "y", None, " x"], "b": ["1.0", "1", "2", "3", "1"]})
    keys, counts, missing = key_counts(rows, ["a", "b"])
    totals = dict(zip(map(tuple, keys.to_pylist()), counts.to_pylist(), strict=True))
    assert totals == {("x", "1"): 3, ("y", "2"): 1}
    assert missing == 1
    keys, counts, missing = key_counts(rows.slice(3, 1), ["a"])
    assert (keys.to_pylist(), counts.to_pylist(), missing) == ([], [], 1)
