"""Rows find their way from the tasks that made them to those that need them."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pexeso.runtime import exchange
from pexeso.runtime.exchange import (
    BucketWriter,
    batches_of_bucket,
    bucket_files,
    buckets_by_hash,
    buckets_by_range,
    hash_rows,
    range_bounds,
    read_bucket,
)

SCHEMA = pa.schema([("name", pa.string()), ("n", pa.int64())])
TEXTS = ["", "a", "Oslo", "Zürich", "東京都", "eight by", "a" * 31, "b" * 32, "c" * 33, "d" * 200]


def test_hashes_are_those_published():
    """Of XXH64, with the seed 42 and with that of the field before."""
    assert hash_rows(pa.array(["Spark"])).tolist() == [-4294468057691064905]
    assert hash_rows(pa.array([], pa.string())).tolist() == []


def test_hashes_are_those_of_spark(spark):
    from pyspark.sql import functions as sql

    rows = pa.table(
        {
            "text": TEXTS,
            "position": pa.array(range(-5, 5), pa.int32()),
            "row": pa.array([number * 10**17 for number in range(-5, 5)], pa.int64()),
        }
    )
    frame = spark.createDataFrame(rows)
    for names in (["text"], ["position"], ["row"], ["text", "position"], ["row", "text"], ["text"]):
        expected = frame.select(sql.xxhash64(*names).alias("hash")).toArrow()["hash"].to_pylist()
        assert hash_rows(*(rows[name] for name in names)).tolist() == expected


def test_slices_and_chunks_have_the_hashes_of_their_rows():
    every = hash_rows(pa.array(TEXTS))
    assert hash_rows(pa.array(TEXTS).slice(3, 4)).tolist() == every[3:7].tolist()
    chunks = pa.chunked_array([TEXTS[:2], [], TEXTS[2:]], pa.string())
    assert hash_rows(chunks).tolist() == every.tolist()
    numbers = pa.array(range(10), pa.int64())
    assert hash_rows(numbers.slice(4)).tolist() == hash_rows(numbers)[4:].tolist()


@given(
    rows=st.lists(st.tuples(st.text(max_size=5), st.integers(-9, 9)), max_size=40),
    n_buckets=st.integers(1, 5),
    n_tasks=st.integers(1, 3),
)
def test_each_row_comes_to_its_bucket_once(tmp_path_factory, rows, n_buckets, n_tasks):
    folder = tmp_path_factory.mktemp("exchange")
    counts = np.zeros(n_buckets, np.int64)
    for task in range(n_tasks):
        mine = rows[task::n_tasks]
        table = pa.table([[name for name, _ in mine], [n for _, n in mine]], schema=SCHEMA)
        with BucketWriter(folder / f"{task}.arrow", n_buckets, SCHEMA) as writer:
            for batch in table.to_batches(max_chunksize=7):
                writer.add(batch, buckets_by_hash(n_buckets, batch["name"]))
        counts += writer.counts
    received = [read_bucket(folder, bucket, n_buckets, SCHEMA) for bucket in range(n_buckets)]
    assert [len(table) for table in received] == counts.tolist()
    every = [tuple(row.values()) for table in received for row in table.to_pylist()]
    assert sorted(every) == sorted(rows)
    names = [set(table["name"].to_pylist()) for table in received]
    assert sum(map(len, names)) == len({name for name, _ in rows})


def test_a_writer_holds_one_round(tmp_path, monkeypatch):
    monkeypatch.setattr(exchange, "ROUND_BYTES", 100)
    rows = pa.table([["x" * 40, "y"] * 5, range(10)], schema=SCHEMA)
    with BucketWriter(tmp_path / "0.arrow", 2, SCHEMA) as writer:
        for start in range(0, 10, 2):
            writer.add(rows.slice(start, 2), np.array([0, 1]))
    rounds = list(batches_of_bucket(bucket_files(tmp_path), 1, 2, ["n"]))
    # Two rows take 65 bytes, so that a round is full with the second two.
    assert [batch.to_pydict()["n"] for batch in rounds] == [[1, 3], [5, 7], [9]]


def test_nothing_written_is_nothing_read(tmp_path):
    with BucketWriter(tmp_path / "0.arrow", 3, SCHEMA):
        pass
    assert read_bucket(tmp_path, 2, 3, SCHEMA).equals(SCHEMA.empty_table())
    assert read_bucket(tmp_path / "none", 2, 3, SCHEMA, ["n"]).column_names == ["n"]


@given(
    values=st.lists(st.text(max_size=3), max_size=30),
    sample=st.lists(st.text(max_size=3), min_size=1, max_size=20),
    n_ranges=st.integers(1, 6),
)
def test_ranges_follow_one_another(values, sample, n_ranges):
    bounds = range_bounds(pa.array(sample, pa.string()), n_ranges)
    assert len(bounds) < n_ranges
    received = buckets_by_range(pa.chunked_array([values], pa.string()), bounds).tolist()
    below = [sum(bound <= value for bound in bounds.to_pylist()) for value in values]
    assert received == below
