"""Data sets by name; each knows how to make its lake."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from benchmarks.lake import BenchmarkLake
from pexeso.errors import InputError

CACHE = Path(__file__).resolve().parent.parent / "data"
"""Where made lakes are kept, one folder each; it can be deleted at any time."""


class DataSet(Protocol):
    @property
    def name(self) -> str:
        """Its name on the command line."""

    def load(self) -> BenchmarkLake:
        """Make the lake, or read it from the cache."""


def data_set(
    name: str, *, model: str = "fasttext", dimensions: int = 100, seed: int = 0, scale: float = 1.0
) -> DataSet:
    if name not in _MAKERS:
        raise InputError(f"Data sets are {', '.join(_MAKERS)}. Got {name!r} instead.")
    return _MAKERS[name](model, dimensions, seed, scale)


def _web(model: str, dimensions: int, seed: int, scale: float) -> DataSet:
    from benchmarks.datasets.tables import TablesData, web_sources

    return TablesData("web", web_sources, model, dimensions, seed, CACHE)


def _demo(model: str, dimensions: int, seed: int, scale: float) -> DataSet:
    from benchmarks.datasets.tables import TablesData, demo_sources

    return TablesData("demo", demo_sources, model, dimensions, seed, CACHE)


def _random(model: str, dimensions: int, seed: int, scale: float) -> DataSet:
    from benchmarks.datasets.synthetic import RandomData

    return RandomData(dimensions=dimensions, seed=seed)


def _calibrated(name: str) -> Callable[[str, int, int, float], DataSet]:
    def make(model: str, dimensions: int, seed: int, scale: float) -> DataSet:
        from benchmarks.datasets.calibrated import calibrated_model
        from benchmarks.datasets.calibrated_data import CalibratedData

        return CalibratedData(calibrated_model(name), scale, seed, CACHE)

    return make


_MAKERS: dict[str, Callable[[str, int, int, float], DataSet]] = {
    "web": _web,
    "demo": _demo,
    "random": _random,
    **{name: _calibrated(name) for name in ("swdc", "open", "lwdc")},
}
