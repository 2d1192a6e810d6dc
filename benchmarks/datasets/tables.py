"""Lakes made of real tables, as one partition and without Spark.

They are read by `pexeso.lake` and embedded by `embed`.
"""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.datasets.cache import file_digest, key_of, load_or_make
from benchmarks.lake import BenchmarkLake
from benchmarks.origin import ROOT
from embed.corpus import write_corpus
from embed.registry import create_embedder, needs_corpus
from pexeso.errors import InputError, LakeError, PexesoError
from pexeso.lake.choose import ColumnRules
from pexeso.lake.containers.reader import read_table
from pexeso.lake.files import TableFile, find_tables
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.readers.table import Table
from pexeso.lake.records import lake_records

SHARED = ROOT.parent / "shared" / "data"
WEB_LAKES = ("wikitables", "fivethirtyeight", "pudding")
MODELS = ("fasttext", "hashing")

_POSTINGS = pa.schema(
    [
        ("table", pa.string()),
        ("name", pa.string()),
        ("position", pa.int32()),
        ("value", pa.string()),
        ("count", pa.int64()),
    ]
)


@dataclass(frozen=True)
class Sources:
    digests: dict[str, str]
    open: Callable[[], AbstractContextManager[dict[str, Path]]]


def shared_archive(name: str, archive: str = "tables", shared: Path = SHARED) -> Path:
    """Return the archive of a data set that lies next to the repository."""
    path = shared / name / f"{archive}.tar.gz"
    if not path.is_file():
        raise InputError(
            f"The data set {name} is not on this machine: there is no {name}/{path.name} in "
            f"{shared}. The data sets demo and random need nothing."
        )
    return path


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack an archive into a folder; return the one that it holds, if it is named as its set."""
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    inside = folder / archive.parent.name
    return inside if inside.is_dir() else folder


@contextmanager
def unpacked(name: str, archive: str = "tables", shared: Path = SHARED) -> Iterator[Path]:
    """Yield the folder of a shared data set for as long as the block lasts."""
    path = shared_archive(name, archive, shared)
    with tempfile.TemporaryDirectory(prefix="pexeso-benchmark-") as folder:
        yield unpack(path, Path(folder))


def folder_tables(folder: Path) -> Iterator[tuple[TableFile, Table]]:
    """Read the tables of a folder; files that are no tables are left out."""
    for file in find_tables(folder)[0]:
        try:
            yield file, read_table(file.path)
        except PexesoError:
            continue


def web_sources(names: Sequence[str] = WEB_LAKES) -> Sources:
    """Return real lakes that lie next to the repository."""
    digests = {name: file_digest(shared_archive(name)) for name in names}

    @contextmanager
    def opened() -> Iterator[dict[str, Path]]:
        with ExitStack() as stack:
            yield {name: stack.enter_context(unpacked(name)) for name in names}

    return Sources(digests, opened)


def demo_sources() -> Sources:
    """Return the demo lake of the repository."""
    folder = ROOT / "examples" / "lake"

    @contextmanager
    def in_place() -> Iterator[dict[str, Path]]:
        yield {"demo": folder}

    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return Sources(
        {path.relative_to(folder).as_posix(): file_digest(path) for path in files}, in_place
    )


@dataclass(frozen=True)
class TablesData:
    """A lake read from tables."""

    name: str
    sources: Callable[[], Sources]
    model: str
    dimensions: int
    seed: int
    cache: Path

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise InputError(
                f"Models of benchmark lakes are {', '.join(MODELS)}. Got {self.model!r} instead."
            )

    @property
    def variant(self) -> str:
        return f"{self.model}-{self.dimensions}d"

    def load(self) -> BenchmarkLake:
        """Make the lake, or read it from the cache."""
        sources, rules, normaliser = self.sources(), ColumnRules(), Normaliser()
        key = key_of(
            {
                "sources": sources.digests,
                "rules": rules.to_dict(),
                "normaliser": normaliser.fingerprint,
                "model": self.model,
                "dimensions": self.dimensions,
                "seed": self.seed,
            }
        )
        return load_or_make(
            self.cache / f"{self.name}-{key}", lambda: self._make(sources, rules, normaliser)
        )

    def _make(self, sources: Sources, rules: ColumnRules, normaliser: Normaliser) -> BenchmarkLake:
        with sources.open() as folders:
            postings = read_postings(folders, rules, normaliser)
        if not len(postings):
            raise LakeError(f"No column of {self.name} can be a join key.")
        column, names = number_columns(postings)
        encoded = pc.dictionary_encode(postings["value"].combine_chunks())
        vectors = self._embed(column, encoded)
        facts = {"model": self.model, "seed": self.seed, "lakes": sorted(folders)}
        value = encoded.indices.to_numpy().astype(np.int64)
        return _lake(self.name, vectors, column, value, postings["count"].to_numpy(), names, facts)

    def _embed(self, column: np.ndarray, encoded: pa.DictionaryArray) -> np.ndarray:
        if not needs_corpus(self.model):
            return create_embedder(self.model, dimensions=self.dimensions, seed=self.seed).embed(
                encoded.dictionary
            )
        with tempfile.TemporaryDirectory(prefix="pexeso-benchmark-") as folder:
            corpus = Path(folder) / "corpus.txt"
            # As the build of an index does.
            pairs = pa.table({"group": column, "value": encoded.dictionary_decode()})
            write_corpus(pairs.to_batches(), corpus, seed=self.seed)
            embedder = create_embedder(
                self.model, corpus=corpus, dimensions=self.dimensions, seed=self.seed
            )
        return embedder.embed(encoded.dictionary)


def read_postings(
    folders: Mapping[str, Path], rules: ColumnRules, normaliser: Normaliser
) -> pa.Table:
    """Read the values of every kept column of lakes (`_POSTINGS`)."""
    pieces = [_POSTINGS.empty_table()]
    for lake, folder in folders.items():
        for file in find_tables(folder)[0]:
            records = pa.Table.from_batches(lake_records([file], rules, normaliser))
            columns, values = (
                records.filter(pc.equal(records["record"], kind)) for kind in ("column", "value")
            )
            table = pa.repeat(f"{lake}/{file.table}", len(values))
            name = columns["name"].take(pc.index_in(values["position"], columns["position"]))
            cells = values.select(_POSTINGS.names[2:]).columns
            pieces.append(pa.table([table, name, *cells], schema=_POSTINGS))
    return pa.concat_tables(pieces)


def number_columns(postings: pa.Table) -> tuple[np.ndarray, list[str]]:
    """Return the column number of each posting, and the names of the columns."""
    keys = ["table", "name", "position"]
    columns = postings.select(keys).to_pandas().groupby(keys)
    names = [f"{table}:{name}" for table, name, _ in columns.size().index]
    return columns.ngroup().to_numpy(), names


def _lake(
    name: str,
    vectors: np.ndarray,
    column: np.ndarray,
    value: np.ndarray,
    rows: np.ndarray,
    columns: list[str],
    facts: dict[str, object],
) -> BenchmarkLake:
    """Order the postings by column, and drop the values without a vector."""
    column_rows = np.bincount(column, rows, minlength=len(columns)).astype(np.int64)
    known = np.flatnonzero(vectors.any(axis=1))
    new_numbers = np.full(len(vectors), -1, dtype=np.int64)
    new_numbers[known] = np.arange(len(known))
    value = new_numbers[value]
    order = np.lexsort((value, column))
    order = order[value[order] >= 0]
    offsets = np.concatenate(
        [[0], np.cumsum(np.bincount(column[order], minlength=len(columns)))]
    ).astype(np.int64)
    facts = {**facts, "values_without_vector": len(vectors) - len(known)}
    stored = np.ascontiguousarray(vectors[known], dtype=np.float32)
    return BenchmarkLake(
        name,
        stored,
        offsets,
        value[order],
        rows[order].astype(np.int64),
        column_rows,
        columns,
        facts,
    )
