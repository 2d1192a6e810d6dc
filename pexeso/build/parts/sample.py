"""Selection and content of the sample files for an estimate, scaled up to the lake."""

from __future__ import annotations

import math
import time
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.build.source import records_of
from pexeso.build.workers import HERE_BYTES
from pexeso.lake.files import TableFile
from pexeso.lake.records import Records
from pexeso.options import BuildOptions
from pexeso.runtime.system import available_processors

_FIELDS = [
    *("record", "table", "label", "value", "reason", "n_rows", "n_columns", "texts"),
    *("facts", "hashes", "codes"),
]


@dataclass(frozen=True)
class LakeSample:
    """Some files of a lake, read: what parts of an index rest their estimates on."""

    files: Sequence[TableFile]
    chosen: Sequence[TableFile]
    records: Sequence[pa.Table]
    seconds: float
    options: BuildOptions

    @classmethod
    def read(
        cls,
        files: Sequence[TableFile],
        chosen: Sequence[TableFile],
        options: BuildOptions,
        wanted: Sequence[Records],
        progress: Callable[[int, int], None] | None = None,
    ) -> LakeSample:
        records, seconds = [], 0.0
        for n_finished, file in enumerate(chosen, 1):
            started = time.perf_counter()
            batches = list(records_of([file], options, wanted))
            records.append(pa.Table.from_batches(batches).select(_FIELDS))
            seconds += time.perf_counter() - started
            if progress is not None:
                progress(n_finished, len(chosen))
        return cls(files, chosen, records, seconds, options)

    @property
    def exact(self) -> bool:
        return len(self.chosen) == len(self.files)

    @property
    def scale(self) -> float:
        """How many times more files the lake has."""
        return len(self.files) / len(self.chosen)

    @cached_property
    def cores(self) -> int:
        n_bytes = sum(file.n_bytes for file in self.files) * (1 + len(self.options.parts))
        is_small = n_bytes <= HERE_BYTES and set(self.options.models) == {"lexical"}
        return 1 if is_small else available_processors()

    @cached_property
    def factor(self) -> float:
        """How much slower this machine is now than the machine of the constants."""
        return machine_factor(self.cores)

    @cached_property
    def bytes_by_format(self) -> Counter[str]:
        return _totals(self.chosen, [file.n_bytes for file in self.chosen])

    def count(self, kind: str, *, kept: bool = True) -> int:
        """Count the records of a kind, those that are left out only without `kept`."""
        return sum(len(self._of(records, kind, kept)) for records in self.records)

    def rows(self, kind: str) -> list[pa.Table]:
        return [self._of(records, kind, True) for records in self.records]

    def values(self, kind: str) -> list[pa.Array]:
        """Return for each file the values of its records of a kind, one column after the other."""
        return [rows["value"].combine_chunks() for rows in self.rows(kind)]

    def lake_pairs(self, kind: str) -> int:
        """Return the number of records of a kind in the lake, one per (column, value) pair."""
        return self.lake_total([len(rows) for rows in self.rows(kind)])

    def lake_total(self, of_files: Sequence[int]) -> int:
        """Return for the lake what has been counted in each file that was read."""
        totals = _totals(self.chosen, of_files)
        if self.exact:
            return totals.total()
        return scaled_pairs(self.files, totals, self.bytes_by_format)

    def _of(self, records: pa.Table, kind: str, only_kept: bool) -> pa.Table:
        chosen = pc.equal(records["record"], kind)
        return records.filter(
            pc.and_(chosen, pc.is_null(records["reason"])) if only_kept else chosen
        )


def format_name(file: TableFile) -> str:
    """Name a file's format as it matters for how much a byte on disk holds."""
    return file.format + (".gz" if file.table.lower().endswith(".gz") else "")


