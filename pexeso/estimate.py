"""What a build will cost, before it is run: counts, bytes, memory and time, from a bounded sample of the lake's files."""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from partition.balance import partition_bytes
from pexeso.equal_text.layout import shards_needed
from pexeso.errors import LakeError
from pexeso.lake.files import TableFile, find_tables
from pexeso.lake.records import table_records
from pexeso.lake_sample import by_format, choose_sample, format_name, grown, n_distinct, scaled_pairs
from pexeso.measuring import Costs
from pexeso.options import BuildOptions
from pexeso.part_costs import NO_PARTS, PartsEstimate, TokenSample, parts_bytes, shard_memory, tokens_of_shards
from pexeso.stage_costs import Measured, machine_factor, stage_seconds

SAMPLE_FILES = 200
SAMPLE_BYTES = 64 << 20
"""Largest sample, on disk; a single larger file is sampled only where there is no smaller one."""

BASE_BYTES = 1_780_000_000
"""Memory of a build of a small lake in local mode: of Java, and of the processes of Python with the packages that they load."""

JAVA_BYTES_PER_POSTING, MOST_JAVA_BYTES = 1024, 1 << 30
"""What Java takes besides as the lake grows, up to its limit of 2 GiB (``spark.driver.memory``)."""

TRAINING_MEMORY_FACTOR = 3
"""Memory of training as a multiple of the model."""

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
    equal_text : dict
        What the parts for equal text will hold: ``parts``, ``columns``, ``tokens``, ``pairs``, ``shards`` and ``bytes``, which are part of the index's;
        see `pexeso.part_costs.PartsEstimate`.
    partitions : int
    memory_bytes : int
        Of a build on this machine, at its highest: Java's, and that of training the model or of one task for each core.
    cores : int
    seconds : dict of str to float
        By stage of a build (`pexeso.stage_costs.STAGES`; ``start`` is that of Java and Spark), on this machine, at the rates measured on the sample,
        and as busy as the machine was when they were measured.
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
    equal_text: dict[str, Any]
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
    tokens: TokenSample = field(default_factory=TokenSample)

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
    postings = sample.n_postings if exact else scaled_pairs(files, sample.postings_by_format, sample.bytes_by_format)
    values = sample_values = n_distinct(sample.values)
    if not exact:
        values, _ = grown(sample.values, postings)
    equal_text = _parts(files, sample, options, scale, exact)
    more_words, more_pairs = values / sample_values, postings / sample.n_postings
    costs = Costs.measure(sample.values, more_words, more_pairs, options)
    vectors_bytes = partition_bytes(values, postings, costs.dimensions)
    partitions = options.n_partitions or max(1, math.ceil(vectors_bytes / options.partition_bytes))
    n_bytes = sum(file.n_bytes for file in files)
    cores = len(os.sched_getaffinity(0))
    measured = Measured(
        read=sample.seconds / max(1, sum(sample.bytes_by_format.values())) * n_bytes,
        train=costs.train_seconds,
        embed=costs.embed_seconds * values,
        index=costs.index_seconds * values,
        each_partition=costs.partition_seconds,
    )
    seconds = stage_seconds(
        measured,
        tables=len(files),
        postings=postings,
        values=values,
        index_bytes=vectors_bytes,
        model_bytes=costs.model_bytes,
        partitions=partitions,
        cores=cores,
        factor=machine_factor(cores),
        equal_text=equal_text,
    )
    task_bytes = max(
        READ_MEMORY_FACTOR * max(file.n_bytes for file in files),
        BUILD_MEMORY_FACTOR * vectors_bytes // partitions,
        shard_memory(equal_text),
    )
    return Estimate(
        lake=os.fspath(lake),
        files=len(files),
        bytes=n_bytes,
        by_format=by_format(files),
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
        index_bytes=vectors_bytes + costs.model_bytes + equal_text.bytes,
        model_bytes=costs.model_bytes,
        equal_text=asdict(equal_text),
        partitions=partitions,
        memory_bytes=_memory(postings, costs.model_bytes if options.model == "fasttext" else 0, cores * task_bytes),
        cores=cores,
        seconds={stage: round(value, 1) for stage, value in seconds.items()},
    )


def _memory(postings: int, trained_bytes: int, tasks_bytes: int) -> int:
    """Give the most memory of a build in local mode: training and tasks take theirs one after the other."""
    java = min(MOST_JAVA_BYTES, JAVA_BYTES_PER_POSTING * postings)
    return BASE_BYTES + java + max(TRAINING_MEMORY_FACTOR * trained_bytes, tasks_bytes)


def _read(files: Sequence[TableFile], options: BuildOptions, progress: Callable[[int, int], None] | None) -> _Sample:
    sample = _Sample()
    for done, file in enumerate(files, 1):
        started = time.perf_counter()
        batches = list(
            table_records(
                file, options.rules, options.normaliser, max_bytes=options.max_table_bytes, tokens=bool(options.parts)
            )
        )
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
        sample.tokens.add(kept, format_name(file))
        if progress is not None:
            progress(done, len(files))
    return sample


def _parts(
    files: Sequence[TableFile], sample: _Sample, options: BuildOptions, scale: float, exact: bool
) -> PartsEstimate:
    """Scale the token sets of the sample up to the lake."""
    if not options.parts:
        return NO_PARTS
    found = sample.tokens
    columns = round(found.columns * scale)
    pairs = found.n_pairs if exact else scaled_pairs(files, found.pairs, sample.bytes_by_format)
    tokens, growth = grown(found.tokens, pairs)
    shards = shards_needed(columns, pairs, options.parts, options.partition_bytes)
    n_bytes = parts_bytes(
        options.parts,
        columns=columns,
        pairs=pairs,
        tokens_written=tokens_of_shards(tokens, shards, growth),
        token_bytes=found.token_bytes(),
        name_bytes=found.name_bytes / max(1, found.columns),
    )
    return PartsEstimate(options.parts, columns, tokens, pairs, shards, n_bytes)
