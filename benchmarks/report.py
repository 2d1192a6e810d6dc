"""Results: one file a run, and a table for people."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import BASE, Settings
from benchmarks.machine import describe_machine
from benchmarks.metrics import METRICS
from benchmarks.origin import result_origin

RESULTS = Path(__file__).resolve().parent / "results"

_COLUMNS = (
    "median_seconds",
    "p10_seconds",
    "p90_seconds",
    "median_processor_seconds",
    "distances",
    "bytes_read",
    "index_bytes",
    "peak_query_bytes",
    "build_seconds",
)
_SWEEP_COLUMNS = (
    "median_seconds",
    "p10_seconds",
    "p90_seconds",
    "distances",
    "bytes_read",
    "index_bytes",
    "build_seconds",
)


def result_path(
    results: Path, data: str, variant: str, algorithms: Sequence[str], settings: Settings
) -> Path:
    """Return the file of a run; its name holds everything that was asked for.

    Examples
    --------
    >>> algorithms = ["pexeso", "brute_gemm"]
    >>> path = result_path(Path("r"), "web", "hashing-100d", algorithms, Settings(threads=2))
    >>> path.as_posix()
    'r/web/hashing-100d_pexeso+brute_gemm_q100_d0.06_j0.6_r3_s0_cpu_t2.json'
    """
    parameters = (
        f"{'b' if settings.batched else 'q'}{settings.queries}"
        f"_d{settings.max_distance:g}_j{settings.min_joinability:g}"
        f"_r{settings.repeats}_s{settings.seed}"
        f"_{settings.device.replace(':', '-')}_t{settings.threads}"
    )
    names = "+".join(algorithms).replace(":", "-")
    return results / data / f"{variant}_{names}_{parameters}.json"


def sweep_path(
    results: Path,
    data: str,
    variant: str,
    sweep: str,
    algorithms: Sequence[str] | None,
    settings: Settings,
) -> Path:
    """Return the file of a sweep; algorithms are named where they are not those declared.

    The plot stands beside it, as ``.png``.

    Examples
    --------
    >>> sweep_path(Path("r"), "web", "hashing-100d", "tau", None, Settings()).as_posix()
    'r/web/sweep-tau_hashing-100d_q100_d0.06_j0.6_r3_s0_cpu_t1.json'
    """
    path = result_path(results, data, variant, algorithms or (), settings)
    return path.with_name(f"sweep-{sweep}_{path.name.replace('__', '_')}")


def write_result(path: Path, result: Mapping[str, Any]) -> dict[str, Any]:
    """Write a result with its origin, whole or not at all; return what stands in the file."""
    import torch

    record = {**result, "origin": result_origin()}
    record.setdefault("machine", describe_machine(torch.device("cpu")))
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    os.replace(unfinished, path)
    return record


def read_result(path: Path) -> dict[str, Any] | None:
    """Read the result of a finished run; None where there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def table(result: Mapping[str, Any]) -> str:
    """Return a result as text.

    There is one line per algorithm, then the ratios by size of the query column.
    """
    lake, machine = result["lake"], result["machine"]
    settings = result["settings"]
    batch = "" if result["batch"] is None else ", in one batch: seconds a query column"
    lines = [
        f"{result['data']}: {lake['values']:,} values of {lake['dimensions']} dimensions in "
        f"{lake['columns']:,} columns; "
        f"{result['queries']} query columns of {result['query_values']:,} values{batch}",
        f"at most {settings['max_distance']:g} apart, joinability "
        f"{settings['min_joinability']:g} or more; {settings['repeats']} repeats",
        f"{machine['processor']}, {machine['cores']} cores, {settings['threads']} threads, load "
        f"{machine['load'][0]}; {machine['date']}",
        "",
        _row("algorithm", [*(name.removesuffix("_seconds") for name in _COLUMNS), f"/ {BASE}"]),
    ]
    for name, values in result["algorithms"].items():
        ratio = result["ratios_to_pexeso"].get(name)
        shown = [_shown(values[column], METRICS[column].unit) for column in _COLUMNS]
        lines.append(_row(name, [*shown, "" if ratio is None else f"{ratio:.2f}x"]))
    approximate = [
        _grade(name, values) for name, values in result["algorithms"].items() if not values["exact"]
    ]
    sizes = ["", *_size_lines(result)] if result["by_size"] else []
    return "\n".join([*lines, *sizes, *approximate, "", _verdict(result)])


def _grade(name: str, values: Mapping[str, Any]) -> str:
    if values["recall"] is None:
        return (
            f"{name} is approximate, and nothing exact was run beside it that could tell its "
            "recall."
        )
    return (
        f"{name} is approximate: it finds {values['recall']:.1%} of the columns, and "
        f"{values['precision']:.1%} of what it finds is right."
    )


def sweep_table(result: Mapping[str, Any]) -> str:
    """Return the result of a sweep as text: one line a point and algorithm."""
    declared, width = result["declared"], max(len(str(row["x"])) for row in result["rows"]) + 2
    lines = [
        f"{declared['title']} ({result['data']}; {result['queries']} query columns)",
        "",
        f"{'':<{width}}" + _row("", [name.removesuffix("_seconds") for name in _SWEEP_COLUMNS]),
    ]
    for row in result["rows"]:
        shown = [_shown(row[column], METRICS[column].unit) for column in _SWEEP_COLUMNS]
        lines.append(f"{row['x']!s:<{width}}" + _row(row["line"], shown))
    agreed = (
        ["All answers agree."]
        if result["agree"]
        else ["ANSWERS DIFFER", *result["differences"][:10]]
    )
    return "\n".join([*lines, "", *agreed])


def _size_lines(result: Mapping[str, Any]) -> list[str]:
    names = list(result["algorithms"])
    lines = [_row("query values", ["queries", *names])]
    for row in result["by_size"]:
        cells = []
        for name in names:
            ratio = row["ratios_to_pexeso"].get(name)
            cells.append(
                _shown(row["median_seconds"][name], "s")
                + ("" if ratio is None else f" ({ratio:.2f}x)")
            )
        lines.append(_row("{}-{}".format(*row["values"]), [str(row["queries"]), *cells]))
    return lines


def _verdict(result: Mapping[str, Any]) -> str:
    checked = result["checked"]
    if result["agree"]:
        return (
            f"All answers agree: columns and counts of {checked['against_each_other']} queries "
            "with each other, "
            f"{checked['against_float64']} of them with brute force in float64."
        )
    shown = result["differences"][:10]
    more = len(result["differences"]) - len(shown)
    return "\n".join(["ANSWERS DIFFER", *shown, *([f"and {more} more"] if more else [])])


def _row(first: str, cells: Sequence[str]) -> str:
    return f"{first:<14}" + "".join(f" {cell:>17}" for cell in cells)


def _shown(value: float | None, unit: str) -> str:
    """Return a number with its unit in three digits.

    Examples
    --------
    >>> _shown(0.01234, "s"), _shown(1234567, "B"), _shown(1234567, ""), _shown(None, "B")
    ('12.3 ms', '1.23 MB', '1.23 M', '-')
    """
    if value is None:
        return "-"
    if unit == "s":
        return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g} {letter}{unit}"
    return f"{value:.3g} {unit}".strip()


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table in Markdown.

    Examples
    --------
    >>> print(markdown_table(("query", "s"), [("short", 1)]))
    | query | s |
    | --- | --- |
    | short | 1 |
    """
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
