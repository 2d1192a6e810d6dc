"""What was asked for as data: a data set by name, with its model, dimensions, seed and scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.datasets import DataSet, data_set
from benchmarks.lake import BenchmarkLake
from pexeso.errors import InputError


@dataclass(frozen=True)
class Source:
    """A data set as it was asked for on the command line."""

    data: str
    model: str = "fasttext"
    dimensions: int | None = None
    seed: int = 0
    scale: float = 1.0

    def data_set(self) -> DataSet:
        options: dict[str, Any] = {"model": self.model, "seed": self.seed}
        if self.dimensions is not None:
            options["dimensions"] = self.dimensions
        if self.scale != 1:
            options["scale"] = self.scale
        lake_data = data_set(self.data, **options)
        if self.scale != 1 and _told_by(lake_data, "scale") is None:
            raise InputError(
                f"The data set {self.data} comes in one size. Got the scale {self.scale:g} instead."
            )
        dimensions = _told_by(lake_data, "dimensions")
        if self.dimensions is not None and dimensions not in (None, self.dimensions):
            raise InputError(
                f"The data set {self.data} has vectors of {dimensions} dimensions. Got "
                f"{self.dimensions} instead."
            )
        return lake_data

    def load(self) -> BenchmarkLake:
        """Make the lake, or read it from the cache."""
        return self.data_set().load()

    @property
    def variant(self) -> str:
        """What tells lakes of one data set apart, for the name of a file."""
        lake_data = self.data_set()
        model, dimensions = getattr(lake_data, "model", None), _told_by(lake_data, "dimensions")
        parts = [
            model if isinstance(model, str) else None,
            None if dimensions is None else f"{dimensions}d",
            None if self.scale == 1 else f"x{self.scale:g}",
        ]
        return "-".join(part for part in parts if part) or "own"


def _told_by(lake_data: DataSet, name: str) -> Any:
    """Return an attribute of a data set or of its model, or None where it has none."""
    value = getattr(lake_data, name, None)
    return getattr(getattr(lake_data, "model", None), name, None) if value is None else value
