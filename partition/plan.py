"""The partitioner over a lake: files of postings and vectors in, a plan out.

Postings are Parquet files of ``column_id: int64, value: string``, one row for each distinct
normalised value of a column; a column is in one file. Vectors are Parquet files of ``value: string,
vector: list<float32>``, one row for each distinct value; file b of n has the values of bucket b by
:func:`pexeso.runtime.exchange.buckets_by_hash`.

All passes over them are tasks, which the caller runs: a task is a function of an item and an
attempt, whose ``path(kind, name)`` is a new file, found later as ``KIND/NUMBER-NAME`` in the
folder. Nothing is collected in proportion to the lake. The driver holds a sample of the vectors
(for the codebook), a sample of the columns (for the first centres), the centres and one sum a
centre (at most :data:`partition.balance.MAX_CLUSTERS` x regions numbers), and a list of pieces, a
few for each partition. A task holds one bucket of values, of columns, or one cluster.

The same files and options give the same plan, whatever the number of tasks and the order of rows:
samples are taken by hash, sums are kept in fixed point, and vectors are compared as whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from partition import balance
from partition.balance import Limits, Pieces, cut, fixed_limits, place, size_limits
from partition.clustering import (
    Partials,
    hash64,
    iterate,
    iterate_in_memory,
    jensen_shannon,
    nearest,
    normalise,
    partial_sums,
    row_chunks,
    seed_centres,
)
from partition.codebook import MAX_CODES, assign, fit_codebook
from pexeso.errors import InputError, LakeError
from pexeso.runtime.exchange import (
    BucketWriter,
    batches_of_bucket,
    bucket_files,
    buckets_by_hash,
    hash_rows,
    read_bucket,
)

# Vectors that the codebook is fitted on: more than 150 for each of 256 centroids.
CODEBOOK_SAMPLE = 40_000

# Most bytes of these on the driver: above 1,677 dimensions there are fewer of them.
CODEBOOK_SAMPLE_BYTES = 256 << 20

# Columns that the first centres are drawn from, or ten for each centre where that is more. A lake
# of no more columns is clustered on the driver, which holds them anyway; the result is the same.
SEEDING_COLUMNS = 10_000

COLUMNS_PER_BUCKET = 20_000
BATCH_ROWS = 1 << 14

PLAN = "plan"
IDS_PER_FILE = 1 << 22
"""Ids of columns, one after the other, whose partitions are in one file of the plan."""

_PLAN_SCHEMA = pa.schema([("column_id", pa.int64()), ("partition", pa.int32())])

_PAIRS = pa.schema([("column_id", pa.int64()), ("value", pa.string())])
_COUNTS = pa.schema([("column_id", pa.int64()), ("code", pa.int32()), ("n", pa.int64())])
_FEATURES = pa.schema(
    [
        ("column_id", pa.int64()),
        ("n_values", pa.int64()),
        ("codes", pa.list_(pa.int32())),
        ("counts", pa.list_(pa.int64())),
        ("tie", pa.int64()),
    ]
)
ASSIGNED = pa.schema(
    [
        ("column_id", pa.int64()),
        ("n_bytes", pa.int64()),
        ("tie", pa.int64()),
        ("cluster", pa.int32()),
        ("divergence", pa.float64()),
    ]
)


class Attempt(Protocol):
    """One attempt at a task."""

    def path(self, kind: str, name: str) -> Path:
        """Return the path of a new file of some kind."""


Run = Callable[[Callable[[Any, Any], Any], Sequence[Any]], list[Any]]
"""Runs a task for every item, and returns what each gave."""


def plan_partitions(
    run: Run,
    folder: Path,
    postings: Sequence[Path],
    vectors: Sequence[Path],
    *,
    dimensions: int,
    entry_bytes: int = 4,
    n_partitions: int | None = None,
    partition_bytes: int | None = None,
    min_partitions: int = 1,
    n_codes: int = MAX_CODES,
    seed: int = 0,
) -> int:
    """Divide the columns of a lake into partitions of similar content and bounded size.

    The partition of each column is left in the folder, to be read by `planned`, and their number
    returned. `run` runs tasks whose files come into the folder. Zero vectors, and values that are
    missing in `vectors`, count as values without meaning.

    There are `n_partitions`, or one a column where there are fewer columns; or as many as it takes
    for none to be larger than `partition_bytes`, by the estimate of `balance.partition_bytes`, from
    at least `min_partitions` clusters.
    """
    counts = [*run(_count, postings), (0, 0, -1)]
    n_columns, n_values = (sum(count[place] for count in counts) for place in (0, 1))
    n_ranges = max(highest for *_, highest in counts) // IDS_PER_FILE + 1
    if not n_columns:
        raise LakeError(
            "There is no column with a value, so there is nothing to divide into partitions."
        )
    limits = limits_of(
        n_columns,
        n_values,
        dimensions,
        n_partitions,
        partition_bytes,
        entry_bytes,
        min_partitions=min_partitions,
    )
    if limits.n_bins == 1:
        run(partial(_all_in_one, n_ranges=n_ranges), postings)
        run(partial(_write_plan, folder=folder, n_ranges=n_ranges), range(n_ranges))
        return 1
    sample = _sample_vectors(run, folder, vectors, dimensions, seed)
    codebook = fit_codebook(sample, n_codes=n_codes, seed=seed)
    features = _features(run, folder, postings, vectors, codebook, n_columns, dimensions, seed)
    centres = _centres(features, n_columns, limits, seed)
    n_found = _divide(features, folder, centres, limits, dimensions, entry_bytes, n_ranges)
    run(partial(_write_plan, folder=folder, n_ranges=n_ranges), range(n_ranges))
    return n_found


def planned(folder: Path, column_ids: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Return the partitions of some columns by the plan in a folder: int64 (n,), -1 for none."""
    ids = column_ids.to_numpy()
    partitions = np.full(len(ids), -1, np.int64)
    ranges = ids // IDS_PER_FILE
    for number in np.unique(ranges).tolist():
        path = folder / PLAN / _plan_name(number)
        if path.is_file():
            stored = np.load(path, mmap_mode="r")
            places = ids - number * IDS_PER_FILE
            rows = np.flatnonzero((ranges == number) & (places < len(stored)))
            partitions[rows] = stored[places[rows]]
    return partitions


