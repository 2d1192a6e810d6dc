"""The table of a run on a GPU, and what else is printed of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from benchmarks.report import markdown_table

HEAD = (
    "data set",
    "what",
    "ms a query column",
    "slowest tenth",
    "share of roofline",
    "host's share",
    "this takes so many times as long",
)


def gpu_table(result: Mapping[str, Any]) -> str:
    """Lay out typical query columns of every data set, and what they are compared with."""
    lines = []
    for data in result["data"]:
        if "typical" in data:
            lines += _typical(data["data"], data["typical"])
        lines += [
            _line(
                data["data"],
                f"as published, {run['lake']['values']:,} values",
                run["single"],
                host=run["single"].get("host_share"),
            )
            for run in data.get("published", ())
        ]
    return markdown_table(HEAD, lines)


def _typical(name: str, typical: Mapping[str, Any]) -> list[tuple[str, ...]]:
    single = typical["single"]
    lines = [_line(name, "one at a time", single, host=single.get("host_share"))]
    lines += [
        _line(name, f"in a batch of {batch['queries']:,}, each", batch)
        for batch in typical["batches"]
    ]
    lines += [
        _line(name, f"one at a time, kernel {kernel}", figures)
        for kernel, figures in typical.get("kernels", {}).items()
    ]
    lines += [
        _line(name, f"brute force: {way}", figures, ratio=typical.get("ratios", {}).get(way))
        for way, figures in typical.get("brute", {}).items()
    ]
    return lines


def _line(
    name: str,
    what: str,
    figures: Mapping[str, Any],
    *,
    host: float | None = None,
    ratio: float | None = None,
) -> tuple[str, ...]:
    slowest, share = figures.get("p90_seconds"), figures.get("share_of_roofline")
    return (
        f"`{name}`",
        what.replace("_", " "),
        f"{1e3 * figures['median_seconds']:.3f}",
        "" if slowest is None else f"{1e3 * slowest:.3f}",
        "" if share is None else f"{share:.0%}",
        "" if host is None else f"{host:.0%}",
        "" if ratio is None else f"{ratio:.1f}",
    )


def run_text(result: Mapping[str, Any]) -> str:
    """Return the table of a run, what has no place in it, and what was left out."""
    ceilings, answers = result["ceilings"], sum(check["answers"] for check in result["checks"])
    lines = [
        f"device: {result['machine']['device']}; torch {result['machine']['packages']['torch']}",
        f"correct: {len(result['checks'])} cases, {answers} answers equal to float64",
        f"ceilings: {json.dumps(ceilings)}",
        gpu_table(result),
    ]
    for data in result["data"]:
        if paper := result["paper_seconds"].get(data["data"]):
            lines.append(f"paper: {data['data']}: mean of {paper:g} s on a CPU, pivots and a grid")
        if "lake" in data:
            lines.append(f"{data['data']}: {json.dumps(data['lake'])}")
        if "typical" not in data and "published" not in data:
            lines.append(json.dumps(data))
    lines += [f"left out: {one['part']}: {one['reason']}" for one in result["left_out"]]
    return "\n".join([*lines, f"took {result['seconds']:.0f} s"])
