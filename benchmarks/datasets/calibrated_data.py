"""Calibrated lakes as data sets: made once, straight into files, and memory-mapped from then on."""

from __future__ import annotations

import dataclasses
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from benchmarks.datasets.cache import key_of, load_or_write
from benchmarks.datasets.calibrated import CalibratedModel, VectorChunks, plan_lake
from benchmarks.datasets.calibrated_columns import ColumnPlan, postings
from benchmarks.lake import BenchmarkLake
from pexeso.errors import OutputError

FORMAT = 2
"""Goes up when the same parameters give another lake.

So one made before is not taken for it.
"""


@dataclass(frozen=True)
class CalibratedData:
    """A calibrated lake in arrays, for the CPU.

    Making it writes chunk by chunk: beside 100 bytes a column and 1 GiB nothing is held, whatever
    the scale (0.81 GB were measured for ``swdc`` at full size, 0.25 GB for ``open`` at 1/10).
    Loading maps the files, and reads what is used.
    """

    model: CalibratedModel
    scale: float
    seed: int
    cache: Path

    def __post_init__(self) -> None:
        self.model.size_at(self.scale)

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def variant(self) -> str:
        return f"{self.model.dimensions}d" + ("" if self.scale == 1 else f"-x{self.scale:g}")

    def load(self) -> BenchmarkLake:
        """Make the lake, or map the one in the cache."""
        key = key_of(
            {
                "calibrated": FORMAT,
                "model": dataclasses.asdict(self.model),
                "scale": self.scale,
                "seed": self.seed,
                "torch": torch.__version__,
            }
        )
        return load_or_write(
            self.cache / f"{self.name}-{self.scale:g}-{key}", self._write, mapped=True
        )

    def _write(self, folder: Path) -> dict[str, object]:
        plan = plan_lake(self.model, self.scale, self.seed)
        self._check_room(plan, folder)
        _write_columns(plan, folder)
        _write_vectors(VectorChunks(self.model, plan, torch.device("cpu")), folder)
        facts = {"scale": self.scale, "seed": self.seed, "calibrated_on": "web"}
        return {"name": self.name, "columns": len(plan.sizes), "facts": facts}

    def _check_room(self, plan: ColumnPlan, folder: Path) -> None:
        needed = (
            4 * plan.n_values * self.model.dimensions + 16 * plan.n_postings + 16 * len(plan.sizes)
        )
        free = shutil.disk_usage(folder).free
        if needed > free:
            raise OutputError(
                f"{self.name} at the scale {self.scale:g} takes {needed / 1e9:,.1f} GB in "
                f"{folder.parent}, where {free / 1e9:,.1f} GB are "
                "free. Ask for a smaller scale, or make room."
            )


def _array(folder: Path, name: str, dtype: type, shape: tuple[int, ...]) -> np.ndarray:
    return np.lib.format.open_memmap(folder / f"{name}.npy", mode="w+", dtype=dtype, shape=shape)


def _write_columns(plan: ColumnPlan, folder: Path) -> None:
    n_columns, n_postings = len(plan.sizes), plan.n_postings
    offsets = _array(folder, "column_offsets", np.int64, (n_columns + 1,))
    offsets[0] = 0
    np.cumsum(plan.sizes.numpy(), out=offsets[1:])
    column_values = _array(folder, "column_values", np.int64, (n_postings,))
    value_rows = _array(folder, "value_rows", np.int64, (n_postings,))
    start = 0
    for values, rows in postings(plan, torch.device("cpu")):
        column_values[start : start + len(values)] = values.numpy()
        value_rows[start : start + len(rows)] = rows.numpy()
        start += len(values)
    column_rows = _array(folder, "column_rows", np.int64, (n_columns,))
    column_rows[:] = np.add.reduceat(value_rows, offsets[:-1])
    for array in (offsets, column_values, value_rows, column_rows):
        array.flush()


def _write_vectors(chunks: VectorChunks, folder: Path) -> None:
    vectors = _array(folder, "vectors", np.float32, chunks.shape)
    start = 0
    for chunk in chunks:
        vectors[start : start + len(chunk)] = chunk.numpy()
        start += len(chunk)
    vectors.flush()