def _plan_name(number: int) -> str:
    return f"{number:09d}.npy"


def limits_of(
    n_columns: int,
    n_values: int,
    dimensions: int,
    n_partitions: int | None = None,
    partition_bytes: int | None = None,
    entry_bytes: int = 4,
    *,
    min_partitions: int = 1,
) -> Limits:
    """Return how many partitions `plan_partitions` begins with, and how large they may be.

    With one there is nothing to plan: it gets every column.
    """
    total_bytes = balance.partition_bytes(n_values, n_values, dimensions, entry_bytes)
    if n_partitions is None:
        return size_limits(partition_bytes, n_columns, total_bytes, min_partitions=min_partitions)
    return fixed_limits(n_partitions, n_columns, total_bytes)


def _count(path: Path, attempt: Attempt) -> tuple[int, int, int]:
    """Count the columns and postings of a file, and return its highest id, -1 for none."""
    ids = pq.ParquetFile(path).read(columns=["column_id"])["column_id"]
    highest = pc.max(ids).as_py()
    return pc.count_distinct(ids).as_py(), len(ids), -1 if highest is None else highest


def _all_in_one(path: Path, attempt: Attempt, *, n_ranges: int) -> None:
    ids = pq.ParquetFile(path).read(columns=["column_id"])["column_id"].unique()
    _split_plan(attempt, ids.to_numpy(), np.zeros(len(ids), np.int32), n_ranges)


