"""The catalog in many files: one order, ids without a gap, whatever the number of tasks."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from long_runs import long_but

from pexeso.build.numbering import Written, _Share, _write_file, number_columns, write_tables
from pexeso.errors import InputError, OutputError, SparkError
from pexeso.lake.catalog import COLUMNS_SCHEMA, TABLES_SCHEMA

pytestmark = pytest.mark.spark

# By code point: the last comes after the one before, though UTF-16 orders them the other way round.
NAMES = ["B.csv", "a.csv", "a/b.csv", "é.csv", "\uffee.csv", "\U0001f600.csv"]


def records():
    """Return unordered column records; every third is left out, and one name occurs twice."""
    rows = [
        {"table": table, "position": position, "name": name, "label": f"l{position}", "n_rows": 5}
        | ({"reason": "numbers"} if (len(table) + position) % 3 == 0 else {})
        for table in NAMES
        for position, name in enumerate(["z", "A", "", "z", "\U0001f600", "\uffee"])
    ]
    rows = rows[::2] + rows[1::2][::-1]
    schema = pa.schema([field for field in COLUMNS_SCHEMA if field.name != "column_id"])
    return pa.Table.from_pylist(rows, schema=schema), rows


@pytest.fixture
def ranges(spark):
    """Return a function that sets the number of ranges, which Spark must then keep."""
    names = ("spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled")
    before = {name: spark.conf.get(name) for name in names}

    def set_ranges(n):
        spark.conf.set("spark.sql.shuffle.partitions", n)
        spark.conf.set("spark.sql.adaptive.enabled", "false")

    yield set_ranges
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.mark.parametrize("n_ranges", long_but([1, 5], [1, 5, 100]))
def test_columns_are_numbered_in_one_order(spark, ranges, n_ranges, tmp_path):
    ranges(n_ranges)
    table, rows = records()
    (tmp_path / "columns-00099.parquet").write_bytes(b"of an earlier attempt")
    written = number_columns(spark.createDataFrame(table).repartition(3), tmp_path, first_id=40)
    assert sorted(path.name for path in tmp_path.iterdir()) == list(written.files)
    assert (len(written.files) > 1) == (n_ranges > 1)
    assert written.files[0] == "columns-00000.parquet"
    columns = pa.concat_tables(pq.read_table(tmp_path / name) for name in written.files)
    assert columns.schema.equals(COLUMNS_SCHEMA)
    expected, next_id = [], 40
    for row in sorted(rows, key=lambda row: (row["table"], row["name"], row["position"])):
        kept = "reason" not in row
        expected.append(
            {**dict.fromkeys(COLUMNS_SCHEMA.names), **row, "column_id": next_id if kept else None}
        )
        next_id += kept
    assert columns.to_pylist() == expected
    assert (written.n_rows, written.n_kept) == (len(rows), next_id - 40)


def test_tables_and_what_is_none_stand_in_one_order(spark, ranges, tmp_path):
    ranges(4)
    rows = [
        {"table": name, "format": "delimited", "n_bytes": 7, "notes": ["a note"]} for name in NAMES
    ]
    tables = spark.createDataFrame(pa.Table.from_pylist(rows, schema=TABLES_SCHEMA))
    skipped = spark.createDataFrame(
        [("b.txt", "no table"), ("A.doc", "no table")], "table string, reason string"
    )
    every = tables.unionByName(skipped, allowMissingColumns=True)
    written = write_tables(every, tmp_path)
    table = pa.concat_tables(pq.read_table(tmp_path / name) for name in written.files)
    assert table.schema.equals(TABLES_SCHEMA)
    assert table["table"].to_pylist() == sorted([*NAMES, "b.txt", "A.doc"])
    assert (written.n_rows, written.n_kept) == (8, 6)
    assert table.to_pylist()[0] == {
        **dict.fromkeys(TABLES_SCHEMA.names),
        "table": "A.doc",
        "reason": "no table",
    }


def test_no_row_is_an_empty_file(spark, tmp_path):
    empty = spark.createDataFrame(records()[0].slice(0, 0))
    assert number_columns(empty, tmp_path) == Written(0, 0, ("columns-00000.parquet",))
    assert pq.read_table(tmp_path / "columns-00000.parquet").schema.equals(COLUMNS_SCHEMA)


def test_a_second_attempt_replaces_the_first(spark, tmp_path):
    frame = spark.createDataFrame(records()[0])
    first = number_columns(frame, tmp_path)
    content = {name: pq.read_table(tmp_path / name) for name in first.files}
    assert number_columns(frame, tmp_path) == first
    assert all(pq.read_table(tmp_path / name).equals(table) for name, table in content.items())


def test_a_task_that_finds_other_rows_writes_nothing(tmp_path):
    table, _ = records()
    with pytest.raises(SparkError, match="found 36 and"):
        _write_file(
            iter(table.to_batches()),
            _Share("columns-00000.parquet", 0, 35, 24),
            tmp_path,
            COLUMNS_SCHEMA,
        )
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_folder_and_no_id_is_refused(spark, tmp_path):
    frame = spark.createDataFrame(records()[0])
    with pytest.raises(OutputError, match="is not there"):
        number_columns(frame, tmp_path / "none")
    with pytest.raises(InputError, match="first column id"):
        number_columns(frame, tmp_path, first_id=-1)


def test_rows_at_hand_are_written_as_those_of_many_tasks(spark, tmp_path):
    table, _ = records()
    results = []
    for rows in (spark.createDataFrame(table).repartition(3), table):
        folder = tmp_path / type(rows).__name__
        folder.mkdir()
        columns = number_columns(rows, folder, first_id=7)
        tables = write_tables(rows.select(["table", "n_rows"]), folder)
        files = [
            pa.concat_tables(pq.read_table(folder / name) for name in written.files)
            for written in (columns, tables)
        ]
        results.append((files, [(written.n_rows, written.n_kept) for written in (columns, tables)]))
    assert results[0] == results[1]


def test_no_row_at_hand_is_an_empty_file(tmp_path):
    written = number_columns(records()[0].slice(0, 0), tmp_path)
    assert written == Written(0, 0, ("columns-00000.parquet",))
    assert pq.read_table(tmp_path / "columns-00000.parquet").schema.equals(COLUMNS_SCHEMA)
