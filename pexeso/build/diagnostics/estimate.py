"""Estimate of the cost of a build before it runs: counts, bytes, memory and time.

It is made from a bounded sample of the lake's files.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from heapq import nlargest

from pexeso.build.job import stage_names
from pexeso.build.parts.base import OfParts, PartEstimate
from pexeso.build.parts.sample import LakeSample, by_format, choose_sample, shared_seconds
from pexeso.build.source import READ_MEMORY_FACTOR
from pexeso.errors import LakeError
from pexeso.lake.files import find_tables
from pexeso.options import BuildOptions
from pexeso.registry import registered, requested_parts

SAMPLE_FILES = 200
# Largest sample, on disk; a single larger file is sampled only where there is no smaller one.
SAMPLE_BYTES = 64 << 20

# Memory of a build of a small lake, and of each process that it starts, with their packages.
BASE_BYTES, BYTES_PER_PROCESS = 500_000_000, 200_000_000


@dataclass(frozen=True, repr=False)
class Estimate(OfParts):
    """What indexing a lake will cost.

    Attributes
    ----------
    lake : str
    files, bytes : int
        Files of the lake, as `IndexInfo` counts them, and the size of those that can be tables.
    by_format : dict of str to dict
        ``files`` and ``bytes`` of each format.
    skipped : int
        Files that are no tables by their name; `by_format` has the others.
    sampled_files, sampled_bytes : int
        What the figures rest on.
    exact : bool
        True where the whole lake was sampled: then the counts are not estimates.
    tables, columns, columns_indexed : int
        As `IndexInfo` counts them.
    index_bytes : int
        On disk.
    memory_bytes : int
        Of a build by this machine's processes, at its highest: that of training the model or of the
        largest tasks that run side by side, one for each core.
    cores : int
        That index it: 1 where no process is started for it.
    seconds : dict of str to float
        By stage of a build (`pexeso.build.job.stage_names`), on this machine, at the rates measured
        on the sample, and as busy as the machine was when they were measured.
    of_parts : dict
        What each part says besides: ``postings``, ``values``, ``dimensions``, ``model_bytes`` (part
        of the index's) and ``partitions``, and as ``further_models`` the same of each further
        model; and of token sets as ``equal_text`` what
        `pexeso.sets.part.write.TokenSetsEstimate` has.
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
    index_bytes: int
    memory_bytes: int
    cores: int
    seconds: dict[str, float]


def estimate_build(
    lake: str | os.PathLike[str],
    options: BuildOptions | None = None,
    *,
    sample_files: int = SAMPLE_FILES,
    sample_bytes: int = SAMPLE_BYTES,
    progress: Callable[[int, int], None] | None = None,
) -> Estimate:
    """Estimate what `build_index` would cost, without Spark.

    The sample is drawn with the seed of the options. Columns are scaled by the number of files;
    (column, value) pairs by bytes, each format for itself; distinct values by Heaps' law: their
    number grows as a power of the number of pairs, fitted to the sample and its first half.

    Parameters
    ----------
    lake : path
    options : BuildOptions, optional
    sample_files, sample_bytes : int
        The largest sample.
    progress : callable, optional
        Called with the files read and the files to read.

    Raises
    ------
    LakeError
        There is no table in the lake, or no column that can be a join key in the sample.
    EmbedderError, MissingPackageError, InputError
        The model cannot be had.
    """
    options = (options or BuildOptions()).with_aliases_read()
    files, skipped = find_tables(lake, as_of=options.as_of)
    if not files:
        raise LakeError(
            f"There is no table in '{lake}': none of the {len(skipped)} files there is one by "
            "its name."
        )
    chosen = choose_sample(files, options.seed, sample_files, sample_bytes)
    n_bytes = sum(file.n_bytes for file in files)
    part_records = [part.records for part in requested_parts(options.parts)]
    sample = LakeSample.read(files, chosen, options, part_records, progress)
    kinds = {kind for records in sample.records for kind in records["record"].unique().to_pylist()}
    if not any(map(sample.count, kinds - {"table", "column"})):
        raise LakeError(
            f"None of the {len(chosen)} files of '{lake}' that were sampled has a column that "
            "can be a join key. "
            "Sample more files, or change the rules that choose columns."
        )
    estimates = [part.estimate(sample) for part in registered()]
    postings = sample.lake_pairs("value")
    processes = BYTES_PER_PROCESS * sample.cores if sample.cores > 1 else 0
    # Stages, and training, in the driver, take their memory one after the other.
    memory_bytes = (
        BASE_BYTES
        + processes
        + max(
            READ_MEMORY_FACTOR * sum(nlargest(sample.cores, (file.n_bytes for file in files))),
            *(
                max(costs.driver_bytes, min(sample.cores, costs.n_tasks) * costs.memory_bytes)
                for costs in estimates
            ),
        )
    )
    return Estimate(
        lake=os.fspath(lake),
        files=len(files) + len(skipped),
        bytes=n_bytes,
        by_format=by_format(files),
        skipped=len(skipped),
        sampled_files=len(chosen),
        sampled_bytes=sum(file.n_bytes for file in chosen),
        exact=sample.exact,
        tables=round(sample.count("table") * sample.scale),
        columns=round(sample.count("column", kept=False) * sample.scale),
        columns_indexed=round(sample.count("column") * sample.scale),
        index_bytes=sum(estimate.n_bytes for estimate in estimates),
        memory_bytes=memory_bytes,
        cores=sample.cores,
        seconds=_seconds(sample, estimates, n_bytes, postings),
        of_parts={name: value for estimate in estimates for name, value in estimate.fields.items()},
    )


def _seconds(
    sample: LakeSample, estimates: list[PartEstimate], n_bytes: int, postings: int
) -> dict[str, float]:
    read = sample.seconds / max(1, sum(sample.bytes_by_format.values())) * n_bytes
    seconds = Counter(
        shared_seconds(
            read=read,
            tables=len(sample.files),
            postings=postings,
            cores=sample.cores,
            factor=sample.factor,
        )
    )
    for estimate in estimates:
        seconds.update(estimate.seconds)
    stages = stage_names(len(sample.options.models))
    return {stage: round(seconds[stage], 1) for stage in stages if stage in seconds}