def _split_plan(
    attempt: Attempt, column_ids: np.ndarray, partitions: np.ndarray, n_ranges: int
) -> None:
    """Write the partitions of columns for the tasks that own the ranges of their ids."""
    rows = pa.table([column_ids, partitions], schema=_PLAN_SCHEMA)
    with BucketWriter(attempt.path("chosen", "part.arrow"), n_ranges, _PLAN_SCHEMA) as writer:
        writer.add(rows, column_ids // IDS_PER_FILE)


def _write_plan(number: int, attempt: Attempt, *, folder: Path, n_ranges: int) -> None:
    """Write the partitions of a range of ids, in their order, where it has any."""
    rows = read_bucket(folder / "chosen", number, n_ranges, _PLAN_SCHEMA)
    if not len(rows):
        return
    places = rows["column_id"].to_numpy() - number * IDS_PER_FILE
    stored = np.full(places.max() + 1, -1, np.int32)
    stored[places] = rows["partition"].to_numpy()
    path = folder / PLAN / _plan_name(number)
    path.parent.mkdir(exist_ok=True)
    # Two attempts at the task write the same bytes, and neither is seen before it is whole.
    draft = attempt.path("drafts", path.name)
    np.save(draft, stored)
    draft.replace(path)


def _sample_vectors(
    run: Run, folder: Path, vectors: Sequence[Path], dimensions: int, seed: int
) -> np.ndarray:
    """At most CODEBOOK_SAMPLE vectors, those of least hash."""
    n_wanted = min(CODEBOOK_SAMPLE, CODEBOOK_SAMPLE_BYTES // (4 * dimensions))
    n_rows = sum(pq.read_metadata(path).num_rows for path in vectors)
    run(partial(_few_vectors, highest_tie=_most_tie(n_rows, n_wanted), seed=seed), vectors)
    read = [
        pq.read_table(path, partitioning=None)
        for path in sorted((folder / "sample").glob("*.parquet"))
    ]
    sample = pa.concat_tables(read).sort_by("tie").slice(0, n_wanted)
    parts = [matrix_of(part.column("vector"), dimensions) for part in sample.to_batches()]
    return np.vstack([np.empty((0, dimensions), dtype=np.float32), *parts])


def _few_vectors(path: Path, attempt: Attempt, *, highest_tie: int, seed: int) -> None:
    chosen = []
    for batch in pq.ParquetFile(path).iter_batches(BATCH_ROWS, columns=["value", "vector"]):
        seeds = pa.array(np.full(len(batch), seed, np.int64))
        ties = (hash_rows(batch["value"], seeds).view(np.uint64) >> np.uint64(1)).view(np.int64)
        rows = pa.table({"tie": ties, "vector": batch["vector"]})
        chosen.append(rows.filter(pc.field("tie") < highest_tie))
    if chosen:
        pq.write_table(pa.concat_tables(chosen), attempt.path("sample", "part.parquet"))


def _most_tie(n_rows: int, n_wanted: int) -> int:
    """Return a bound of hashes in [0, 2**63) that hardly more rows than wanted are below.

    The margin makes a shortfall a matter of ten standard deviations.
    """
    expected = n_wanted + 10 * n_wanted**0.5 + 100
    return int(expected / n_rows * 2.0**63) if n_rows > expected else 2**63 - 1


@dataclass(frozen=True)
class _Features:
    """One row a column: its histogram, ``n_values``, and the hash ``tie`` that orders equals."""

    run: Run
    paths: Sequence[Path]
    width: int

    def matrix(self, rows: pa.Table) -> np.ndarray:
        parts = [features_of(part, self.width) for part in rows.to_batches()]
        return np.vstack([np.empty((0, self.width)), *parts])

    def least_ties(self, n_rows: int, n_wanted: int) -> pa.Table:
        """Return the rows of least ``tie``."""
        rows = self.run(
            partial(_of_least_ties, highest_tie=_most_tie(n_rows, n_wanted)), self.paths
        )
        return pa.concat_tables(rows).sort_by("tie").slice(0, n_wanted)

    def sums(self, centres: np.ndarray) -> Partials:
        """Sum the columns by their nearest centres."""
        total = Partials.zeros(*centres.shape)
        for sums in self.run(partial(sum_by_centre, centres=centres), self.paths):
            total.add(sums)
        return total

    def farthest(self, centres: np.ndarray, n: int) -> np.ndarray:
        """Return the columns farthest from their nearest centres, farthest first."""
        rows = pa.concat_tables(self.run(partial(_farthest, centres=centres, n=n), self.paths))
        return self.matrix(rows.sort_by(_FARTHEST_FIRST).slice(0, n))


_FARTHEST_FIRST = [("divergence", "descending"), ("tie", "ascending")]


def _of_least_ties(path: Path, attempt: Attempt, *, highest_tie: int) -> pa.Table:
    return pq.read_table(
        path, filters=pc.field("tie") < highest_tie, use_threads=False, partitioning=None
    )


def sum_by_centre(path: Path, attempt: Attempt, *, centres: np.ndarray) -> Partials:
    total = Partials.zeros(*centres.shape)
    for _, features in columns_in(path, centres.shape[1]):
        total.add(partial_sums(features, centres))
    return total


def _farthest(path: Path, attempt: Attempt, *, centres: np.ndarray, n: int) -> pa.Table:
    parts = [
        part.append_column("divergence", pa.array(nearest(features, centres)[1]))
        for part, features in columns_in(path, centres.shape[1])
    ]
    schema = _FEATURES.append(pa.field("divergence", pa.float64()))
    return pa.Table.from_batches(parts, schema).sort_by(_FARTHEST_FIRST).slice(0, n)


def _features(
    run: Run,
    folder: Path,
    postings: Sequence[Path],
    vectors: Sequence[Path],
    codebook: np.ndarray,
    n_columns: int,
    dimensions: int,
    seed: int,
) -> _Features:
    """Count every column's values by region of the codebook."""
    n_buckets = max(1, len(vectors))
    run(partial(_split_pairs, n_buckets=n_buckets), postings)
    n_parts = -(-n_columns // COLUMNS_PER_BUCKET)
    count = partial(
        _count_codes,
        placed=folder / "pairs",
        n_buckets=n_buckets,
        codebook=codebook,
        dimensions=dimensions,
        n_parts=n_parts,
    )
    run(count, list(enumerate(vectors)))
    gather = partial(_histograms, placed=folder / "counts", n_parts=n_parts, seed=seed)
    run(gather, range(n_parts))
    paths = sorted((folder / "features").glob("*.parquet"))
    return _Features(run, paths, len(codebook) + 1)


def _split_pairs(path: Path, attempt: Attempt, *, n_buckets: int) -> None:
    with BucketWriter(attempt.path("pairs", "part.arrow"), n_buckets, _PAIRS) as writer:
        for batch in pq.ParquetFile(path).iter_batches(BATCH_ROWS, columns=_PAIRS.names):
            writer.add(batch, buckets_by_hash(n_buckets, batch["value"]))


def _count_codes(
    item: tuple[int, Path],
    attempt: Attempt,
    *,
    placed: Path,
    n_buckets: int,
    codebook: np.ndarray,
    dimensions: int,
    n_parts: int,
) -> None:
    """Count the values of a bucket by column and region, for the tasks that own the columns."""
    bucket, path = item
    values, codes = [], []
    rows = pq.ParquetFile(path).iter_batches(BATCH_ROWS, columns=["value", "vector"])
    for part in _slices(rows, dimensions):
        values.append(part["value"])
        codes.append(assign(matrix_of(part["vector"], dimensions), codebook))
    known = pa.chunked_array(values, pa.string()).combine_chunks()
    regions = np.concatenate([*codes, np.array([len(codebook)], np.int32)])
    with BucketWriter(attempt.path("counts", "part.arrow"), n_parts, _COUNTS) as writer:
        for batch in batches_of_bucket(bucket_files(placed), bucket, n_buckets):
            place = pc.index_in(batch["value"], value_set=known).fill_null(len(known)).to_numpy()
            pairs = pa.table({"column_id": batch["column_id"], "code": regions[place]})
            counts = pairs.group_by(["column_id", "code"], use_threads=False).aggregate(
                [([], "count_all")]
            )
            counts = counts.rename_columns(_COUNTS.names)
            writer.add(counts, buckets_by_hash(n_parts, counts["column_id"]))


def _histograms(part: int, attempt: Attempt, *, placed: Path, n_parts: int, seed: int) -> None:
    """Bring the counts of the columns of a bucket together: `_FEATURES`."""
    rows = read_bucket(placed, part, n_parts, _COUNTS)
    rows = rows.group_by(["column_id", "code"], use_threads=False).aggregate([("n", "sum")])
    rows = rows.sort_by([("column_id", "ascending"), ("code", "ascending")]).combine_chunks()
    ids, counts = rows["column_id"].to_numpy(), rows["n_sum"].to_numpy()
    starts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1])[: len(ids)])
    offsets = pa.array(np.append(starts, len(ids)), pa.int32())
    column_ids = ids[starts]
    n_values = np.add.reduceat(counts, starts) if len(starts) else counts
    lists = [
        pa.ListArray.from_arrays(offsets, pa.array(values))
        for values in (rows["code"].to_numpy().astype(np.int32), counts)
    ]
    table = pa.table(
        [pa.array(column_ids), pa.array(n_values), *lists, pa.array(hash64(column_ids, seed))],
        schema=_FEATURES,
    )
    pq.write_table(table, attempt.path("features", "part.parquet"))


