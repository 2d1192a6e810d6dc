"""Join graphs in files: read back as they were, brought up to date, and refused when changed."""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pexeso.acquisition_search.graphs import stored_graph
from pexeso.acquisition_search.graphs.stored_graph import (
    StoredGraph,
    load_graph,
    save_graph,
    updated_graph,
    weighed_here,
)
from pexeso.acquisition_search.market.lake_market import Market
from pexeso.errors import InputError, OutputError
from tests.acquisition_search.graphs.small_lake import shop_tables
from tests.acquisition_search.indexes import opened_lake, write_lake


def market_of(lake, index, tables=None):
    if tables is not None:
        for path in [path for path in lake.rglob("*.csv") if path.is_file()]:
            path.unlink()
        write_lake(lake, tables)
    return Market.of(opened_lake(lake, index))


@pytest.fixture(scope="module")
def market(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stored")
    (folder / "lake").mkdir()
    return market_of(folder / "lake", folder / "index", shop_tables())


@pytest.fixture(scope="module")
def stored(market):
    return updated_graph(market)[0]


def test_a_graph_of_all_tables(market, stored):
    graph = stored.graph(market)
    assert sorted(graph.tables) == sorted(shop_tables())
    assert [names[0] for names in graph.components() if len(names) == 1] == ["apart.csv"]
    assert sorted(graph.edges) == [
        ("geo/cities.csv", "geo/states.csv"),
        ("geo/cities.csv", "shops.csv"),
        ("geo/cities.csv", "weather.csv"),
        ("shops.csv", "weather.csv"),
    ]
    (join,) = graph.edge("geo/cities.csv", "shops.csv").join_sets
    assert (join.pairs, join.n_keys, join.left_most, join.right_most) == (
        (("City", "city"),),
        6,
        1,
        2,
    )
    assert join.informativeness.matched == 12


def test_files_are_read_as_they_were_written(tmp_path, stored):
    save_graph(stored, tmp_path / "lake.graph")
    again = load_graph(tmp_path / "lake.graph")
    assert again.fingerprints == stored.fingerprints
    assert again.edges == stored.edges
    save_graph(StoredGraph(), tmp_path / "lake.graph")
    assert load_graph(tmp_path / "lake.graph").edges == {}
    assert [path.name for path in tmp_path.iterdir()] == ["lake.graph"]
    with pytest.raises(OutputError, match="cannot be written"):
        save_graph(stored, tmp_path / "none" / "lake.graph")


def test_updates_weigh_what_is_new(tmp_path, monkeypatch):
    lake = tmp_path / "lake"
    lake.mkdir()
    tables = shop_tables()
    first, changes = updated_graph(market_of(lake, tmp_path / "1", tables))
    assert changes.added == tuple(sorted(tables))
    assert changes.n_weighed >= 4

    same, changes = updated_graph(market_of(lake, tmp_path / "2"), first)
    assert same.edges == first.edges
    assert (changes.added, changes.changed, changes.removed, changes.n_weighed) == ((), (), (), 0)

    del tables["geo/states.csv"]
    tables["weather.csv"] = {name: values[:30] for name, values in tables["weather.csv"].items()}
    tables["sales.csv"] = {"shop_name": tables["shops.csv"]["shop_name"] * 2}
    counted = []

    def weigh(known, joins):
        counted.extend(joins)
        return weighed_here()(known, joins)

    market = market_of(lake, tmp_path / "3", tables)
    assert first.fresh(market) == {"apart.csv", "geo/cities.csv", "shops.csv"}
    updated, changes = updated_graph(market, first, weigh=weigh)
    assert changes.added == ("sales.csv",)
    assert changes.changed == ("weather.csv",)
    assert changes.removed == ("geo/states.csv",)
    assert all({"weather.csv", "sales.csv"} & set(join[:2]) for join in counted)
    assert changes.n_weighed == len(counted)
    assert updated.edges == updated_graph(market)[0].edges
    assert updated.fingerprints == updated_graph(market)[0].fingerprints


def test_joins_without_a_common_key_are_not_weighed_twice(tmp_path):
    (tmp_path / "lake").mkdir()
    people = ["Ann", "Bob", "Cy", "Di"]
    tables = {
        "a.csv": {"name": people, "town": ["t1", "t2", "t3", "t4"]},
        "b.csv": {"name": people, "town": ["t2", "t1", "t4", "t3"]},
    }
    market = market_of(tmp_path / "lake", tmp_path / "index", tables)
    first, changes = updated_graph(market)
    assert changes.n_weighed == 3
    assert [join_set.pairs for join_set in first.edges["a.csv", "b.csv"].join_sets] == [
        (("name", "name"),),
        (("town", "town"),),
    ]
    assert updated_graph(market, first)[1].n_weighed == 0


def test_tables_that_cannot_be_read_are_told(tmp_path):
    lake = tmp_path / "lake"
    lake.mkdir()
    market = market_of(lake, tmp_path / "index", shop_tables())
    first, _ = updated_graph(market)
    (lake / "weather.csv").unlink()
    updated, changes = updated_graph(Market.of(market.opened))
    assert "weather.csv" not in updated.fingerprints
    assert changes.notes[0].startswith("'weather.csv' is left out")
    assert set(updated.edges) == {ends for ends in first.edges if "weather.csv" not in ends}


def changed(rows, name, value):
    values = rows[name].to_pylist()
    at = next(at for at, cell in enumerate(values) if cell is not None)
    values[at] = value
    column = pa.array(values, rows.schema.field(name).type)
    return rows.set_column(rows.column_names.index(name), rows.schema.field(name), column)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("right", "no table"),
        ("right", "a"),
        ("left_columns", []),
        ("left_columns", [None]),
        ("left_columns", ["x", "y"]),
        ("value", 1.5),
        ("value", float("nan")),
        ("matched", -1.0),
        ("matched", float("inf")),
        ("n_keys", 0),
        ("null_rows", -1),
        ("fingerprint", None),
    ],
)
def test_what_was_changed_is_refused(tmp_path, stored, name, value):
    path = tmp_path / "lake.graph"
    save_graph(stored, path)
    pq.write_table(changed(pq.read_table(path), name, value), path)
    with pytest.raises(InputError, match=r"not a join graph that this version wrote.*again"):
        load_graph(path)


def test_other_files_are_refused(tmp_path, monkeypatch, stored):
    path = tmp_path / "lake.graph"
    with pytest.raises(InputError, match="not a join graph"):
        load_graph(path)
    path.write_bytes(b"PAR1 and nothing more")
    with pytest.raises(InputError, match="not a join graph"):
        load_graph(path)
    pq.write_table(pa.table({"left": ["a"]}), path)
    with pytest.raises(InputError, match="other columns"):
        load_graph(path)
    save_graph(stored, path)
    rows = pq.read_table(path)
    pq.write_table(rows.replace_schema_metadata({"pexeso join graph": "2"}), path)
    with pytest.raises(InputError, match="other columns"):
        load_graph(path)
    pq.write_table(pa.concat_tables([rows, rows.filter(pc.is_valid(rows["right"]))]), path)
    with pytest.raises(InputError, match="cannot be"):
        load_graph(path)
    for limit in ("MAX_ROWS", "MAX_BYTES"):
        with monkeypatch.context() as patch:
            patch.setattr(stored_graph, limit, 3)
            pq.write_table(rows, path)
            with pytest.raises(InputError, match="more than 3"):
                load_graph(path)
