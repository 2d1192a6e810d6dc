"""Steps of small builds without jobs of Spark's: they leave what Spark leaves."""

import gc
import os
import zipfile
from functools import partial
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from long_runs import EVERYTHING, long_but

from pexeso.build import in_driver
from pexeso.build.job import BuildJob
from pexeso.build.lake_source import source
from pexeso.errors import IndexCorruptError
from pexeso.index import build_index, open_index
from pexeso.lake.catalog import COLUMNS, TABLES, files_in, part_name
from pexeso.lake.record_schema import SCHEMA, batch_of
from pexeso.semantic.part import rewrite as semantic_rewrite
from pexeso.store.io import parquet_folder

RECORDS = [
    {"record": "column", "table": "a.csv", "position": 0, "name": "x", "label": "x"},
    {"record": "column", "table": "a.csv", "position": 1, "name": "y", "reason": "numbers"},
    {"record": "table", "table": "a.csv", "n_bytes": 7, "notes": ["a note"]},
    {"record": "value", "table": "a.csv", "position": 0, "value": "v", "text": "V", "count": 2},
]


def written(folder, *batches):
    """Return the name of the folder of an attempt at a task that gives some records."""
    task = in_driver.write_records(iter(()), task=lambda _: iter(batches), folder=folder)
    [row] = [row for batch in task for row in batch.to_pylist()]
    return row["folder"]


def test_records_of_several_kinds_go_to_folders_of_their_own(tmp_path):
    attempts = tmp_path / "attempts"
    names = [written(attempts, batch_of(RECORDS)), written(attempts, batch_of(RECORDS[2:3]))]
    in_driver.gather_records(attempts, names, tmp_path)
    records = {kind: in_driver.read_records(tmp_path, kind, SCHEMA.names[1:]) for kind in
             ("column", "table", "value", "token")}  # fmt: skip
    assert {kind: rows.num_rows for kind, rows in records.items()} == {
        "column": 2, "table": 2, "value": 1, "token": 0,
    }  # fmt: skip
    everything = batch_of(RECORDS[:2]).to_pylist()
    assert [{"record": "column", **row} for row in records["column"].to_pylist()] == everything


def write_twice(batches, *, task, folder):
    """Do what Spark does where it gives up on an attempt at a task and makes another."""
    batches = list(batches)
    for _ in in_driver.write_records(iter(batches), task=task, folder=folder):
        pass
    yield from in_driver.write_records(iter(batches), task=task, folder=folder)


@pytest.mark.spark
def test_attempts_that_spark_gave_up_are_in_nobodys_way(small_lake, tmp_path, spark, monkeypatch):
    monkeypatch.setattr(source, "write_records", write_twice)
    index = build_index(small_lake, tmp_path / "index", parts=["overlap"])
    hits = index.overlap(["Oslo", "Bergen"])
    monkeypatch.undo()
    expected = build_index(small_lake, tmp_path / "expected", parts=["overlap"])
    assert hits
    assert hits.to_dict()["results"] == expected.overlap(["Oslo", "Bergen"]).to_dict()["results"]


def test_a_task_that_fails_leaves_no_record(tmp_path):
    def broken():
        yield batch_of(RECORDS)
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        written(tmp_path, *broken())
    assert list(tmp_path.glob("record=*")) == []


def test_values_of_columns_that_are_left_out_are_no_postings(tmp_path):
    left_out = {**RECORDS[3], "position": 1, "value": "w"}
    name = written(tmp_path / "attempts", batch_of([*RECORDS, left_out]))
    in_driver.gather_records(tmp_path / "attempts", [name], tmp_path)
    for name in ("skipped", "catalog", "stage"):
        (tmp_path / name).mkdir()
    pq.write_table(
        pa.Table.from_pylist([{"table": "b.txt", "reason": "no table"}], source.SKIPPED_SCHEMA),
        tmp_path / "skipped" / "part.parquet",
    )
    places = (tmp_path / name for name in ("skipped", "catalog", "stage"))
    facts = in_driver.write_catalog(tmp_path, *places, 5)
    assert facts == {"columns": 1, "postings": 1, "values": 1}
    assert pq.read_table(tmp_path / "stage" / "postings").to_pylist() == [
        {"column_id": 5, "value": "v", "text": "V", "count": 2}
    ]
    assert pq.read_table(tmp_path / "stage" / "values").to_pylist() == [{"value": "v"}]
    tables = pq.read_table(tmp_path / "catalog" / "tables-00000.parquet").to_pylist()
    assert [(row["table"], row["reason"]) for row in tables] == [
        ("a.csv", None), ("b.txt", "no table"),
    ]  # fmt: skip