def _centres(features: _Features, n_columns: int, limits: Limits, seed: int) -> np.ndarray:
    """Compute the centres by k-means: a pass of tasks over the features for each round."""
    n_sample = max(SEEDING_COLUMNS, 10 * limits.n_clusters)
    rows = features.least_ties(n_columns, n_sample).sort_by("column_id")
    sample = features.matrix(rows)
    first = seed_centres(sample, limits.n_clusters, seed=seed)
    if n_columns <= n_sample:
        # The sample is the lake: the same passes over the same columns, without tasks for each.
        return iterate_in_memory(sample, rows["tie"].to_numpy(), first)
    return iterate(features.sums, features.farthest, first)


def _divide(
    features: _Features,
    folder: Path,
    centres: np.ndarray,
    limits: Limits,
    dimensions: int,
    entry_bytes: int,
    n_ranges: int,
) -> int:
    """Cut the clusters into pieces, and write the partition that each column gets."""
    place_columns = partial(
        assign_columns, centres=centres, dimensions=dimensions, entry_bytes=entry_bytes
    )
    features.run(place_columns, features.paths)
    n_clusters = len(centres)
    cut_out = partial(_cut, placed=folder / "assigned", n_clusters=n_clusters, limits=limits)
    pieces_of_clusters = features.run(cut_out, range(n_clusters))
    names = Pieces.__dataclass_fields__
    pieces = Pieces(
        *(
            np.concatenate([getattr(pieces_of_one, name) for pieces_of_one in pieces_of_clusters])
            for name in names
        )
    )
    partitions = place(
        pieces, limits, lambda cluster: jensen_shannon(centres[cluster : cluster + 1], centres)[0]
    )
    ends = np.cumsum([len(pieces_of_one.cluster) for pieces_of_one in pieces_of_clusters])
    of_clusters = np.split(partitions, ends[:-1])
    choose = partial(_choose, placed=folder / "cut", n_ranges=n_ranges)
    features.run(choose, list(enumerate(of_clusters)))
    return int(partitions.max()) + 1


