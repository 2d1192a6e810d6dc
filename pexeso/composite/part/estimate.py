"""What the part for composite keys will hold and cost: counted on a sample of the lake's files.

Rows and cells are scaled by bytes, distinct values by Heaps' law.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.build.parts.base import PartEstimate
from pexeso.build.parts.estimation.sample import LakeSample, grown
from pexeso.composite.part.part import ROW_KEYS_PART
from pexeso.composite.part.records import RECORD
from pexeso.composite.part.write import shards_needed

STORED_CELL_BYTES, STORED_VALUE_BYTES = 8, 12
"""On the disk: a cell and its entry in a posting list; and of a value, beside its letters, where
these end and where its list begins."""

MEMORY_OF_CELL = 50
"""Bytes of memory while a shard is built."""

FIXED_SECONDS: Mapping[str, float] = {"read": 0.3, "divide-rows": 0.8, "rows": 0.3}
"""What each stage takes for the smallest lake."""

SECONDS_PER_CELL: Mapping[str, float] = {"read": 0.25e-6, "divide-rows": 0.15e-6, "rows": 0.15e-6}
"""What each cell costs, seconds of one core."""


@dataclass(frozen=True)
class RowKeysEstimate:
    """What the rows of an index will hold.

    Attributes
    ----------
    bytes : int
        On the disk.
    """

    rows: int = 0
    cells: int = 0
    values: int = 0
    shards: int = 0
    bytes: int = 0


def estimate(sample: LakeSample) -> PartEstimate:
    """Return what the shards of a lake take; nothing where they are not asked for."""
    options = sample.options
    if not set(ROW_KEYS_PART.choices) & set(options.parts):
        return PartEstimate(
            {"composite": asdict(RowKeysEstimate())}, n_bytes=0, memory_bytes=0, seconds={}
        )
    read = sample.rows(RECORD)
    texts = [pc.list_flatten(rows["texts"].combine_chunks()) for rows in read]
    cells = sample.lake_total(
        [pc.sum(pc.multiply(rows["n_rows"], rows["n_columns"])).as_py() or 0 for rows in read]
    )
    n_rows = sample.lake_total([pc.sum(rows["n_rows"]).as_py() or 0 for rows in read])
    n_texts = sample.lake_total([len(file_texts) for file_texts in texts])
    distinct = pc.unique(pa.chunked_array(texts, pa.string()))
    mean_bytes = (pc.sum(pc.binary_length(distinct)).as_py() or 0) / max(1, len(distinct))
    values, growth = grown(texts, n_texts) if len(distinct) else (0, 1.0)
    shards = shards_needed(cells, n_rows, round(n_texts * mean_bytes), options.partition_bytes)
    # A value that stands in two shards is written twice.
    values = round(values * max(1, shards) ** (1.0 - growth))
    filter_bytes = sum(int(name.split("-")[1]) // 8 for name in options.row_filters)
    n_bytes = round(
        cells * STORED_CELL_BYTES
        + n_rows * filter_bytes
        + values * (STORED_VALUE_BYTES + mean_bytes)
    )
    sizes = RowKeysEstimate(n_rows, cells, values, shards, n_bytes)
    seconds = {
        stage: sample.factor
        * (FIXED_SECONDS[stage] + rate * cells / min(sample.cores, _tasks(stage, sizes)))
        for stage, rate in SECONDS_PER_CELL.items()
    }
    seconds = sample.seconds_of(seconds, FIXED_SECONDS)
    memory = MEMORY_OF_CELL * cells // max(1, shards)
    return PartEstimate({"composite": asdict(sizes)}, n_bytes, memory, seconds)


def _tasks(stage: str, sizes: RowKeysEstimate) -> int:
    """Return how many tasks a stage has at most: a shard is built by one."""
    return max(1, sizes.shards) if stage == "rows" else 1 << 30
