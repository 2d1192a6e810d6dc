"""Data sets by name; each knows how to make its lake."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.lake import BenchmarkLake
from pexeso.errors import InputError

CACHE = Path(__file__).resolve().parent.parent / "data"
"""Where made lakes are kept, one folder each; it can be deleted at any time."""

NAMES = ("web", "demo", "random", "swdc", "open", "lwdc")


class DataSet(Protocol):
    @property
    def variant(self) -> str:
        """What tells lakes of one data set apart, for the name of a file."""

    def load(self) -> BenchmarkLake:
        """Make the lake, or read it from the cache."""


@dataclass(frozen=True)
class Source:
    """A data set as it was asked for: by name, with its model, dimensions, seed and scale."""

    data: str
    model: str = "fasttext"
    dimensions: int | None = None
    seed: int = 0
    scale: float = 1.0

    def data_set(self, cache: Path = CACHE) -> DataSet:
        """Return the data set; what makes it is imported when it is asked for."""
        if self.data not in NAMES:
            raise InputError(f"Data sets are {', '.join(NAMES)}. Got {self.data!r} instead.")
        if self.data in ("swdc", "open", "lwdc"):
            from benchmarks.datasets.calibrated import calibrated_model
            from benchmarks.datasets.calibrated_data import CalibratedData

            model = calibrated_model(self.data)
            if self.dimensions not in (None, model.dimensions):
                raise InputError(
                    f"The data set {self.data} has vectors of {model.dimensions} dimensions. Got "
                    f"{self.dimensions} instead."
                )
            return CalibratedData(model, self.scale, self.seed, cache)
        if self.scale != 1:
            raise InputError(
                f"The data set {self.data} comes in one size. Got the scale {self.scale:g} instead."
            )
        dimensions = self.dimensions or 100
        if self.data == "random":
            from benchmarks.datasets.synthetic import RandomData

            return RandomData(dimensions=dimensions, seed=self.seed)
        from benchmarks.datasets import tables

        sources = tables.web_sources if self.data == "web" else tables.demo_sources
        return tables.TablesData(self.data, sources, self.model, dimensions, self.seed, cache)

    def load(self) -> BenchmarkLake:
        """Make the lake, or read it from the cache."""
        return self.data_set().load()
