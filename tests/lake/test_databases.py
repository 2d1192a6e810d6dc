"""A database is a lake: its tables as they are now, read again where they have changed."""

import pyarrow as pa
import pytest
from click.testing import CliRunner
from read_tables import index_content, lake_content

from pexeso.errors import InputError, LakeError, PlaceError
from pexeso.faces.cli.main import cli
from pexeso.index import build_index, open_index
from pexeso.lake.catalog import Catalog
from pexeso.lake.choose import ColumnRules
from pexeso.lake.containers import reader
from pexeso.lake.containers.reader import read_table
from pexeso.lake.rows import read_typed_rows
from pexeso.results.query import read_query
from pexeso.store.io import catalogues
from pexeso.store.io.location import locate
from pexeso.store.opening import open_store_anywhere
from tests.postgres_server import PASSWORD, database, postgres_port  # noqa: F401  (fixtures)

TOWNS = ["Oslo", "Rome", "Bern", "Bonn", "Lima", "Oldtown", "Oldham"]
RULES = ColumnRules(kinds=("text", "date", "number"), min_rows=1, min_distinct=1)


@pytest.fixture
def reads(monkeypatch):
    """Return the names of the tables that were read since the last look."""
    names = []
    real = reader._read_in_catalogue
    monkeypatch.setattr(
        reader, "_read_in_catalogue", lambda source: names.append(source.shown) or real(source)
    )
    return names


def towns(name, n=7):
    rows = ", ".join(f"('{town}', {i}, {i} / 4.0)" for i, town in enumerate(TOWNS[:n]))
    return [
        f'CREATE TABLE IF NOT EXISTS {name} (town text, n int, "a size" numeric(9, 2))',
        f"INSERT INTO {name} VALUES {rows}",
    ]


def reasons(index):
    catalog = Catalog(open_store_anywhere(index.path).catalog_files)
    return {row["table"]: row["reason"] for row in catalog.tables(["table", "reason"]).to_pylist()}


@pytest.mark.slow
def test_an_index_is_that_of_the_tables_of_now(database, tmp_path, reads):  # noqa: F811
    exported = tmp_path / "exported"
    exported.mkdir()
    names = [f"t{n}.csv" for n in range(4)]
    database.run(*(text for name in names for text in towns(f'"{name}"')))
    for name in names:
        database.export(f'"{name}"', exported / f"public.{name}")
    index = build_index(database.url, tmp_path / "ix", rules=RULES)
    changes = {
        'INSERT INTO "t1.csv" VALUES (\'Kiel, "here"\', NULL, 0.5)': "t1.csv",
        "UPDATE \"t2.csv\" SET town = 'Łódź' WHERE n < 3": "t2.csv",
        'DELETE FROM "t3.csv" WHERE n > 3': "t3.csv",
        'ALTER TABLE "t0.csv" RENAME town TO place': "t0.csv",
        "ALTER TABLE \"t1.csv\" ADD day date DEFAULT '2020-01-02'": "t1.csv",
        'ALTER TABLE "t1.csv" DROP n': "t1.csv",
        'TRUNCATE "t2.csv"': "t2.csv",
        "VACUUM ANALYZE": None,
    }
    for change, changed in {"SELECT 1": None, **changes}.items():
        reads.clear()
        database.run(change)
        index.append()
        assert reads == ([f"public.{changed}"] if changed else []), change
        if changed:
            database.export(f'"{changed}"', exported / f"public.{changed}")
        assert index_content(index) == lake_content(exported, RULES), change


@pytest.mark.slow
def test_of_many_tables_those_that_changed_are_read(database, tmp_path, reads):  # noqa: F811
    database.run(*(text for n in range(12) for text in towns(f"t{n}")))
    index = build_index(database.url, tmp_path / "ix")
    assert len(reads) == 12
    reads.clear()
    database.run(*towns("t7", 1), "DELETE FROM t10 WHERE n = 1", "DROP TABLE t9", *towns("new"))
    update = index.append(delete_missing=True)
    assert sorted(reads) == ["public.new", "public.t10", "public.t7"]
    assert (update.new, update.changed, update.deleted, update.unchanged) == (1, 2, 1, 9)
    assert not index.append(compare="content").committed
    assert len(reads) == 3


