"""The table of a run on a GPU in the documentation."""

from __future__ import annotations

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
    """Lay out typical query columns of every data set, and what they are compared with.

    Roofline shares are those of the larger of two times: bytes at the rate measured, and products
    at the rate measured.
    """
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
        _line(name, f"brute force: {way}", figures, ratio=typical["ratios"].get(way))
        for way, figures in typical["brute"].items()
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