def choose_sample(
    files: Sequence[TableFile], seed: int, n_files: int, n_bytes: int
) -> list[TableFile]:
    """Draw files at random until their number or their bytes are reached.

    Each format occurs at least once, and at least one file is drawn.

    Files larger than the bytes that are left are passed over.
    """
    order = [files[position] for position in np.random.default_rng(seed).permutation(len(files))]
    firsts: dict[str, TableFile] = {}
    for file in order:
        if file.n_bytes <= n_bytes:
            firsts.setdefault(format_name(file), file)
    chosen: list[TableFile] = []
    for file in dict.fromkeys([*firsts.values(), *order]):
        if len(chosen) < n_files and file.n_bytes <= n_bytes:
            chosen.append(file)
            n_bytes -= file.n_bytes
    return chosen or [min(files, key=lambda file: file.n_bytes)]


def _totals(files: Sequence[TableFile], numbers: Sequence[int]) -> Counter[str]:
    totals: Counter[str] = Counter()
    for file, number in zip(files, numbers, strict=True):
        totals[format_name(file)] += number
    return totals


def by_format(files: Sequence[TableFile]) -> dict[str, dict[str, int]]:
    counts = _totals(files, [1] * len(files))
    n_bytes = _totals(files, [file.n_bytes for file in files])
    return {name: {"files": counts[name], "bytes": n_bytes[name]} for name in sorted(counts)}


def scaled_pairs(
    files: Sequence[TableFile], pairs: Mapping[str, int], n_bytes: Mapping[str, int]
) -> int:
    """Scale (column, value) pairs up by bytes, each format for itself."""
    n_sampled = sum(pairs.values())
    overall = n_sampled / max(1, sum(n_bytes.values()))
    total = 0.0
    for name, facts in by_format(files).items():
        sampled = n_bytes.get(name, 0)
        total += facts["bytes"] * (pairs.get(name, 0) / sampled if sampled else overall)
    return max(n_sampled, round(total))


def grown(sample: Sequence[pa.Array], pairs: int) -> tuple[int, float]:
    """Return the number of distinct values of a lake by Heaps' law.

    The number grows as a power of the number of pairs. The power is fitted to the sample and its
    first half.
    """
    n_sampled, pairs_sampled = n_distinct(sample), sum(map(len, sample))
    half = sample[: len(sample) // 2]
    n_half, pairs_half = n_distinct(half) if half else 0, sum(map(len, half))
    growth = 1.0
    if n_half and pairs_half < pairs_sampled:
        growth = math.log(n_sampled / n_half) / math.log(pairs_sampled / pairs_half)
    growth = min(1.0, max(0.0, growth))
    return min(pairs, round(n_sampled * (pairs / max(1, pairs_sampled)) ** growth)), growth


def n_distinct(values: Sequence[pa.Array]) -> int:
    return pc.count_distinct(pa.chunked_array(values, pa.string())).as_py()


# What each shared stage takes for the smallest lake.
FIXED_SECONDS: Mapping[str, float] = {"list": 0.1, "read": 0.1, "catalog": 0.1, "commit": 0.1}

# What the catalog does with each (column, value) pair: its id, its files; seconds of one core.
SECONDS_PER_POSTING = 2e-6

# What passing on one table's records costs besides reading it; seconds of one core.
SECONDS_PER_TABLE = 3e-3

_TEXT = b"".join(
    f"{number * 7919 % 10007} join lake table column {number}\n".encode() for number in range(8192)
)
_ROUNDS = 48
_REFERENCE_SECONDS = 0.115


def machine_factor(cores: int) -> float:
    """Measure how much slower all cores are now than those of the machine of the constants."""

    def work(_: int) -> None:
        for _ in range(_ROUNDS):
            zlib.compress(_TEXT, 6)  # lets other threads run

    shortest = float("inf")
    with ThreadPoolExecutor(cores) as pool:
        for _ in range(3):
            started = time.perf_counter()
            list(pool.map(work, range(cores)))
            shortest = min(shortest, time.perf_counter() - started)
    return shortest / _REFERENCE_SECONDS


def shared_seconds(
    *, read: float, tables: int, postings: int, cores: int, factor: float
) -> dict[str, float]:
    seconds = {stage: factor * fixed for stage, fixed in FIXED_SECONDS.items()}
    seconds["read"] += (read + factor * SECONDS_PER_TABLE * tables) / cores
    seconds["catalog"] += factor * SECONDS_PER_POSTING * postings / cores
    return seconds