def test_a_match_is_joined_and_explained(database, tmp_path):  # noqa: F811
    database.run(*towns("towns"))
    index = build_index(database.url, tmp_path / "ix")
    match = index.search(TOWNS[:3])[0]
    assert (match.table, match.column) == ("public.towns", "town")
    joined = match.join(pa.table({"town": ["Rome", "Kiel"]}), on="town")
    assert joined["n"].to_pylist() == [1, None]
    query = f"{database.url}/public.towns:town"
    assert index.search(read_query(query))[0].matched == len(TOWNS)
    explanation = index.explain(read_query(query), "public.towns", "town")
    assert explanation.match.matched == len(TOWNS)


def test_types_are_those_of_the_database(database):  # noqa: F811
    database.run(
        "CREATE TYPE mood AS ENUM ('good', 'bad')",
        "CREATE TABLE t (i int, n numeric, d date, at timestamptz, u uuid, j jsonb, f real, m mood,"
        " l int[], b bytea, c char(5), ip inet, v interval)",
        "INSERT INTO t VALUES (1, 1.50, '2020-01-02', '2020-01-02 03:04:05+02', "
        "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', '{\"a\": 1}', 0.1, 'bad', '{1,2}', '\\xff00', "
        "'x', '10.0.0.1', '1 day 2:03')",
        "INSERT INTO t (d, f) VALUES ('infinity', 'NaN')",
    )
    rows, typed = read_typed_rows(database.url, "public.t")
    first, second = rows.to_pylist()
    assert first == {
        "i": "1",
        "n": "1.50",
        "d": "2020-01-02",
        "at": "2020-01-02 01:04:05Z",
        "u": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "j": '{"a": 1}',
        "f": "0.1",
        "m": "bad",
        "l": "{1,2}",
        "b": "\\xff00",
        "c": "x",
        "ip": "10.0.0.1/32",
        "v": "1 day 02:03:00",
    }
    assert set(second.values()) == {None}
    types = {name: column.type for name, column in zip(rows.column_names, typed, strict=True)}
    assert (types["i"], types["d"]) == (pa.int32(), pa.date32())
    assert types["at"] == pa.timestamp("us", "UTC")


def test_what_cannot_be_read_is_left_out_with_the_reason(database, tmp_path):  # noqa: F811
    database.run(
        *towns("towns"),
        *towns("secret"),
        "CREATE TABLE nothing ()",
        "CREATE VIEW broken AS SELECT n / (n - 6) AS share FROM towns",
        "CREATE VIEW good AS SELECT town FROM towns WHERE n < 6",
        'CREATE TABLE "odd/na:me.%#1" AS SELECT * FROM towns',
        "CREATE SCHEMA other",
        "CREATE TABLE other.towns AS SELECT * FROM towns",
        "CREATE TABLE parts (town text, n int) PARTITION BY LIST (n)",
        "CREATE TABLE part_1 PARTITION OF parts FOR VALUES IN (1)",
        "INSERT INTO parts VALUES ('Oslo', 1)",
    )
    index = build_index(database.url, tmp_path / "ix", rules=RULES)
    left_out = {table: reason for table, reason in reasons(index).items() if reason}
    assert set(left_out) == {"public.broken", "public.nothing"}
    assert "division by zero" in left_out["public.broken"]
    assert set(reasons(index)) - set(left_out) == {
        *("public.towns", "public.secret", "public.good", "other.towns", "public.parts"),
        "public.odd%2Fna%3Ame.%25#1",
    }
    matches = {match.table for match in index.search(TOWNS, k=20, fold_copies=False)}
    assert "public.odd%2Fna%3Ame.%25#1" in matches
    database.run("INSERT INTO parts VALUES ('Rome', 1)")
    assert read_table(f"{database.url}/public.parts").n_rows == 2
    assert index.append().changed >= 1