def test_the_driver_never_holds_a_long_list_of_files_that_are_no_tables(tmp_path, monkeypatch):
    """A folder of few tables among millions of pictures is one that Spark goes through."""
    monkeypatch.setattr(parquet_folder, "IN_DRIVER_BYTES", 100_000)
    read = {"report": {"bytes_out": 50_000}}
    assert in_driver.fits_the_driver(read, tmp_path)
    assert not in_driver.fits_the_driver({"report": {"bytes_out": 100_001}}, tmp_path)
    assert not in_driver.fits_the_driver({}, tmp_path)
    for number in range(3):
        names = [f"pictures/{number}/{row}.jpg" for row in range(1000)]
        columns = [names, ["no table"] * 1000, [False] * 1000]
        rows = pa.table(columns, schema=source.SKIPPED_SCHEMA)
        pq.write_table(rows, tmp_path / f"{number}.parquet", compression="zstd")
        assert in_driver.fits_the_driver(read, tmp_path) == (number < 2)


def test_a_damaged_file_is_called_one_of_the_catalog_only_where_it_is(tmp_path):
    (tmp_path / "tables-00000.parquet").write_bytes(b"PAR1, and no more")
    with pytest.raises(IndexCorruptError, match="is not a catalog that pexeso wrote"):
        in_driver.catalog_fits(SimpleNamespace(catalog_files=files_in([tmp_path])), TABLES)
    with pytest.raises(pa.ArrowInvalid, match="Parquet"):
        in_driver.fits_the_driver({"report": {"bytes_out": 0}}, tmp_path)


def test_only_what_is_read_of_a_catalog_counts(tmp_path, monkeypatch):
    """An append compares tables, and a catalog has many more columns than tables."""
    store = SimpleNamespace(catalog_files=files_in([tmp_path]))
    for kind, n_rows in ((TABLES, 10), (COLUMNS, 5_000)):
        names = pa.table({"table": [f"{row}.csv" for row in range(n_rows)]})
        pq.write_table(names, tmp_path / part_name(kind, 0))
    monkeypatch.setattr(parquet_folder, "IN_DRIVER_BYTES", 10_000)
    assert in_driver.catalog_fits(store, TABLES)
    assert not in_driver.catalog_fits(store, COLUMNS)
    assert not in_driver.catalog_fits(store, TABLES, COLUMNS)
    (tmp_path / part_name(COLUMNS, 0)).write_bytes(b"damaged")
    assert in_driver.catalog_fits(store, TABLES)


def contents(path):
    """Return the rows of the catalog, and the bytes of every other file that tells no time."""
    files = {}
    for file in sorted(path.rglob("*")):
        name = str(file.relative_to(path))
        if file.suffix == ".parquet":
            files.setdefault(name.partition("-")[0], []).extend(pq.read_table(file).to_pylist())
        elif file.is_file() and file.name != "report.json" and "manifest" not in file.name:
            files[name] = file.read_bytes()
    return files


@pytest.fixture
def do_both(tmp_path, monkeypatch):
    """Return a function that does work on two indexes, of which one has jobs of Spark's.

    It returns what the work says of each, and sees that both indexes are the same.
    """
    read_folders, read_in_tasks = BuildJob.read_folders, set()

    def noted(job, *given):
        read_in_tasks.add(job.index.path.name)
        return read_folders(job, *given)

    def both(work):
        gc.collect()  # an index that is still held keeps what an update supersedes
        with monkeypatch.context() as patched:
            patched.setattr(BuildJob, "read_folders", noted)
            said = [work(tmp_path / "here")]
            patched.setattr(parquet_folder, "IN_DRIVER_BYTES", -1)
            patched.setattr(source.FolderSource, "is_small", lambda self: False)
            said.append(work(tmp_path / "by-spark"))
        assert contents(tmp_path / "here") == contents(tmp_path / "by-spark")
        assert "here" not in read_in_tasks
        return said

    return both