def assign_columns(
    path: Path, attempt: Attempt, *, centres: np.ndarray, dimensions: int, entry_bytes: int
) -> None:
    """Write the size of each column, its nearest centre and the divergence from it: `ASSIGNED`."""
    file = attempt.path("assigned", "part.arrow")
    with BucketWriter(file, len(centres), ASSIGNED) as writer:
        for part, features in columns_in(path, centres.shape[1]):
            clusters, divergences = nearest(features, centres)
            n_values = part["n_values"].to_numpy()
            n_bytes = balance.partition_bytes(n_values, n_values, dimensions, entry_bytes)
            columns = [part["column_id"], pa.array(n_bytes), part["tie"]]
            rows = [*columns, pa.array(clusters), pa.array(divergences)]
            writer.add(pa.RecordBatch.from_arrays(rows, schema=ASSIGNED), clusters)


def _cut(
    cluster: int, attempt: Attempt, *, placed: Path, n_clusters: int, limits: Limits
) -> Pieces:
    """Cut a cluster, from its centre outwards, and write the piece of each of its columns."""
    rows = read_bucket(placed, cluster, n_clusters, ASSIGNED)
    names = ("column_id", "cluster", "divergence", "tie", "n_bytes")
    arrays = [rows[name].to_numpy() for name in names]
    if len(rows):
        pieces, piece_of = cut(*arrays, limits)
    else:
        piece_of = np.empty(0, np.int64)
        pieces = Pieces(*(piece_of for _ in Pieces.__dataclass_fields__))
    keyed = pa.table({"column_id": rows["column_id"], "piece": piece_of})
    pq.write_table(keyed, attempt.path("cut", "part.parquet"))
    return pieces


