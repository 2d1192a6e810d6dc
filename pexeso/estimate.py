"""What a build will cost, before it is run: counts, bytes, memory and time, from a bounded sample of the lake's files."""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embed.checking import require_unit_or_zero
from embed.corpus import MAX_TOKENS, count_corpus, write_corpus
from embed.fasttext import TrainingOptions, train
from embed.protocol import Embedder
from embed.registry import create_embedder
from partition.balance import partition_bytes
from pexeso.engine.building import build_partition
from pexeso.engine.grid_options import GridOptions
from pexeso.errors import EmbedderError, LakeError
from pexeso.lake.files import TableFile, find_tables
from pexeso.lake.records import table_records
from pexeso.options import BuildOptions

SAMPLE_FILES = 50
SAMPLE_BYTES = 64 << 20
"""Largest sample, on disk; a single larger file is sampled only where there is no smaller one."""

TIMED_VALUES = 20_000
"""Most values that are embedded and indexed to measure how fast that goes."""

TIMED_TOKENS = 100_000
"""About so many words times passes are trained on to measure how fast that goes."""

SPARK_SECONDS = 20.0
"""Starting Spark and its jobs, whatever the lake: measured on two cores."""

SPARK_BYTES = 2 << 30
"""Memory of Java in local mode, unless `spark.driver.memory` says otherwise."""

READ_MEMORY_FACTOR, BUILD_MEMORY_FACTOR = 3, 4
"""Memory of a task as a multiple of the file that it reads, and of the partition that it builds."""


