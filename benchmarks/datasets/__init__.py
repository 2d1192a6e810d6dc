"""Data sets by name; each knows how to make its lake."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from benchmarks.lake import BenchmarkLake
from pexeso.errors import InputError

CACHE = Path(__file__).resolve().parent.parent / "data"
"""Where made lakes are kept, one folder each; it can be deleted at any time."""


NAMES = ("web", "demo", "random", "swdc", "open", "lwdc")


class DataSet(Protocol):
    @property
    def name(self) -> str:
        """Its name on the command line."""

    def load(self) -> BenchmarkLake:
        """Make the lake, or read it from the cache."""


def data_set(
    name: str, *, model: str = "fasttext", dimensions: int = 100, seed: int = 0, scale: float = 1.0
) -> DataSet:
    """Return a data set by name; what makes it is imported when it is asked for."""
    if name not in NAMES:
        raise InputError(f"Data sets are {', '.join(NAMES)}. Got {name!r} instead.")
    if name == "random":
        from benchmarks.datasets.synthetic import RandomData

        return RandomData(dimensions=dimensions, seed=seed)
    if name in ("web", "demo"):
        from benchmarks.datasets import tables

        sources = tables.web_sources if name == "web" else tables.demo_sources
        return tables.TablesData(name, sources, model, dimensions, seed, CACHE)
    from benchmarks.datasets.calibrated import calibrated_model
    from benchmarks.datasets.calibrated_data import CalibratedData

    return CalibratedData(calibrated_model(name), scale, seed, CACHE)
