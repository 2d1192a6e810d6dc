"""The work of a build's tasks, without Spark."""

import os
import random
import sqlite3
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from equal_text_lakes import place_rows

from pexeso.build.changes import changed_contents
from pexeso.build.job import write_folder
from pexeso.build.parts.base import Placed
from pexeso.build.source import LISTING_SCHEMA
from pexeso.build.workers import Attempt
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.lake.containers.reader import TablesInTurn
from pexeso.lake.files import find_tables, table_row
from pexeso.lake.readers import table as file_source
from pexeso.lake.readers.table import FileSource
from pexeso.semantic.part import write as semantic_placed
from pexeso.semantic.part.write import write_partition
from pexeso.store.files import filling
from pexeso.store.local.writer import PartitionFolder
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
        place_rows(tmp_path / "placed", name, table)
    return Placed(tmp_path / "placed", [0], 1)


def shuffled(placed: Placed, seed: int) -> None:
    generator = np.random.default_rng(seed)
    for path in sorted(placed.folder.rglob("*.arrow")):
        with pa.OSFile(str(path)) as file:
            table = pa.ipc.open_file(file).read_all()
        place_rows(
            placed.folder, path.parent.name, table.take(generator.permutation(table.num_rows))
        )


def write(placed: Placed, folder: Path) -> FolderEntry:
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
    gone = Placed(Path("/nowhere"), [0], 1)
    fill = partial(write_partition, gone, options=PartitionLayoutOptions())
    assert write_folder((0, target), Attempt(tmp_path), fill=fill) == written
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


def test_tables_of_one_file_are_compared_with_one_reading_of_it(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        for number in range(20):
            packed.writestr(f"{number}.csv", f"city\nOslo {number}\n")
    for name in ("a.sqlite", "b.sqlite"):
        base = sqlite3.connect(tmp_path / name)
        for number in range(20):
            base.execute(f"CREATE TABLE t{number} (city TEXT)")
        base.close()
    with TablesInTurn() as tables:
        rows = [
            {**table_row(file), "old_fingerprint": tables.fingerprint(file.path, file.member)}
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
    changed = changed_contents(batch, root=tmp_path).to_pylist()
    assert sorted(read) == [f"{tmp_path}/{name}" for name in ("a.sqlite", "a.zip", "b.sqlite")]
    assert (len(batch), changed) == (60, ["a.sqlite#t11"])
