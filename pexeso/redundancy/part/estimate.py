"""What the part for redundant tables will hold and cost: counted on a sample of the lake's files.

Bytes are scaled by the bytes of the files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import pyarrow.compute as pc

from pexeso.build.parts.base import PartEstimate
from pexeso.build.parts.estimation.sample import LakeSample
from pexeso.redundancy.part.part import ROW_HASHES_PART
from pexeso.redundancy.part.records import RECORD
from pexeso.redundancy.part.write import PIECE_BYTES, shards_needed
from pexeso.redundancy.pieces import n_columns

FIXED_SECONDS: Mapping[str, float] = {"read": 0.3, "divide-hashes": 0.8, "hashes": 0.3}
"""What each stage takes for the smallest lake."""

SECONDS_PER_CELL: Mapping[str, float] = {
    "read": 0.15e-6,
    "divide-hashes": 0.05e-6,
    "hashes": 0.03e-6,
}
"""What each cell costs, seconds of one core."""


@dataclass(frozen=True)
class RowHashesEstimate:
    """What the hashed cells of an index will take.

    Attributes
    ----------
    bytes : int
        On the disk.
    """

    rows: int = 0
    cells: int = 0
    shards: int = 0
    bytes: int = 0


def estimate(sample: LakeSample) -> PartEstimate:
    """Return what the shards of a lake take; nothing where they are not asked for."""
    options = sample.options
    if not set(ROW_HASHES_PART.choices) & set(options.parts):
        return PartEstimate(
            {"redundancy": asdict(RowHashesEstimate())}, n_bytes=0, memory_bytes=0, seconds={}
        )
    read = sample.rows(RECORD)
    n_rows = sample.lake_total([pc.sum(rows["n_rows"]).as_py() or 0 for rows in read])
    cells = sample.lake_total(
        [
            sum(
                n_columns(facts) * n
                for facts, n in zip(
                    rows["facts"].to_pylist(), rows["n_rows"].to_pylist(), strict=True
                )
            )
            for rows in read
        ]
    )
    n_bytes = sample.lake_total(
        [
            sum(pc.sum(pc.binary_length(rows[name])).as_py() or 0 for name in _STORED)
            + len(rows) * PIECE_BYTES
            for rows in read
        ]
    )
    sizes = RowHashesEstimate(
        n_rows, cells, shards_needed(n_bytes, options.partition_bytes), n_bytes
    )
    seconds = {
        stage: sample.factor * (FIXED_SECONDS[stage] + rate * cells / min(sample.cores, 1 << 30))
        for stage, rate in SECONDS_PER_CELL.items()
    }
    seconds = sample.seconds_of(seconds, FIXED_SECONDS)
    memory = 2 * n_bytes // max(1, sizes.shards)
    return PartEstimate({"redundancy": asdict(sizes)}, n_bytes, memory, seconds)


_STORED = ("hashes", "codes", "facts")