def test_a_table_is_read_once_that_is_granted(database, tmp_path):  # noqa: F811
    password = PASSWORD.replace("'", "''")
    database.run(*towns("mine"), *towns("theirs"))
    database.run(f"CREATE ROLE plain LOGIN PASSWORD '{password}'", "GRANT SELECT ON mine TO plain")
    index = build_index(database.url.replace("reader", "plain"), tmp_path / "ix")
    assert reasons(index)["public.mine"] is None
    assert "permission denied" in reasons(index)["public.theirs"]
    assert not index.append().committed
    database.run("GRANT SELECT ON theirs TO plain")
    assert index.append().changed == 1
    assert set(reasons(index).values()) == {None}
    database.run("DROP OWNED BY plain", "DROP ROLE plain")


def test_a_lost_connection_loses_nothing(database, tmp_path, monkeypatch):  # noqa: F811
    database.run(*(text for n in range(5) for text in towns(f"t{n}", 5)))
    index = build_index(database.url, tmp_path / "ix")
    before = index_content(index)
    database.run(*(f"INSERT INTO t{n} VALUES ('Kiel', 9, 1)" for n in range(5)))
    real, n_read = catalogues.Postgres._read, 0

    def read(self, cursor, *args):
        nonlocal n_read
        n_read += 1
        if n_read == 3:
            cursor.execute("SELECT pg_backend_pid()")
            [[number]] = cursor.fetchall()
            database.run(f"SELECT pg_terminate_backend({number})")
        return real(self, cursor, *args)

    with monkeypatch.context() as patched:
        patched.setattr(catalogues.Postgres, "_read", read)
        with pytest.raises(PlaceError, match="broken off"):
            index.append()
    assert n_read == 3
    index = open_index(tmp_path / "ix")
    assert index_content(index) == before
    assert index.append().changed == 5
    build_index(database.url, tmp_path / "new")
    assert index_content(index) == index_content(open_index(tmp_path / "new"))


def test_a_table_that_goes_while_others_are_read(database, tmp_path, monkeypatch):  # noqa: F811
    database.run(*towns("a"), *towns("b"))
    real = catalogues.Postgres._read

    def read(self, cursor, name, columns):
        if name == "public.b":
            database.run("DROP TABLE b")
        return real(self, cursor, name, columns)

    monkeypatch.setattr(catalogues.Postgres, "_read", read)
    index = build_index(database.url, tmp_path / "ix")
    assert "does not exist" in reasons(index)["public.b"]
    assert reasons(index)["public.a"] is None


@pytest.mark.slow
def test_no_password_is_stored_or_shown(database, tmp_path, capfd):  # noqa: F811
    database.run(*towns("towns"), *towns("more"))
    path = str(tmp_path / "ix")
    said = []
    for words, environment in (
        (["index", database.url, path], {}),
        (["append", path], {}),
        (["info", path, "--json"], {}),
        (["search", path, f"{database.url}/public.towns:town", "--json"], {}),
        (["append", path], {"PGPASSWORD": f"{PASSWORD}x"}),
        (["append", path], {"PGPORT": "1"}),
        (["index", database.url.replace("@", f":{PASSWORD}@"), f"{path}2"], {}),
        (["index", f"{database.url}?password={PASSWORD}", f"{path}2"], {}),
    ):
        run = CliRunner().invoke(cli, words, env=environment)
        said.append((run.exit_code, f"{run.output}{run.stderr}{capfd.readouterr()}"))
    assert [code == 0 for code, _ in said] == [True] * 4 + [False] * 4, said
    texts = [text for _, text in said]
    files = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    for part in (PASSWORD, "p:w", "w@/", "#%'", "$ü"):
        assert not any(part in text for text in texts)
        assert not any(part.encode() in data for data in files)
    assert "password authentication failed" in texts[4]
    assert "without a password" in texts[6]
    assert "without a password" in texts[7]