def _choose(item: tuple[int, np.ndarray], attempt: Attempt, *, placed: Path, n_ranges: int) -> None:
    """Write the partitions of the columns of a cluster, by those of its pieces."""
    cluster, partitions = item
    rows = pq.read_table(placed / f"{cluster:05d}-part.parquet", partitioning=None)
    chosen = partitions[rows["piece"].to_numpy()].astype(np.int32)
    _split_plan(attempt, rows["column_id"].to_numpy(), chosen, n_ranges)


def matrix_of(vectors: pa.Array, dimensions: int) -> np.ndarray:
    """Turn a list array into a matrix: float32 (n, dimensions), zeros where it is null."""
    lengths = pc.list_value_length(vectors)
    wrong = pc.fill_null(pc.not_equal(lengths, dimensions), False)
    if pc.any(wrong).as_py():
        length = pc.filter(lengths, wrong)[0].as_py()
        raise InputError(f"Every vector must have {dimensions} dimensions. Got one of {length}.")
    matrix = np.zeros((len(vectors), dimensions), dtype=np.float32)
    # flatten() leaves out what lies under a null.
    known = pc.is_valid(vectors).to_numpy(zero_copy_only=False)
    matrix[known] = vectors.flatten().to_numpy(zero_copy_only=False).reshape(-1, dimensions)
    return matrix


def features_of(batch: pa.RecordBatch, n_features: int) -> np.ndarray:
    """Read columns' features from a batch of ``codes: list<int32>`` and ``counts: list<int64>``."""
    codes = batch.column("codes")
    counts = np.zeros((batch.num_rows, n_features))
    rows = pc.list_parent_indices(codes).to_numpy()
    counts[rows, codes.flatten().to_numpy()] = batch.column("counts").flatten().to_numpy()
    return normalise(counts)


def columns_in(path: Path, n_features: int) -> Iterator[tuple[pa.RecordBatch, np.ndarray]]:
    """Yield the columns of a file of features, some at a time, with their histograms."""
    for part in _slices(pq.ParquetFile(path).iter_batches(BATCH_ROWS), n_features):
        yield part, features_of(part, n_features)


def _slices(batches: Iterable[pa.RecordBatch], width: int) -> Iterator[pa.RecordBatch]:
    """Cut batches so that each row as so many numbers is a matrix of bounded memory."""
    for batch in batches:
        for rows in row_chunks(batch.num_rows, width):
            yield batch.slice(rows.start, rows.stop - rows.start)