@pytest.fixture
def lake(small_lake, tmp_path):
    lake = tmp_path / "lake"
    lake.mkdir()
    for name in ("cities.csv", "numbers.csv", "notes.txt", "broken.parquet"):
        (lake / name).write_bytes((small_lake / name).read_bytes())
    return lake


MODELS = ["lexical", "hashing"]


TOWNS = b"town\nOslo\nLyon\nTurin\nGhent\nBrno\nPorto\n"


def write_zip(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def reasons_in(index):
    rows = open_index(index).catalog.tables(["table", "reason"]).to_pylist()
    return {row["table"]: row["reason"] for row in rows if row["reason"] is not None}


def build_of(lake, model):
    build = partial(build_index, lake, model=model, parts=["containment"])
    return partial(build, dimensions=16) if model == "hashing" else build


@pytest.mark.spark
@pytest.mark.parametrize("model", long_but(["hashing"], MODELS))
def test_an_index_is_the_same_with_and_without_jobs_of_sparks(
    lake, small_lake, spark, do_both, model, tmp_path
):
    write_zip(lake / "old.zip", {"a.csv": TOWNS, "inner/b.csv": TOWNS, "notes.pdf": b"prose"})
    do_both(build_of(lake, model))
    (lake / "old.zip").write_bytes(b"half of an archive")
    (lake / "capitals.csv").write_bytes((small_lake / "nested" / "capitals.tsv").read_bytes())
    (lake / "numbers.csv").unlink()
    (lake / "letter.docx").write_bytes(b"no table")
    os.utime(lake / "cities.csv", ns=(0, 0))
    here, there = do_both(lambda path: open_index(path).append(delete_missing=True))
    assert here == there
    assert (here.new, here.deleted, here.unchanged, here.columns_added) == (1, 1, 3, 1)
    assert here.closed == 2  # what the archive holds cannot be seen: that is not gone
    reasons = reasons_in(tmp_path / "here")
    assert {"letter.docx", "old.zip", "old.zip/notes.pdf"} <= reasons.keys()
    if not EVERYTHING:
        return
    (lake / "cities.csv").write_bytes(b"city\nOslo\nRome\nBern\nParis\nMadrid\n")
    (lake / "capitals.csv").unlink()
    (lake / "capitals.csv").symlink_to(small_lake / "nested" / "capitals.tsv")
    (lake / "letter.docx").unlink()
    write_zip(lake / "old.zip", {"a.csv": TOWNS})
    here, there = do_both(lambda path: open_index(path).append())
    assert here == there
    assert (here.changed, here.missing, here.deleted, here.closed) == (2, 1, 0, 0)
    assert here.columns_deleted == 3  # the link's are no longer found either
    reasons = reasons_in(tmp_path / "here")
    assert reasons["capitals.csv"] == "a symbolic link that leaves the lake"
    assert not {"letter.docx", "old.zip", "old.zip/notes.pdf"} & reasons.keys()
    assert not any(do_both(lambda path: open_index(path).append().committed))
    here, there = do_both(lambda path: open_index(path).compact())
    assert here == there


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("model", MODELS)
def test_some_partitions_are_rewritten_the_same_with_and_without_jobs_of_sparks(
    lake, spark, do_both, model, monkeypatch
):
    def rewritten(numbers):
        monkeypatch.setattr(semantic_rewrite, "worn", lambda store, options, model=0: numbers)
        here, there = do_both(lambda path: open_index(path).compact())
        assert here == there
        return here.partitions_rewritten, here.partitions_added

    do_both(build_of(lake, model))
    for name in ("gone.csv", "more.csv", "most.csv"):
        (lake / name).write_bytes(TOWNS + name.encode())
        do_both(lambda path: open_index(path).append())
    (lake / "gone.csv").unlink()
    do_both(lambda path: open_index(path).append(delete_missing=True))
    assert rewritten([1]) == (1, 0)  # nothing of it holds
    assert rewritten([1, 2]) == (2, 1)
    here, there = do_both(lambda path: open_index(path).compact(everything=True))
    assert here == there
    assert (here.partitions_rewritten, here.partitions_added) == (2, 1)
