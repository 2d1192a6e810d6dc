"""The markets of the benchmark of acquisition: whole, damaged as said, and the same everywhere."""

import hashlib
import json
from collections import Counter
from itertools import pairwise
from unittest.mock import ANY

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from scipy.sparse import csgraph

from benchmarks import report
from benchmarks.acquisition import tpce, tpch
from benchmarks.acquisition.damage import (
    JOIN_COLUMNS,
    domain_size,
    with_join_columns,
    with_wrong_values,
)
from benchmarks.acquisition.draws import Draws
from benchmarks.acquisition.market import (
    column_prices,
    determined,
    read_market,
    shortest_path,
    write_market,
)
from benchmarks.cli import main
from benchmarks.datasets.tpch import write_tpch
from pexeso.acquisition.correlation import correlation
from pexeso.acquisition.quality import Dependency, QualityOfCounts, quality
from pexeso.errors import InputError, LakeError, MissingPackageError

ROWS, SCALE = 2000, 0.01

# What each column refers to in the market like TPC-E.
REFERENCES = {
    "accountid": "customer_account",
    "addressid": "address",
    "brokerid": "broker",
    "companyid": "company",
    "customerid": "customer",
    "exchangeid": "exchange",
    "industryid": "industry",
    "sectorid": "sector",
    "statusid": "status_type",
    "symbol": "security",
    "taxid": "taxrate",
    "tradeid": "trade",
    "tradetypeid": "trade_type",
    "watchlistid": "watch_list",
    "zipcode": "zip_code",
}


@pytest.fixture(scope="module")
def tpch_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tpch")
    try:
        write_tpch(folder, SCALE)
    except MissingPackageError:
        pytest.skip("tpchgen-cli, which makes the tables of TPC-H, is not installed")
    return folder


@pytest.fixture(scope="module", params=["tpch", "tpce"])
def market(request):
    """What is known of a market, its clean tables and its tables."""
    if request.param == "tpce":
        return tpce.ABOUT, dict(tpce.clean_tables(ROWS)), dict(tpce.tpce_tables(ROWS))
    files = request.getfixturevalue("tpch_files")
    made = dict(tpch.tpch_tables(files=files))
    return tpch.ABOUT, {name: tpch.clean_table(files, name) for name in made}, made


def test_streams_are_those_of_their_purpose_and_the_same_everywhere():
    first = Draws(0, "a", "b").raw(3)
    assert first.tolist() == Draws(0, "a", "b").raw(3).tolist()
    assert len({tuple(Draws(*of).raw(3)) for of in [(0, "a", "b"), (1, "a", "b"), (0, "ab")]}) == 3
    assert first[0] == FIRST_OF_STREAM


FIRST_OF_STREAM = 5730794819506203312


def test_draws_lie_within_their_limits_and_are_as_likely_as_said():
    draws = Draws(3, "test")
    assert set(draws.between(400, 2, 5)) == {2, 3, 4, 5}
    assert sorted(draws.order(50)) == list(range(50))
    assert draws.below(0, 1).tolist() == []
    assert (draws.below(1000, np.array([1, 1000] * 500)).reshape(-1, 2)[:, 0] == 0).all()
    skewed = np.bincount(draws.skewed(100_000, 40), minlength=40)
    assert skewed[0] / skewed[30] == pytest.approx(4, rel=0.15)
    assert draws.chance(10_000, 30).mean() == pytest.approx(0.3, abs=0.02)
    with pytest.raises(InputError, match="at least 1"):
        draws.below(2, 0)


def test_markets_have_the_tables_that_are_known(market):
    about, clean, made = market
    assert (len(made), len(about.damaged)) == {"tpch": (8, 6), "tpce": (29, 20)}[about.name]
    assert set(made) == set(clean) == set(about.dependencies)
    assert set(about.numeric) <= set().union(*(table.column_names for table in clean.values()))
    for name, table in made.items():
        assert 0 < len(set(table.column_names) & set(JOIN_COLUMNS)) <= 4
        assert not any(column.null_count for column in table.columns), name
        assert all(
            kind.id not in (pa.float32().id, pa.string_view().id) for kind in table.schema.types
        )
        for dependency in about.dependencies[name]:
            assert {*dependency.left, dependency.right} <= set(table.column_names)


def test_only_join_columns_are_in_several_tables_without_being_keys(market):
    about, clean, _ = market
    shared = Counter(column for table in clean.values() for column in table.column_names)
    keys = {column for column, count in shared.items() if count > 1}
    wanted = {
        "tpch": {"custkey", "nationkey", "orderkey", "partkey", "regionkey", "suppkey"},
        "tpce": {*REFERENCES, "tier"},
    }
    assert keys == wanted[about.name]
    assert not keys & set(about.numeric)


def test_dependencies_hold_before_values_are_made_wrong(market):
    about, clean, _ = market
    for name, table in clean.items():
        for dependency in about.dependencies[name]:
            right = QualityOfCounts(table, [dependency]).correct().mean()
            assert right == 1 or (dependency.left == ("orderdate",) and right > 0.95), dependency