@dataclass(frozen=True)
class Estimate:
    """What indexing a lake will cost.

    Attributes
    ----------
    lake : str
    files, bytes : int
        Files of the lake that are tables by their name, and their size on disk.
    by_format : dict of str to dict
        ``files`` and ``bytes`` of each format.
    skipped : int
        Files that are no tables by their name.
    sampled_files, sampled_bytes : int
        What the figures rest on.
    exact : bool
        True where the whole lake was sampled: then the counts are not estimates.
    tables, columns, columns_indexed, postings, values : int
        As `IndexInfo` counts them.
    dimensions : int
    index_bytes, model_bytes : int
        On disk; the model's are part of the index's.
    partitions : int
    memory_bytes : int
        Of a build on this machine: Spark's, and that of one task for each core.
    cores : int
    seconds : dict of str to float
        By stage, on this machine, at the rates measured on the sample: ``read``, ``train``, ``embed``, ``index``; and ``spark``, a fixed amount for its
        start. Shuffles and clustering are not among them.
    """

    lake: str
    files: int
    bytes: int
    by_format: dict[str, dict[str, int]]
    skipped: int
    sampled_files: int
    sampled_bytes: int
    exact: bool
    tables: int
    columns: int
    columns_indexed: int
    postings: int
    values: int
    dimensions: int
    index_bytes: int
    model_bytes: int
    partitions: int
    memory_bytes: int
    cores: int
    seconds: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Give the plain JSON form."""
        return asdict(self)


@dataclass
class _Sample:
    """What reading some files gave."""

    tables: int = 0
    columns: int = 0
    columns_indexed: int = 0
    seconds: float = 0.0
    postings_by_format: Counter[str] = field(default_factory=Counter)
    bytes_by_format: Counter[str] = field(default_factory=Counter)
    values: list[pa.Array] = field(default_factory=list)

    @property
    def n_postings(self) -> int:
        return sum(self.postings_by_format.values())


def estimate_build(
    lake: str | os.PathLike[str],
    options: BuildOptions | None = None,
    *,
    sample_files: int = SAMPLE_FILES,
    sample_bytes: int = SAMPLE_BYTES,
    progress: Callable[[int, int], None] | None = None,
) -> Estimate:
    """Estimate what `build_index` would cost, without Spark.

    The sample is drawn with the seed of the options. Columns are scaled by the number of files; (column, value) pairs by bytes, each format
    for itself; distinct values by Heaps' law: their number grows as a power of the number of pairs, fitted to the sample and its first half.

    Parameters
    ----------
    lake : path
    options : BuildOptions, optional
    sample_files, sample_bytes : int
        The largest sample.
    progress : callable, optional
        Called with the files read and the files to read.

    Returns
    -------
    Estimate

    Raises
    ------
    LakeError
        There is no table in the lake, or no column that can be a join key in the sample.
    EmbedderError, MissingPackageError, InputError
        The model cannot be had.
    """
    options = options or BuildOptions()
    files, skipped = find_tables(lake)
    if not files:
        raise LakeError(f"There is no table in '{lake}': none of the {len(skipped)} files there is one by its name.")
    chosen = choose_sample(files, options.seed, sample_files, sample_bytes)
    sample = _read(chosen, options, progress)
    if not sample.n_postings:
        raise LakeError(
            f"None of the {len(chosen)} files of '{lake}' that were sampled has a column that can be a join key. "
            "Sample more files, or change the rules that choose columns."
        )
    exact = len(chosen) == len(files)
    scale = len(files) / len(chosen)
    postings = sample.n_postings if exact else _scaled_postings(files, sample)
    values = sample_values = _n_distinct(sample.values)
    if not exact:
        values = _grown(sample, sample_values, postings)
    more_words, more_pairs = values / sample_values, postings / sample.n_postings
    costs = _Costs.measure(sample, more_words, more_pairs, options)
    vectors_bytes = partition_bytes(values, postings, costs.dimensions)
    partitions = options.n_partitions or max(1, math.ceil(vectors_bytes / options.partition_bytes))
    n_bytes = sum(file.n_bytes for file in files)
    cores = len(os.sched_getaffinity(0))
    seconds = {
        "read": sample.seconds / max(1, sum(sample.bytes_by_format.values())) * n_bytes / cores,
        "train": costs.train_seconds,
        "embed": costs.embed_seconds * values / cores,
        "index": costs.index_seconds * values / min(cores, partitions),
        "spark": SPARK_SECONDS,
    }
    task_bytes = max(
        READ_MEMORY_FACTOR * max(file.n_bytes for file in files), BUILD_MEMORY_FACTOR * vectors_bytes // partitions
    )
    return Estimate(
        lake=os.fspath(lake),
        files=len(files),
        bytes=n_bytes,
        by_format=_by_format(files),
        skipped=len(skipped),
        sampled_files=len(chosen),
        sampled_bytes=sum(file.n_bytes for file in chosen),
        exact=exact,
        tables=round(sample.tables * scale),
        columns=round(sample.columns * scale),
        columns_indexed=round(sample.columns_indexed * scale),
        postings=postings,
        values=values,
        dimensions=costs.dimensions,
        index_bytes=vectors_bytes + costs.model_bytes,
        model_bytes=costs.model_bytes,
        partitions=partitions,
        memory_bytes=SPARK_BYTES + cores * task_bytes,
        cores=cores,
        seconds={stage: round(value, 1) for stage, value in seconds.items()},
    )


def format_name(file: TableFile) -> str:
    """Name a file's format as it matters for how much a byte on disk holds.

    Examples
    --------
    >>> format_name(TableFile("a.csv.gz", Path("a.csv.gz"), "delimited", 9))
    'delimited.gz'
    """
    return file.format + (".gz" if file.table.lower().endswith(".gz") else "")


def choose_sample(files: Sequence[TableFile], seed: int, n_files: int, n_bytes: int) -> list[TableFile]:
    """Draw files at random, each format at least once, until the number or the bytes are reached; at least one file.

    Files larger than the bytes that are left are passed over.
    """
    order = [files[place] for place in np.random.default_rng(seed).permutation(len(files))]
    firsts: dict[str, TableFile] = {}
    for file in order:
        if file.n_bytes <= n_bytes:
            firsts.setdefault(format_name(file), file)
    front = list(firsts.values())
    chosen: list[TableFile] = []
    left = n_bytes
    for file in [*front, *(file for file in order if file not in firsts.values())]:
        if len(chosen) == n_files:
            break
        if file.n_bytes <= left:
            chosen.append(file)
            left -= file.n_bytes
    return chosen or [min(files, key=lambda file: file.n_bytes)]


def _read(files: Sequence[TableFile], options: BuildOptions, progress: Callable[[int, int], None] | None) -> _Sample:
    sample = _Sample()
    for done, file in enumerate(files, 1):
        started = time.perf_counter()
        batches = list(table_records(file, options.rules, options.normaliser, max_bytes=options.max_table_bytes))
        sample.seconds += time.perf_counter() - started
        records = pa.Table.from_batches(batches)
        kept = records.filter(pc.is_null(records["reason"]))
        kinds = kept["record"]
        values = kept.filter(pc.equal(kinds, "value"))["value"].combine_chunks()
        sample.tables += pc.sum(pc.equal(kinds, "table")).as_py() or 0
        sample.columns += pc.sum(pc.equal(records["record"], "column")).as_py() or 0
        sample.columns_indexed += pc.sum(pc.equal(kinds, "column")).as_py() or 0
        sample.postings_by_format[format_name(file)] += len(values)
        sample.bytes_by_format[format_name(file)] += file.n_bytes
        sample.values.append(values)
        if progress is not None:
            progress(done, len(files))
    return sample


def _by_format(files: Sequence[TableFile]) -> dict[str, dict[str, int]]:
    counts = Counter(format_name(file) for file in files)
    n_bytes: Counter[str] = Counter()
    for file in files:
        n_bytes[format_name(file)] += file.n_bytes
    return {name: {"files": counts[name], "bytes": n_bytes[name]} for name in sorted(counts)}


def _scaled_postings(files: Sequence[TableFile], sample: _Sample) -> int:
    overall = sample.n_postings / max(1, sum(sample.bytes_by_format.values()))
    total = 0.0
    for name, facts in _by_format(files).items():
        sampled = sample.bytes_by_format[name]
        total += facts["bytes"] * (sample.postings_by_format[name] / sampled if sampled else overall)
    return max(sample.n_postings, round(total))


def _grown(sample: _Sample, n_sampled: int, postings: int) -> int:
    """Give the distinct values of the lake by Heaps' law, fitted to the sample and the first half of its files."""
    half = sample.values[: len(sample.values) // 2]
    n_half, pairs_half = _n_distinct(half) if half else 0, sum(map(len, half))
    growth = 1.0
    if n_half and pairs_half < sample.n_postings:
        growth = math.log(n_sampled / n_half) / math.log(sample.n_postings / pairs_half)
    growth = min(1.0, max(0.0, growth))
    return min(postings, round(n_sampled * (postings / sample.n_postings) ** growth))


def _n_distinct(values: Sequence[pa.Array]) -> int:
    return pc.count_distinct(pa.chunked_array(values, pa.string())).as_py()


@dataclass(frozen=True)
class _Costs:
    """Rates measured on the sample: seconds of training in all, of embedding and of indexing a value."""

    dimensions: int
    model_bytes: int
    train_seconds: float
    embed_seconds: float
    index_seconds: float

    @classmethod
    def measure(cls, sample: _Sample, more_words: float, more_pairs: float, options: BuildOptions) -> _Costs:
        values = pa.chunked_array(sample.values, pa.string()).unique().slice(0, TIMED_VALUES)
        with tempfile.TemporaryDirectory(prefix="pexeso-estimate-") as folder:
            embedder, train_seconds, rows = _model(sample, more_words, more_pairs, options, Path(folder))
            saved = Path(folder, "model")
            saved.mkdir()
            embedder.save(saved)
            model_bytes = round(rows * sum(path.stat().st_size for path in saved.rglob("*") if path.is_file()))
            started = time.perf_counter()
            vectors = np.ascontiguousarray(embedder.embed(values), dtype=np.float32)
            require_unit_or_zero(values, vectors)
            embedded = time.perf_counter()
        grid = GridOptions(**options.grid())
        build_partition(vectors, np.array([0, len(values)]), np.arange(len(values)), grid)
        built = time.perf_counter()
        each = 1 / len(values)
        return cls(
            embedder.dimensions, model_bytes, train_seconds, (embedded - started) * each, (built - embedded) * each
        )


def _model(
    sample: _Sample, more_words: float, more_pairs: float, options: BuildOptions, folder: Path
) -> tuple[Embedder, float, float]:
    """Make the model; give the seconds that the lake's own will take to train, and how many times larger it will be."""
    if options.model != "fasttext":
        return create_embedder(options.model, dimensions=options.dimensions, seed=options.seed), 0.0, 1.0
    corpus = folder / "corpus.txt"
    groups = np.repeat(np.arange(len(sample.values)), [len(values) for values in sample.values])
    pairs = pa.table({"group": groups, "value": pa.chunked_array(sample.values, pa.string())})
    write_corpus([pairs], corpus)
    counts = count_corpus(corpus)
    real = TrainingOptions() if options.dimensions is None else TrainingOptions(dimensions=options.dimensions)
    timed = replace(real, token_budget=TIMED_TOKENS)
    started = time.perf_counter()
    try:
        embedder = train(corpus, timed)
    except EmbedderError as error:
        raise EmbedderError(f"No model could be trained on the sample: {error}") from error
    seconds = (time.perf_counter() - started) / (timed.epochs(counts) * counts.n_tokens)
    n_tokens, n_words = min(MAX_TOKENS, round(counts.n_tokens * more_pairs)), round(counts.n_words * more_words)
    grown = replace(counts, n_tokens=n_tokens, n_words=n_words)
    rows = (grown.n_words + real.buckets(grown)) / (counts.n_words + timed.buckets(counts))
    return embedder, seconds * real.epochs(grown) * grown.n_tokens, rows
