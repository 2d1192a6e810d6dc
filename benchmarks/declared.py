"""Declared algorithms: a thin adapter, and a YAML file with its grid of arguments.

The grid has build and query arguments.

``benchmarks/algorithms/<name>/config.yml``::

    description: one sentence
    adapter: benchmarks.algorithms.<name>.module:ClassName
    exact: true                  # must agree with the other exact ones
    packages: [faiss]            # what must be importable
    devices: [cpu, cuda]
    grids:
      default: {build: {n_pivots: [5]}, query: {}}
      pivots:  {build: {n_pivots: [3, 5, 8], n_levels: [4, 6]}, query: {}}

Each argument has a list of values; a grid is their product, build arguments first. An algorithm is
asked for as ``name`` (grid ``default``) or ``name:grid``.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.lake import Answer, BenchmarkLake, BenchmarkQuery
from pexeso.errors import InputError, MissingPackageError

ALGORITHMS = Path(__file__).resolve().parent / "algorithms"
DEFAULT_GRID = "default"

Arguments = Mapping[str, Any]


class Algorithm(ABC):
    """An adapter: how the harness drives one algorithm.

    Attributes
    ----------
    work : dict of str to number
        Counters of the last query: ``distances`` computed, ``vectors_touched``, ``bytes_read`` (of
        vectors), and seconds by phase as ``seconds_<phase>``. An adapter gives those that it knows.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.work: dict[str, float] = {}
        self.index_bytes = 0
        self.chosen: dict[str, Any] = {}

    @abstractmethod
    def build(self, lake: BenchmarkLake) -> None:
        """Make the index; a subclass takes the build arguments of its grids by name."""

    def set_query_arguments(self) -> None:  # noqa: B027
        """Take the query arguments of a grid point by name, which a subclass declares."""

    @abstractmethod
    def query(self, query: BenchmarkQuery) -> Answer:
        """Answer one query column."""

    def query_batch(self, queries: Sequence[BenchmarkQuery]) -> list[Answer]:
        """Answer many query columns of one threshold, as efficiently as the algorithm can."""
        total: Counter[str] = Counter()
        answers = []
        for query in queries:
            answers.append(self.query(query))
            total.update(self.work)
        self.work = dict(total)
        return answers


@dataclass(frozen=True)
class Candidate:
    """One point of an algorithm's grid, ready to be made."""

    name: str
    adapter: type[Algorithm]
    exact: bool
    build_arguments: Arguments
    query_arguments: Arguments


def known_algorithms() -> list[str]:
    """Return the names of the declared algorithms."""
    return sorted(config.parent.name for config in ALGORITHMS.glob("*/config.yml"))


def load_candidates(specs: Sequence[str], device: torch.device) -> list[Candidate]:
    """Read the declarations of ``name`` or ``name:grid`` into grid points."""
    if len(set(specs)) < len(specs):
        raise InputError(f"Each algorithm can be named once. Got {', '.join(specs)}.")
    return [candidate for spec in specs for candidate in _candidates_of(spec, device)]


def _candidates_of(spec: str, device: torch.device) -> Iterator[Candidate]:
    name, _, grid_name = spec.partition(":")
    config = _read_config(name)
    if device.type not in config["devices"]:
        raise InputError(
            f"{name} runs on {', '.join(config['devices'])}. Got the device {device} instead."
        )
    missing = [
        package
        for package in config.get("packages", ())
        if importlib.util.find_spec(package) is None
    ]
    if missing:
        raise MissingPackageError(
            f"The algorithm {name} needs {', '.join(missing)}: pip install -e '.[dev]'."
        )
    grid_name = grid_name or DEFAULT_GRID
    if grid_name not in config["grids"]:
        raise InputError(
            f"{name} has the grids {', '.join(config['grids'])}. Got {grid_name!r} instead."
        )
    module, _, adapter = config["adapter"].partition(":")
    adapter = getattr(importlib.import_module(module), adapter)
    grid = config["grids"][grid_name]
    varied = {key for part in grid.values() for key, values in part.items() if len(values) > 1}
    for build, query in itertools.product(_points(grid["build"]), _points(grid["query"])):
        label = name if grid_name == DEFAULT_GRID else f"{name}:{grid_name}"
        differing = [
            f"{key}={value}" for key, value in sorted({**build, **query}.items()) if key in varied
        ]
        yield Candidate(
            label + (f"({','.join(differing)})" if differing else ""),
            adapter,
            config["exact"],
            build,
            query,
        )


def _read_config(name: str) -> dict[str, Any]:
    import yaml

    if name not in known_algorithms():
        raise InputError(f"Algorithms are {', '.join(known_algorithms())}. Got {name!r} instead.")
    return yaml.safe_load((ALGORITHMS / name / "config.yml").read_text(encoding="utf-8"))


def _points(arguments: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return the product of the arguments' values."""
    return [
        dict(zip(arguments, values, strict=True))
        for values in itertools.product(*arguments.values())
    ]