def test_three_tenths_of_the_rows_of_damaged_tables_have_one_wrong_value(market):
    about, clean, made = market
    for name, table in made.items():
        wrong = sum(
            (table.column(column).combine_chunks().to_numpy(zero_copy_only=False) != old)
            for column in clean[name].column_names
            for old in [clean[name].column(column).combine_chunks().to_numpy(zero_copy_only=False)]
        ).astype(int)
        n = table.num_rows if name in about.damaged else 0
        assert wrong.max(initial=0) == (1 if n > 3 else 0), name
        assert wrong.sum() == n * 30 // 100, name


def test_wrong_values_break_dependencies(market):
    about, _, made = market
    broken = [
        name for name in about.damaged if quality(made[name], about.dependencies[name]) < 0.999
    ]
    assert len(broken) >= {"tpch": 3, "tpce": 18}[about.name]
    assert all(quality(made[name], about.dependencies[name]) > 0.65 for name in about.damaged)


def test_join_columns_are_in_several_tables_and_cover_most_of_their_domain(market):
    about, _, made = market
    for column in JOIN_COLUMNS:
        tables = [table for table in made.values() if column in table.column_names]
        size = domain_size(0, about.name, column)
        assert len(tables) > 1
        for table in tables:
            values = set(table.column(column).to_pylist())
            assert values <= set(range(size))


def test_queries_have_paths_of_their_lengths(market):
    about, _, made = market
    schemas = {name: table.column_names for name, table in made.items()}
    names = sorted(made)
    edges = [[len({*schemas[one]} & {*schemas[two]}) for two in names] for one in names]
    steps = csgraph.shortest_path(np.array(edges), unweighted=True)
    lengths = []
    for query in about.queries:
        (source,), (target,) = query.source, query.target
        assert source in schemas[query.path[0]]
        assert target in schemas[query.path[-1]]
        assert len(query.path) == query.length <= about.max_tables
        assert all({*schemas[one]} & {*schemas[two]} for one, two in pairwise(query.path))
        starts, ends = (
            [at for at, name in enumerate(names) if attribute in schemas[name]]
            for attribute in (source, target)
        )
        shortest = steps[np.ix_(starts, ends)].min() + 1
        assert len(shortest_path(schemas, source, target)) == shortest
        lengths.append(shortest)
    assert lengths == {"tpch": [2, 3, 4], "tpce": [3, 5, 8]}[about.name]
    assert [query.length for query in about.queries] == {"tpch": [2, 3, 5], "tpce": [3, 5, 8]}[
        about.name
    ]


def test_a_path_that_is_not_there_is_empty():
    assert shortest_path({"a": ["x"], "b": ["y"]}, "x", "y") == ()
    assert shortest_path({"a": ["x", "y"]}, "x", "y") == ("a",)
    with pytest.raises(InputError, match="'z'"):
        shortest_path({"a": ["x"]}, "x", "z")


def test_references_of_the_market_like_tpce_lead_somewhere():
    tables = dict(tpce.tpce_tables(ROWS))
    for name, table in tables.items():
        for column in set(table.column_names) & set(REFERENCES):
            known = set(tables[REFERENCES[column]].column(column).to_pylist())
            assert set(table.column(column).to_pylist()) <= known, (name, column)


def test_keys_of_the_market_like_tpce_are_in_one_row():
    for name, table in tpce.clean_tables(ROWS):
        key = tpce.ABOUT.dependencies[name][0].left
        if name not in ("company_competitor", "customer_taxrate"):
            assert table.group_by(list(key)).aggregate([]).num_rows == table.num_rows, name


def test_ends_of_the_long_path_are_correlated_as_planted():
    tables = dict(tpce.clean_tables(20_000))
    path = tpce.ABOUT.queries[2].path
    joined = tables[path[0]].to_pandas()
    for name in path[1:]:
        joined = joined.merge(tables[name].to_pandas())
    joined = pa.table({name: joined[name] for name in ("sectorname", "taxregion")})
    shuffled = joined.set_column(
        1, "taxregion", joined.column(1).take(pa.array(Draws(0, "x").order(joined.num_rows)))
    )
    planted, by_chance = (
        correlation(table, ["sectorname"], ["taxregion"]) for table in (joined, shuffled)
    )
    assert planted > 0.2
    assert by_chance < 0.02


def test_the_largest_table_has_as_many_rows_as_asked_for():
    rows = {name: table.num_rows for name, table in tpce.clean_tables(20_000)}
    assert max(rows.values()) == rows["watch_item"] == 20_000
    with pytest.raises(InputError, match="at least 1,000"):
        next(tpce.tpce_tables(999))


def test_the_market_like_tpce_is_the_same_on_every_machine():
    digest = hashlib.sha256()
    for name, table in tpce.tpce_tables(1000, seed=5):
        digest.update(repr((name, table.to_pydict())).encode())
    assert digest.hexdigest()[:16] == TPCE_HASH


TPCE_HASH = "f77cfb2f59ae885c"


