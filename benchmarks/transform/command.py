"""The command ``python -m benchmarks transform``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from benchmarks.commands import benchmark, refuse_unknown, setting
from benchmarks.machine import pin_threads
from benchmarks.transform import tables
from benchmarks.transform.life import SEEDS, measured_life
from benchmarks.transform.planted import measured_planted
from benchmarks.transform.quality import METHODS, measured_cases
from benchmarks.transform.restraint import measured_restraint


@dataclass(frozen=True)
class Request:
    parts: tuple[str, ...] = setting((), nargs=-1)
    only: str = setting("", "cases: those whose name holds this text.")
    methods: tuple[str, ...] = setting(METHODS, "cases: the methods.")
    pairs: int = setting(200, "restraint: pairs of a draw.")
    draws: int = setting(3, "restraint: draws of pairs.")
    rows: int = setting(10_000, "planted: rows of a table, at most; life: later rows.")
    share: float = setting(0.5, "planted: keys with a partner.")
    repeats: int = setting(3, "planted: timed repeats.")
    seed: int = setting(0, "Of samples and drawn tables.")
    seeds: tuple[int, ...] = setting(SEEDS, "life: of the drawn rules.")

    def __post_init__(self) -> None:
        refuse_unknown("Parts", self.parts, PARTS)
        refuse_unknown("Methods", self.methods, METHODS)


def _cases(request: Request) -> dict[str, Any]:
    return measured_cases(seed=request.seed, only=request.only, methods=request.methods)


def _restraint(request: Request) -> dict[str, Any]:
    return measured_restraint(seed=request.seed, n_pairs=request.pairs, n_draws=request.draws)


def _planted(request: Request) -> dict[str, Any]:
    sizes = {"max_rows": request.rows, "share": request.share, "repeats": request.repeats}
    return measured_planted(seed=request.seed, **sizes)


def _life(request: Request) -> dict[str, Any]:
    return measured_life(seeds=request.seeds, n_later=request.rows)


PARTS = {
    "cases": (_cases, tables.means_table),
    "restraint": (_restraint, tables.restraint_tables),
    "planted": (_planted, tables.planted_page_table),
    "life": (_life, tables.life_table),
}


def _shown(result: dict[str, Any]) -> str:
    return PARTS[result["part"]][1](result)


@benchmark("transform", Request, _shown)
def transform_command(request: Request) -> Iterator[tuple[str, dict[str, Any]]]:
    """Join tables whose keys are written differently, in one thread.

    PARTS, all by default: cases (the shared pairs of tables, against rivals), restraint (tables
    with other spellings, and columns that are not related), planted (drawn tables whose rule is
    known), life (rules learned from few rows and applied to later ones). Seconds are processor
    time.
    """
    pin_threads(1)
    pa.set_cpu_count(1)
    for part in request.parts or PARTS:
        measure, _ = PARTS[part]
        yield f"transform/{part}", {"part": part, "options": asdict(request), **measure(request)}
