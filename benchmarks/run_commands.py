"""The commands ``run`` and ``sweep``: algorithms on a data set, against each other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import click

from benchmarks import report
from benchmarks.commands import COUNT, SHARE, Result, benchmark, refuse_unknown, setting
from benchmarks.datasets import Source
from benchmarks.declared import known_algorithms, load_candidates
from benchmarks.harness import Settings, run_benchmark
from benchmarks.machine import find_device
from benchmarks.result_tables import run_text, sweep_text
from benchmarks.sweeps import known_sweeps, run_sweep
from pexeso.errors import InputError

DEFAULT_QUERIES = 100
SWEEPS = known_sweeps()


@dataclass(frozen=True)
class Question:
    """What is asked of a data set."""

    data: str = setting("web", "Data set: web, demo, random, swdc, open or lwdc.")
    scale: float = setting(1.0, "Of a synthetic data set.", type=SHARE)
    queries: int | None = setting(
        None,
        f"Query columns, drawn from the lake's own.  [default: {DEFAULT_QUERIES}]",
        type=COUNT,
    )
    batch: int | None = setting(
        None, "So many query columns in one call, instead of --queries one at a time.", type=COUNT
    )
    max_distance: float = setting(0.06, "Of two values that match.", type=click.FloatRange(0, 1))
    min_joinability: float = setting(0.6, "Of a column that is found.", type=SHARE)
    repeats: int = setting(3, "Timed repeats of each question.", type=COUNT)
    seed: int = setting(0, "Of all draws.")
    model: str = setting("fasttext", "fasttext (trained on the lake) or hashing.")
    dimensions: int | None = setting(
        None, "Of the vectors.  [default: the data set's own]", type=COUNT
    )
    device: str = setting("cpu", "cpu, cuda or cuda:N.")
    threads: int | None = setting(
        None, "For torch, OpenMP and BLAS.  [default: all cores]", type=COUNT
    )

    @property
    def source(self) -> Source:
        return Source(self.data, self.model, self.dimensions, self.seed, self.scale)

    @property
    def settings(self) -> Settings:
        if self.batch is not None and self.queries is not None:
            raise InputError(
                "--batch says how many query columns are asked, all in one call; --queries cannot "
                "be given as well."
            )
        given = self.queries if self.batch is None else self.batch
        return Settings(
            queries=DEFAULT_QUERIES if given is None else given,
            max_distance=self.max_distance,
            min_joinability=self.min_joinability,
            repeats=self.repeats,
            seed=self.seed,
            device=self.device,
            threads=_cores() if self.threads is None else self.threads,
            batched=self.batch is not None,
        )


@dataclass(frozen=True)
class AlgorithmsQuestion(Question):
    """What is asked of some algorithms."""

    algorithms: str = setting(
        "pexeso,faiss_flat,brute_gemm",
        f"Comma-separated NAME or NAME:GRID, of {', '.join(known_algorithms())}.",
    )


@dataclass(frozen=True)
class SweepQuestion(Question):
    """What is asked at each point of a declared sweep."""

    name: str = setting("", nargs=1)
    algorithms: str = setting("", "Instead of those that the sweep declares.")


@benchmark("run", AlgorithmsQuestion, run_text)
def run(question: AlgorithmsQuestion) -> Iterator[tuple[str, Result]]:
    """Run algorithms on a data set."""
    source, settings, names = question.source, question.settings, _names(question.algorithms)
    candidates = load_candidates(names, find_device(settings.device))
    file = report.result_name(source.data, source.data_set().variant, names, settings)
    yield file, run_benchmark(source.load(), candidates, settings)


@benchmark("sweep", SweepQuestion, sweep_text)
def sweep(question: SweepQuestion) -> Iterator[tuple[str, Result]]:
    """Vary one thing, as NAME in benchmarks/sweeps.yml declares it."""
    refuse_unknown("Sweeps", [question.name], SWEEPS)
    source, settings = question.source, question.settings
    names = _names(question.algorithms) if question.algorithms else None
    variant = f"sweep-{question.name}_{source.data_set().variant}"
    file = report.result_name(source.data, variant, names or (), settings)
    yield file, run_sweep(SWEEPS[question.name], source, settings, names)


def _names(algorithms: str) -> list[str]:
    return [name.strip() for name in algorithms.split(",")]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
