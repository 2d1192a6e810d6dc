"""Spark tables as a lake: the same records as those of a file with the same cells."""

import pyarrow as pa
import pytest

from pexeso.build.spark_tables import SparkTable, find_spark_tables, frame_records
from pexeso.errors import LakeError
from pexeso.lake.choose import ColumnRules
from pexeso.lake.files import TableFile
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.records import lake_records, value_records
from pexeso.options import BuildOptions

HEADER = ["city", "name", "name", "since", "empty", "a.b", "one"]
ROWS = [
    (" Oslo ", "Nord", "x", "1814-05-17", None, "r1", "same"),
    ("OSLO", "nord", "y", "1871-01-18", "", "r2", "same"),
    ("Oslo", "Süd", "z", "1561-02-01", None, "r3", "same"),
    ("Rome", None, "x", "1919-10-21", "  ", "r4", "same"),
    ("", "West", "w", "1848-11-12", None, "r5", "same"),
    ("Bern", "Ost", "v", "1848-11-12", None, "r6", "same"),
    ("Bern", "Ost", "v", "1848-11-12", None, "r6", "same"),
]


def by_kind(table):
    """Sort records so that they can be compared: those of files come in another order."""
    rows = (
        table.to_pylist()
        if isinstance(table, pa.Table)
        else [row for batch in table for row in batch.to_pylist()]
    )
    records = {"table": [], "column": [], "value": []}
    for row in rows:
        records[row.pop("record")].append(row)
    records["column"].sort(key=lambda row: row["position"])
    records["value"].sort(key=lambda row: (row["position"], row["value"]))
    return records


@pytest.fixture
def frame(spark):
    return spark.createDataFrame(ROWS, ", ".join(f"c{i} string" for i in range(len(HEADER)))).toDF(
        *HEADER
    )


def records_of(tables, **options):
    return by_kind(frame_records(tables, BuildOptions(**options), (value_records,)).toArrow())


def test_a_frame_gives_the_records_of_a_file(frame, tmp_path):
    path = tmp_path / "t.parquet"
    arrays = [pa.array(column, pa.string()) for column in zip(*ROWS, strict=True)]
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_arrays(arrays, names=HEADER), path)
    expected = by_kind(
        lake_records([TableFile("t", path, "parquet", 1)], ColumnRules(), Normaliser())
    )
    records = records_of([SparkTable("t", frame.repartition(3))])
    assert records["column"] == expected["column"]
    assert len([row for row in records["column"] if row["reason"] is None]) == 5
    texts = [row.pop("text") for row in records["value"]]
    raw = {row.pop("value"): row.pop("text") for row in [dict(row) for row in expected["value"]]}
    assert [{**row, "text": None} for row in records["value"]] == [
        {**row, "text": None} for row in expected["value"]
    ]
    # The first by code point, white space and all, where a file has the first by row.
    assert set(texts) == set(raw.values()) - {"nord"} | {"Nord"}
    [table] = records["table"]
    assert (table["table"], table["format"], table["n_rows"], table["n_columns"]) == (
        "t",
        "spark",
        7,
        7,
    )
    assert (table["reason"], table["n_bytes"], table["fingerprint"]) == (None, None, None)


def test_types_that_are_no_text(spark):
    frame = spark.sql(
        "select id, cast(id as decimal(9,2)) as amount, array(id) as list, struct(id) as pair, "
        "cast('x' as binary) as raw, id % 2 = 0 as even, "
        "date_add(date'2020-01-01', cast(id as int)) as day, timestamp'2020-01-01 10:00:00' as "
        "moment, null as nothing, concat('w', id) as word "
        "from range(10)"
    )
    columns = records_of([SparkTable("t", frame)])["column"]
    reasons = {row["name"]: row["reason"] for row in columns}
    assert (
        reasons["id"]
        == "numbers: its type is bigint, and only text and date columns are kept (kinds)"
    )
    assert reasons["amount"].startswith("numbers: its type is decimal(9,2)")
    assert reasons["list"] == "no text: its type is array<bigint>"
    assert reasons["pair"].startswith("no text: its type is struct<")
    assert reasons["raw"] == "no text: its type is binary"
    assert reasons["nothing"] == "no values: every cell is missing"
    assert reasons["day"] is reasons["word"] is reasons["even"] is None
    assert reasons["moment"] == "1 distinct value, at least 2 needed (min_distinct)"
    every = records_of(
        [SparkTable("t", frame)], rules=ColumnRules(kinds=("text", "date", "number"))
    )["column"]
    assert {row["name"]: row["reason"] for row in every}["id"] is None
    assert [row["kind"] for row in every if row["name"] in ("id", "day")] == ["number", "date"]


def test_columns_that_are_too_large_for_a_task_are_left_out(frame):
    records = records_of([SparkTable("t", frame)], max_table_bytes=110)
    reasons = {row["label"]: row["reason"] for row in records["column"]}
    assert reasons["a.b"] is None
    assert (
        reasons["city"]
        == "its distinct values take 118 bytes, at most 110 allowed (max_table_bytes)"
    )
    assert 0 not in {row["position"] for row in records["value"]}
    assert 5 in {row["position"] for row in records["value"]}


def test_a_table_without_rows_or_columns_is_a_table(spark):
    tables = [
        SparkTable("none", spark.sql("select 1 as a").select()),
        SparkTable("empty", spark.createDataFrame([], "a string, b int")),
    ]
    records = records_of(tables)
    assert [
        (row["table"], row["n_rows"], row["n_columns"])
        for row in sorted(records["table"], key=lambda row: row["table"])
    ] == [("empty", 0, 2), ("none", 1, 0)]
    assert records["column"][0]["reason"] == "0 rows, at least 5 needed (min_rows)"
    assert records["value"] == []


def test_names_must_differ_and_there_must_be_one(frame):
    for tables in ([], [SparkTable("t", frame)] * 2):
        with pytest.raises(LakeError, match="need different names"):
            frame_records(tables, BuildOptions(), (value_records,))


def test_tables_of_the_catalog(spark, frame):
    spark.sql("create database if not exists lake_one")
    try:
        spark.sql(
            "create or replace view lake_one.cities as select 'Oslo' as city union all select "
            "'Rome'"
        )
        spark.sql("create or replace view lake_one.banks as select 'Nord' as bank")
        frame.createOrReplaceTempView("passing")
        assert [table.name for table in find_spark_tables(spark, "lake_one")] == [
            "lake_one.banks",
            "lake_one.cities",
        ]
        assert [table.name for table in find_spark_tables(spark, "lake_one.cities")] == [
            "lake_one.cities"
        ]
        assert [table.name for table in find_spark_tables(spark, "spark_catalog.lake_one")] == [
            "spark_catalog.lake_one.banks", "spark_catalog.lake_one.cities",
        ]  # fmt: skip
        assert find_spark_tables(spark, "passing")[0].frame.count() == 7
        assert find_spark_tables(spark, "nothing.there") == []
        assert find_spark_tables(spark, "nothing") == []
        with pytest.raises(LakeError, match="cannot be looked up"):
            find_spark_tables(spark, "not a name; at all")
    finally:
        spark.catalog.dropTempView("passing")
        spark.sql("drop database lake_one cascade")
