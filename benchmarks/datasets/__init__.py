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
    """A data set."""

    @property
    def name(self) -> str:
        """Its name on the command line."""

    def load(self) -> BenchmarkLake:
        """Make the lake, or read it from the cache."""


def data_set(name: str, *, model: str = "fasttext", dimensions: int = 100, seed: int = 0) -> DataSet:
    """Give a data set.

    Parameters
    ----------
    name : str
        ``"web"``, ``"demo"`` or ``"random"``.
    model : {"fasttext", "hashing"}
        What embeds the values; `random` has vectors and no values, and ignores it.
    dimensions : int
        Of the vectors.
    seed : int
        Of the sample of text that a model is trained on, of a hashing model, and of the synthetic lake.
    """
    if name not in _MAKERS:
        raise InputError(f"Data sets are {', '.join(_MAKERS)}. Got {name!r} instead.")
    return _MAKERS[name](model, dimensions, seed)


def _web(model: str, dimensions: int, seed: int) -> DataSet:
    from benchmarks.datasets.tables import TablesData, web_sources

    return TablesData("web", web_sources, model, dimensions, seed, CACHE)


def _demo(model: str, dimensions: int, seed: int) -> DataSet:
    from benchmarks.datasets.tables import TablesData, demo_sources

    return TablesData("demo", demo_sources, model, dimensions, seed, CACHE)


def _random(model: str, dimensions: int, seed: int) -> DataSet:
    from benchmarks.datasets.synthetic import RandomData

    return RandomData(dimensions=dimensions, seed=seed)


_MAKERS: dict[str, Callable[[str, int, int], DataSet]] = {"web": _web, "demo": _demo, "random": _random}
