"""Sweeps: one thing is varied and the rest stays, as declared in ``benchmarks/sweeps.yml``."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.cutting import cut_columns, cut_rows
from benchmarks.datasets import Source
from benchmarks.declared import Candidate, load_candidates
from benchmarks.harness import Settings, build_all, draw_for, measure, run_benchmark
from benchmarks.machine import describe_machine, find_device

DECLARED = Path(__file__).resolve().parent / "sweeps.yml"

ARGUMENTS, DIMENSIONS = "arguments", "dimensions"
CUTS = {"columns": cut_columns, "rows": cut_rows}

_log = logging.getLogger(__name__)
Result = dict[str, Any]


@dataclass(frozen=True)
class Sweep:
    """A sweep as declared; see the head of ``benchmarks/sweeps.yml``."""

    name: str
    title: str
    over: str
    algorithms: tuple[str, ...]
    values: tuple[float, ...] = ()
    together: str | None = None


def known_sweeps() -> dict[str, Sweep]:
    """Read the declared sweeps, by name."""
    import yaml

    sweeps = {}
    for name, declared in yaml.safe_load(DECLARED.read_text(encoding="utf-8")).items():
        lists = {key: tuple(value) for key, value in declared.items() if isinstance(value, list)}
        sweeps[name] = Sweep(name, **{**declared, **lists})
    return sweeps


def run_sweep(
    sweep: Sweep, source: Source, settings: Settings, algorithms: Sequence[str] | None = None
) -> Result:
    """Measure every point of a sweep."""
    candidates = load_candidates(algorithms or sweep.algorithms, find_device(settings.device))
    rows, differences, lakes = [], [], []
    for value, result in _points(sweep, source, settings, candidates):
        prefix = f"{sweep.over} {value:g}: " if value is not None else ""
        differences += [prefix + difference for difference in result["differences"]]
        lakes.append(result["lake"])
        rows += _rows(value, result)
    return {
        "sweep": sweep.name,
        "data": source.data,
        "queries": settings.queries,
        "agree": not differences,
        "rows": rows,
        "differences": differences,
        "declared": {**asdict(sweep), "algorithms": list(algorithms or sweep.algorithms)},
        "lakes": [lake for number, lake in enumerate(lakes) if lake not in lakes[:number]],
        "settings": asdict(settings),
        "machine": describe_machine(find_device(settings.device)),
    }


def _points(
    sweep: Sweep, source: Source, settings: Settings, candidates: Sequence[Candidate]
) -> Iterator[tuple[float | None, Result]]:
    """Yield the varied value and the result of each point, with as little made anew as can be."""
    if sweep.over == DIMENSIONS:
        for value in sweep.values:
            _log.info("%s %g", sweep.over, value)
            lake = replace(source, dimensions=value).load()
            yield value, run_benchmark(lake, candidates, settings)
        return
    lake = source.load()
    queries = draw_for(lake, settings)
    if sweep.over in CUTS:
        for share in sweep.values:
            _log.info("%g of the %s", share, sweep.over)
            part = CUTS[sweep.over](lake, share, settings.seed)
            yield share, measure(part, build_all(part, candidates, settings), settings, queries)
        return
    if sweep.over == ARGUMENTS:
        for members in _held_together(sweep, candidates):
            yield None, measure(lake, build_all(lake, members, settings), settings, queries)
        return
    built = build_all(lake, candidates, settings)
    for value in sweep.values:
        _log.info("%s %g", sweep.over, value)
        yield value, measure(lake, built, replace(settings, **{sweep.over: value}))


def _held_together(sweep: Sweep, candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """Return the candidates whose indexes are in memory together and are measured in turn."""
    if sweep.together is None:
        return [list(candidates)]
    groups: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        arguments = {**candidate.build_arguments, **candidate.query_arguments}
        groups.setdefault(str(arguments[sweep.together]), []).append(candidate)
    return list(groups.values())


def _rows(value: float | None, result: Result) -> list[Result]:
    return [
        {
            "value": value,
            "algorithm": name,
            **{fact: result["lake"][fact] for fact in ("columns", "values", "dimensions")},
            "columns_found": result["columns_found"],
            **metrics,
        }
        for name, metrics in result["algorithms"].items()
    ]
