"""Lakes made of real tables, as one partition and without Spark.

They are read by `pexeso.lake` and embedded by `embed`.
"""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.datasets.cache import file_digest, key_of, load_or_make
from benchmarks.lake import BenchmarkLake
from embed.corpus import write_corpus
from embed.registry import create_embedder, needs_corpus
from pexeso.errors import InputError, LakeError
from pexeso.lake.choose import ColumnRules
from pexeso.lake.files import find_tables
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.records import lake_records

ROOT = Path(__file__).resolve().parent.parent.parent
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


def web_sources(names: Sequence[str] = WEB_LAKES) -> Sources:
    """Return real lakes that lie next to the repository."""
    archives = {name: SHARED / name / "tables.tar.gz" for name in names}
    absent = [
        f"../shared/data/{name}/tables.tar.gz"
        for name, path in archives.items()
        if not path.is_file()
    ]
    if absent:
        raise LakeError(
            "The data set web is made of tables that lie next to the repository, and "
            f"{', '.join(absent)} is not there. "
            "The data sets demo and random need nothing."
        )

    @contextmanager
    def unpacked() -> Iterator[dict[str, Path]]:
        with tempfile.TemporaryDirectory(prefix="pexeso-benchmark-") as folder:
            for name, path in archives.items():
                with tarfile.open(path) as tables:
                    tables.extractall(Path(folder) / name, filter="data")
            yield {name: Path(folder) / name for name in archives}

    return Sources({name: file_digest(path) for name, path in archives.items()}, unpacked)


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
            write_training_text(column, encoded, corpus, self.seed)
            embedder = create_embedder(
                self.model, corpus=corpus, dimensions=self.dimensions, seed=self.seed
            )
        return embedder.embed(encoded.dictionary)


def read_postings(
    folders: Mapping[str, Path], rules: ColumnRules, normaliser: Normaliser
) -> pa.Table:
    """Read the values of every kept column of lakes."""
    return pa.concat_tables(
        _read_folder(folder, name, rules, normaliser) for name, folder in folders.items()
    )


def write_training_text(
    column: np.ndarray, encoded: pa.DictionaryArray, corpus: Path, seed: int
) -> None:
    """Write the text that a model is trained on, as the build of an index does."""
    pairs = pa.table({"group": column, "value": encoded.dictionary_decode()})
    write_corpus(pairs.to_batches(), corpus, seed=seed)


def _read_folder(folder: Path, name: str, rules: ColumnRules, normaliser: Normaliser) -> pa.Table:
    """Read the values of every kept column of a lake (`_POSTINGS`)."""
    pieces = [_POSTINGS.empty_table()]
    for file in find_tables(folder)[0]:
        records = pa.Table.from_batches(lake_records([file], rules, normaliser))
        kind = records["record"]
        names = dict(
            records.filter(pc.equal(kind, "column"))
            .select(["position", "name"])
            .to_pandas()
            .itertuples(index=False)
        )
        values = records.filter(pc.equal(kind, "value"))
        pieces.append(
            pa.table(
                [
                    pa.repeat(f"{name}/{file.table}", len(values)),
                    pa.array(
                        [names[position] for position in values["position"].to_pylist()],
                        pa.string(),
                    ),
                    *values.select(_POSTINGS.names[2:]).columns,
                ],
                schema=_POSTINGS,
            )
        )
    return pa.concat_tables(pieces)


def number_columns(postings: pa.Table) -> tuple[np.ndarray, list[str]]:
    """Return the column number of each posting, and the names of the columns."""
    keys = ["table", "name", "position"]
    columns = (
        postings.select(keys)
        .group_by(keys)
        .aggregate([])
        .sort_by([(key, "ascending") for key in keys])
    )
    # A column's postings stand together: its number belongs to each of a run.
    number_of = {
        (row["table"], row["position"]): number for number, row in enumerate(columns.to_pylist())
    }
    starts, sizes = _runs(postings)
    first = postings.select(["table", "position"]).take(pa.array(starts)).to_pylist()
    numbers = np.array([number_of[row["table"], row["position"]] for row in first])
    return np.repeat(numbers, sizes), [
        f"{row['table']}:{row['name']}" for row in columns.to_pylist()
    ]


def _runs(postings: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Return the first row and the length of every run of postings of one column."""
    table = pc.dictionary_encode(postings["table"].combine_chunks()).indices.to_numpy()
    position = postings["position"].to_numpy()
    new = np.flatnonzero((np.diff(table) != 0) | (np.diff(position) != 0)) + 1
    starts = np.concatenate([[0], new])
    return starts, np.diff(np.append(starts, len(postings)))


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
