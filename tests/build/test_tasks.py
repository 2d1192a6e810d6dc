"""The work of a build's tasks, without Spark."""

import os
import random
import sqlite3
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pexeso.build import tasks
from pexeso.build.lake_source.source import LISTING_SCHEMA
from pexeso.engine.layout.options import PartitionLayoutOptions
from pexeso.lake.containers.reader import table_fingerprint
from pexeso.lake.files import find_tables, table_row
from pexeso.lake.readers import file_source
from pexeso.lake.readers.content import fingerprint_file, read_content
from pexeso.lake.readers.file_source import FileSource
from pexeso.semantic.part import write as semantic_placed
from pexeso.semantic.part.write import write_partition
from pexeso.store.local.folders import filling
from pexeso.store.local.target import PartitionFolder, entry_from_json
from pexeso.store.manifest import FolderEntry


@pytest.fixture
def placed(tmp_path):
    """Write the input of partition 0: three columns over five values, one without a vector."""
    vectors = np.eye(5, 8, dtype=np.float32)
    vectors[4] = 0
    values = [f"v{number}" for number in range(5)]
    columns = {7: values[:3], 3: values[1:], 9: values[4:]}
    rows = [(column, value, value.upper()) for column, held in columns.items() for value in held]
    tables = {
        "vectors": pa.table(
            {"value": values, "vector": pa.array(vectors.tolist(), pa.list_(pa.float32()))}
        ),
        "postings": pa.table(
            dict(
                zip(("column_id", "value", "text"), map(list, zip(*rows, strict=True)), strict=True)
            )
        ),
        "columns": pa.table(
            {"column_id": list(columns), "table": ["b", "a", "c"], "label": ["x", "y", "z"]}
        ),
    }
    for name, table in tables.items():
        folder = tmp_path / "placed" / name / "partition=0"
        folder.mkdir(parents=True)
        pq.write_table(table, folder / "part.parquet")
    return tmp_path / "placed"


def shuffled(placed: Path, seed: int) -> None:
    generator = np.random.default_rng(seed)
    for path in sorted(placed.rglob("*.parquet")):
        table = pq.read_table(path, partitioning=None)
        pq.write_table(table.take(generator.permutation(table.num_rows)), path)


def write(placed: Path, folder: Path) -> FolderEntry:
    fill = partial(write_partition, placed, 0, options=PartitionLayoutOptions(map="auto"))
    return PartitionFolder(folder, "partitions/00000").write(fill)


def test_a_partition_is_the_same_bytes_whatever_the_order_of_its_rows(placed, tmp_path):
    first = write(placed, tmp_path / "first")
    for seed in range(3):
        shuffled(placed, seed)
        assert write(placed, tmp_path / f"again{seed}") == first
    facts = first.facts
    assert (
        facts["columns"],
        facts["values"],
        facts["values_without_vector"],
        facts["postings"],
    ) == (3, 4, 1, 6)
    assert np.load(tmp_path / "first" / "column_ids.npy").tolist() == [3, 7, 9]
    assert {file.path for file in first.files} == set(os.listdir(tmp_path / "first"))


def test_a_partition_that_is_there_is_left_as_it_is(placed, tmp_path):
    folder = tmp_path / "00000"
    target = PartitionFolder(folder, "partitions/00000")
    assert target.written() is None
    written = write(placed, folder)
    before = folder.stat().st_mtime_ns
    # What it was made of may be gone by then.
    numbers = iter([pa.RecordBatch.from_pydict({"id": pa.array([0])})])
    [batch] = tasks.write_folders(
        numbers,
        targets=[target],
        fill=partial(write_partition, Path("/nowhere"), options=PartitionLayoutOptions()),
    )
    assert entry_from_json(batch["entry"][0].as_py()) == written
    assert folder.stat().st_mtime_ns == before


def test_of_two_attempts_at_a_partition_the_first_that_ends_stays(placed, tmp_path, monkeypatch):
    folder = tmp_path / "00000"
    real = semantic_placed.write_texts
    raced = []

    def write_texts(path, texts):
        if not raced:
            raced.append(True)
            with filling(folder, replace=False) as other:
                (other / "meta.json").write_text('{"columns": 99, "choice": {}}', encoding="utf-8")
        return real(path, texts)

    monkeypatch.setattr(semantic_placed, "write_texts", write_texts)
    entry = write(placed, folder)
    assert entry.facts == {"columns": 99}
    assert [file.path for file in entry.files] == ["meta.json"]
    assert sorted(os.listdir(tmp_path)) == ["00000", "placed"]


def test_contents_are_compared_by_fingerprint(tmp_path):
    for name, text in (("same.csv", "a\n1\n"), ("other.csv", "a\n2\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    known = read_content(tmp_path / "same.csv").fingerprint
    rows = [
        {
            "table": name,
            "path": str(tmp_path / name),
            "member": None,
            "reading": None,
            "old_fingerprint": known,
        }
        for name in ("same.csv", "other.csv", "gone.csv")
    ]
    batches = list(tasks.compare_contents(iter([pa.RecordBatch.from_pylist(rows)]), root=tmp_path))
    assert {batch["table"][0].as_py(): batch["change"][0].as_py() for batch in batches} == {
        "same.csv": "unchanged",
        "other.csv": "changed",
        "gone.csv": "changed",
    }
    assert fingerprint_file(tmp_path / "gone.csv") is None


def test_tables_of_one_file_are_compared_with_one_reading_of_it(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        for number in range(20):
            packed.writestr(f"{number}.csv", f"city\nOslo {number}\n")
    for name in ("a.sqlite", "b.sqlite"):
        base = sqlite3.connect(tmp_path / name)
        for number in range(20):
            base.execute(f"CREATE TABLE t{number} (city TEXT)")
        base.close()
    rows = [
        {**table_row(file), "old_fingerprint": table_fingerprint(file.path, file.member)}
        for file in find_tables(tmp_path)[0]
    ]
    rows[3]["old_fingerprint"] = "another"
    random.Random(1).shuffle(rows)
    schema = LISTING_SCHEMA.append(pa.field("old_fingerprint", pa.string()))
    batch = pa.RecordBatch.from_pylist(rows, schema=schema)
    read = []
    opening, hashing = FileSource.open, file_source.fingerprint_file
    monkeypatch.setattr(FileSource, "open", lambda own: read.append(own.shown) or opening(own))
    monkeypatch.setattr(
        file_source, "fingerprint_file", lambda path: read.append(str(path)) or hashing(path)
    )
    changes = pa.Table.from_batches(tasks.compare_contents([batch], root=tmp_path)).to_pylist()
    assert sorted(read) == [f"{tmp_path}/{name}" for name in ("a.sqlite", "a.zip", "b.sqlite")]
    changed = {row["table"] for row in changes if row["change"] == "changed"}
    assert (len(changes), changed) == (60, {"a.sqlite#t11"})
