"""Sweeps: one thing is varied and the rest stays, as declared in ``benchmarks/sweeps.yml``."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.cutting import cut_columns, cut_rows
from benchmarks.declared import Arguments, Candidate, load_candidates
from benchmarks.harness import Settings, build_all, draw_for, measure, run_benchmark
from benchmarks.machine import describe_machine, find_device
from benchmarks.source import Source
from pexeso.errors import InputError

DECLARED = Path(__file__).resolve().parent / "sweeps.yml"

ARGUMENTS, COLUMNS, ROWS = "arguments", "columns", "rows"
SCALE, DIMENSIONS = "scale", "dimensions"
CUTS = {COLUMNS: cut_columns, ROWS: cut_rows}
QUESTIONS = {
    "max_distance": "largest distance of a match (1 is the largest there is)",
    "min_joinability": "smallest joinability (share of the query column's rows)",
}
LABELS = {
    **QUESTIONS,
    COLUMNS: "columns in the lake",
    ROWS: "share of the values of each column",
    SCALE: "columns in the lake",
    DIMENSIONS: "dimensions of a vector",
}

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
    x: str | None = None
    lines: str | None = None
    label: str | None = None

    def __post_init__(self) -> None:
        if self.over not in (ARGUMENTS, *LABELS):
            raise InputError(
                f"The sweep {self.name} must be over {ARGUMENTS}, {', '.join(LABELS)}. Got "
                f"{self.over!r} instead."
            )
        if (self.over == ARGUMENTS) == bool(self.values):
            raise InputError(
                f"The sweep {self.name} must have values, unless it is over {ARGUMENTS}, which "
                "have their own."
            )
        if list(self.values) != sorted(set(self.values)):
            raise InputError(
                f"The values of the sweep {self.name} must ascend. Got {list(self.values)} instead."
            )

    @property
    def axis(self) -> str | None:
        """What the axis is called; None where there is one row a point."""
        return self.label if self.over == ARGUMENTS else LABELS[self.over]

    def describe(self, algorithms: Sequence[str] | None = None) -> Result:
        """Return the declaration as plain JSON, with other algorithms where they are given."""
        lists = {"algorithms": list(algorithms or self.algorithms), "values": list(self.values)}
        return {**asdict(self), **lists, "axis": self.axis}


def known_sweeps(path: Path = DECLARED) -> dict[str, Sweep]:
    """Read the declared sweeps, by name."""
    import yaml

    sweeps = {}
    for name, declared in yaml.safe_load(path.read_text(encoding="utf-8")).items():
        lists = {key: tuple(value) for key, value in declared.items() if isinstance(value, list)}
        try:
            sweeps[name] = Sweep(name, **{**declared, **lists})
        except TypeError as error:
            raise InputError(
                f"The sweep {name} in {path.name} is not declared as it must be: {error}."
            ) from error
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
        rows += _rows(sweep, value, result, candidates)
    return {
        "sweep": sweep.name,
        "data": source.data,
        "queries": settings.queries,
        "agree": not differences,
        "rows": rows,
        "differences": differences,
        "declared": sweep.describe(algorithms),
        "lakes": [lake for number, lake in enumerate(lakes) if lake not in lakes[:number]],
        "settings": asdict(settings),
        "machine": describe_machine(find_device(settings.device)),
    }


def _points(
    sweep: Sweep, source: Source, settings: Settings, candidates: Sequence[Candidate]
) -> Iterator[tuple[float | None, Result]]:
    """Yield the varied value and the result of each point, with as little made anew as can be."""
    if sweep.over in (SCALE, DIMENSIONS):
        for value in sweep.values:
            _log.info("%s %g", sweep.over, value)
            yield (
                value,
                run_benchmark(
                    source.with_changes(**{sweep.over: value}).load(), candidates, settings
                ),
            )
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
    """Return the candidates whose indexes are in memory together and are measured in turn.

    All are, or where each line has one at every place of the axis, those of one place: of a large
    lake, the indexes of a whole plot do not fit.
    """
    if sweep.lines is None:
        return [list(candidates)]
    groups: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        axis_value = {**candidate.build_arguments, **candidate.query_arguments}[sweep.x]
        groups.setdefault(str(axis_value), []).append(candidate)
    return list(groups.values())


def _rows(
    sweep: Sweep, value: float | None, result: Result, candidates: Sequence[Candidate]
) -> list[Result]:
    labels = _argument_labels(candidates) if sweep.over == ARGUMENTS else {}
    rows = []
    for name, metrics in result["algorithms"].items():
        arguments = metrics["arguments"]
        if sweep.over == ARGUMENTS:
            x = labels[name] if sweep.x is None else arguments[sweep.x]
            line = (
                name.partition("(")[0]
                if sweep.lines is None
                else f"{sweep.lines} = {_given(arguments[sweep.lines])}"
            )
        else:
            x, line = (result["lake"]["columns"] if sweep.over in (COLUMNS, SCALE) else value), name
        about = {name: result["lake"][name] for name in ("columns", "values", "dimensions")}
        outcome = {
            "columns_found": result["columns_found"],
            "ratio_to_pexeso": result["ratios_to_pexeso"].get(name),
        }
        rows.append(
            {"x": x, "line": line, "value": value, "algorithm": name, **about, **outcome, **metrics}
        )
    return rows


def _given(value: Any) -> Any:
    return "chosen" if value is None else value


def _argument_labels(candidates: Sequence[Candidate]) -> dict[str, str]:
    """Return how each candidate differs from the others.

    For lists it is what is left out of the longest, or what is left of it where that is less.
    """
    points = {
        candidate.name: {**candidate.build_arguments, **candidate.query_arguments}
        for candidate in candidates
    }
    keys = {key for point in points.values() for key in point}
    varied = [
        key for key in sorted(keys) if len({str(point.get(key)) for point in points.values()}) > 1
    ]
    return {
        name: ", ".join(_label(key, point, points) for key in varied) or name
        for name, point in points.items()
    }


def _label(key: str, point: Arguments, points: Mapping[str, Arguments]) -> str:
    value = point.get(key)
    if not isinstance(value, list):
        return f"{key} {value}"
    whole = max(
        (other[key] for other in points.values() if isinstance(other.get(key), list)), key=len
    )
    missing = [str(member) for member in whole if member not in value]
    if len(missing) > len(value) > 0:
        return f"{', '.join(map(str, value))} alone"
    if not value:
        return f"no {key}"
    return f"without {', '.join(missing)}" if missing else f"all {key}"