@pytest.mark.parametrize(
    "url",
    [
        *("postgresql://me:secret@host/db", "postgresql://me:s/secret@1@host/db"),
        *("postgresql://host/db?password=secret", "postgresql://secret", "iceberg://secret/a/b"),
    ],
)
def test_a_password_in_an_url_is_refused(url):
    with pytest.raises(InputError, match="without a password") as refused:
        locate(url)
    assert "secret" not in str(refused.value)


def test_a_server_that_is_away(tmp_path):
    pytest.importorskip("adbc_driver_postgresql")
    with pytest.raises(LakeError, match="Connection refused"):
        build_index("postgresql://me@127.0.0.1:1/lake", tmp_path / "ix")


@pytest.fixture
def iceberg(tmp_path, monkeypatch):
    """Return a catalogue that the environment names."""
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    settings = {"uri": f"sqlite:///{tmp_path}/catalogue.db", "warehouse": f"file://{tmp_path}/w"}
    for name, value in {"type": "sql", **settings}.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{name.upper()}", value)
    config = pytest.importorskip("pyiceberg.utils.config").Config
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", config())  # read when it was imported
    (tmp_path / "w").mkdir()
    catalogue = sql.SqlCatalog("lake", **settings)
    catalogue.create_namespace("geo")
    catalogue.create_namespace("food")
    return catalogue


def test_the_tables_of_a_catalogue_of_iceberg(iceberg, tmp_path, reads):
    rows = pa.table({"town": TOWNS, "n": range(len(TOWNS))})
    tables = [iceberg.create_table(f"geo.t{n}", rows.schema) for n in range(3)]
    for table in tables:
        table.append(rows)
    fruit = pa.table({"fruit": ["apple", "pear", "plum", "fig", "lime"]})
    iceberg.create_table("food.fruit", fruit.schema).append(fruit)
    iceberg.create_table("food.empty", fruit.schema)
    index = build_index("iceberg://lake", tmp_path / "ix")
    assert set(reasons(index).values()) == {None}
    match = index.search(TOWNS)[0]
    assert match.table.startswith("geo.t")
    assert match.join(pa.table({"town": ["Rome"]}), on="town")["n"].to_pylist() == [1]
    reads.clear()
    assert not index.append().committed
    assert reads == []
    with tables[1].update_schema() as change:
        change.rename_column("town", "place")
    tables[2].delete("n >= 6")
    iceberg.drop_table("food.fruit")
    update = index.append(delete_missing=True)
    assert (sorted(reads), update.deleted) == (["geo.t1", "geo.t2"], 1)
    matches = {match.table: match for match in index.search(TOWNS, k=9, fold_copies=False)}
    assert {name: match.matched for name, match in matches.items()} == {
        **{"geo.t0": 7, "geo.t1": 7, "geo.t2": 6}
    }
    assert matches["geo.t1"].column == "place"


def test_a_table_of_iceberg_whose_files_are_gone(iceberg, tmp_path):
    rows = pa.table({"town": TOWNS})
    for name in ("geo.whole", "geo.no_data", "geo.no_log"):
        iceberg.create_table(name, rows.schema).append(rows)
    for path in (tmp_path / "w" / "geo" / "no_data" / "data").iterdir():
        path.unlink()
    for path in (tmp_path / "w" / "geo" / "no_log" / "metadata").iterdir():
        path.write_bytes(path.read_bytes()[:20])
    index = build_index("iceberg://lake", tmp_path / "ix")
    said = reasons(index)
    assert said["geo.whole"] is None
    assert "cannot be read" in said["geo.no_data"]
    assert "cannot be read" in said["geo.no_log"]


def test_a_catalogue_that_is_not_known(tmp_path):
    pytest.importorskip("pyiceberg")
    with pytest.raises(LakeError, match="iceberg://nowhere"):
        build_index("iceberg://nowhere", tmp_path / "ix")