def test_tpch_does_not_depend_on_the_order_of_calls_but_on_the_seed(tpch_files):
    one, two = (dict(tpch.tpch_tables(seed=seed, files=tpch_files)) for seed in (0, 1))
    again = dict(tpch.tpch_tables(files=tpch_files))
    assert all(one[name].equals(again[name]) for name in one)
    assert not one["orders"].equals(two["orders"])


def test_amounts_of_tpch_are_those_of_its_decimals(tpch_files):
    decimals = pq.read_table(tpch_files / "orders.parquet").column("o_totalprice").to_pylist()
    prices = tpch.clean_table(tpch_files, "orders").column("totalprice").to_pylist()
    assert prices == [float(value) for value in decimals]


def test_wrong_values_are_others_of_their_column():
    table = pa.table({"k": [1, 1, 2, 2] * 5, "v": ["a", "b", "a", "b"] * 5, "c": ["x"] * 20})
    of = {"seed": 1, "market": "m", "table_name": "t"}
    wrong = with_wrong_values(table, [Dependency(("k",), "v"), Dependency(("k",), "c")], **of)
    assert set(wrong.column("v").to_pylist()) == {"a", "b"}
    assert sum(a != b for a, b in zip(table["v"], wrong["v"], strict=True)) == 6
    assert wrong.select(["k", "c"]).equals(table.select(["k", "c"]))
    assert with_wrong_values(table, [Dependency((), "c")], **of).equals(table)


def test_join_columns_have_parts_of_one_domain():
    table = pa.table({"k": np.arange(60_000)})
    parts = [
        set(with_join_columns(table, ["H1"], seed=0, market="m", table_name=name)["H1"].to_pylist())
        for name in "abcdefgh"
    ]
    size = domain_size(0, "m", "H1")
    assert all(0.6 * size <= len(part) <= size for part in parts)
    assert len(set(map(len, parts))) > 4
    sizes = sorted(domain_size(seed, "m", "H1") for seed in range(300))
    assert (sizes[0], sizes[-1]) == (50, 4938)
    assert sizes[150] == pytest.approx(500, rel=0.3)


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_a_market_is_read_as_it_was_written(tmp_path, file_format):
    made = dict(tpce.tpce_tables(1000))
    summary = write_market(
        tmp_path, tpce.ABOUT, made.items(), options={"seed": 0}, file_format=file_format
    )
    market = read_market(tmp_path)
    assert market.about == tpce.ABOUT
    assert market.options == {"seed": 0}
    assert market.schemas == {name: tuple(made[name].column_names) for name in sorted(made)}
    for name, table in made.items():
        assert market.tables[name].to_pydict() == table.to_pydict()
        prices = column_prices(table)
        assert {c: market.prices[name, c] for c in table.column_names} == prices
        assert summary[name]["price"] == pytest.approx(sum(prices.values()), rel=1e-12)
        assert summary[name]["rows"] == table.num_rows
    assert sum(len(table.column_names) for table in made.values()) == len(market.prices)


def test_a_price_is_the_entropy_of_a_column():
    assert column_prices(pa.table({"a": [1, 2, 3, 4], "b": [1, 1, 2, 2]})) == {"a": 2.0, "b": 1.0}


def test_a_folder_without_a_market_is_refused(tmp_path):
    with pytest.raises(LakeError, match="holds no market"):
        read_market(tmp_path)


def test_dependencies_are_one_for_each_attribute():
    assert determined(("k",), "a", "b") == (Dependency(("k",), "a"), Dependency(("k",), "b"))


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_the_command_tells_of_a_market_and_keeps_it(tmp_path, monkeypatch, file_format):
    monkeypatch.setattr(report, "RESULTS", tmp_path / "results")
    arguments = ["acquisition", "tpce", "--rows", "1000", "--seed", "5", "--format", file_format]
    run = CliRunner().invoke(main, [*arguments, "--folder", str(tmp_path), "--write"])
    assert run.exit_code == 0, run.output
    document = json.loads(run.output)
    assert json.loads((tmp_path / "results" / "acquisition" / "tpce.json").read_text()) == {
        **document,
        "origin": ANY,
    }
    assert {"machine", "seed", "options", "seconds"} <= set(document)
    assert [len(query["shortest"]) for query in document["queries"].values()] == [3, 5, 8]
    assert sum(table["damaged"] for table in document["tables"].values()) == 20
    assert str(tmp_path) not in run.output
    market = read_market(tmp_path / "tpce")
    assert market.options == {"seed": 5, "rows": 1000}
    made = dict(tpce.tpce_tables(1000, seed=5))
    assert {name: table.num_rows for name, table in made.items()} == {
        name: table["rows"] for name, table in document["tables"].items()
    }
    assert all(market.tables[name].to_pydict() == made[name].to_pydict() for name in made)


def test_an_unknown_part_is_refused():
    run = CliRunner().invoke(main, ["acquisition", "tpcx"])
    assert run.exit_code == 2
    assert "Got 'tpcx'" in run.stderr
