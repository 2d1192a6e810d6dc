"""A small index of every kind of file, to be written, read and damaged."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pexeso.store.arrays import write_arrays, write_texts
from pexeso.store.files import filling, write_document
from pexeso.store.io.location import Location
from pexeso.store.local.writer import IndexWriter
from pexeso.store.manifest import Manifest
from pexeso.store.remote.store import Cache

BuildIndex = Callable[..., Manifest]


def example_arrays(seed: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    return {
        "vectors": generator.standard_normal((7, 3)).astype(np.float32),
        "codes": generator.integers(0, 2**40, 7),
        "kept": np.array([True, False, True]),
        "nothing": np.empty((0, 3), np.float16),
        "seed": np.array(seed, np.int32),
    }


def fill(writer: IndexWriter, seed: int = 0, n_partitions: int = 2) -> dict:
    """Write all folders of an index and return what `commit` needs."""
    (writer.catalog_folder / "tables.parquet").write_bytes(b"tables %d" % seed)
    (writer.catalog_folder / "columns.parquet").write_bytes(b"columns %d" % seed)
    (writer.embedder_folder / "words").mkdir()
    (writer.embedder_folder / "words" / "model.bin").write_bytes(bytes(range(256)))
    partitions = []
    for number in range(n_partitions):
        with filling(writer.partition_folder(number)) as folder:
            files = write_arrays(folder, example_arrays(seed + number))
            files.append(
                write_texts(folder / "values.arrow", pa.array(["oslo", "lima", f"{seed + number}"]))
            )
            files.append(write_document(folder / "meta.json", {"seed": seed + number}))
        partitions.append(
            writer.seal_folder(
                writer.partition_folder(number), {"seed": seed + number}, known=files
            )
        )
    return {
        "written_by": "pexeso test",
        "options": {"seed": seed},
        "catalogs": [writer.seal_folder(writer.catalog_folder)],
        "embedder": writer.seal_folder(writer.embedder_folder),
        "parts": {"semantic": partitions},
    }


@pytest.fixture
def build_index() -> BuildIndex:
    def build(
        path: Path, seed: int = 0, n_partitions: int = 2, overwrite: bool = False
    ) -> Manifest:
        with IndexWriter(path, overwrite=overwrite) as writer:
            return writer.commit(**fill(writer, seed, n_partitions))

    return build


@pytest.fixture
def place(bucket) -> Location:
    return bucket.joined("lake.pexeso")


@pytest.fixture
def cache(tmp_path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def fill_index() -> Callable[..., dict]:
    return fill


@pytest.fixture
def arrays_of() -> Callable[[int], dict[str, np.ndarray]]:
    return example_arrays


@pytest.fixture
def snapshot() -> Callable[[Path], dict[str, bytes]]:
    """Every file below a folder with its bytes, and every empty folder."""

    def look(folder: Path) -> dict[str, bytes]:
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            if path.is_file()
            else b"(folder)"
            for path in sorted(folder.rglob("*"))
        }

    return look
