"""The result as one table for people, and as a file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.origin import ROOT, result_origin

WORDS = "words"
OUT_OF_CORE = "out-of-core"

RESULTS = ROOT / "benchmarks" / "results" / "gpu"
COLUMNS = (
    "data",
    "what",
    "ms",
    "p10",
    "p90",
    "GB/s",
    "of read",
    "TFLOP/s",
    "of product",
    "of roofline",
    "host",
    "brute/this",
    "floor/this",
)


def slug(name: str) -> str:
    """Turn a device's name into one of a file.

    Examples
    --------
    >>> slug("NVIDIA H200")
    'nvidia-h200'
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def write_json(path: Path, result: Mapping[str, Any]) -> None:
    """Write a result with its origin, whole or not at all.

    Not by `benchmarks.report`, since this command does with few packages.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(
        json.dumps({**result, "origin": result_origin()}, indent=1) + "\n", encoding="utf-8"
    )
    os.replace(unfinished, path)


def table(result: Mapping[str, Any]) -> str:
    """Lay out what was measured, one line for each thing, and what was left out below."""
    ceilings = result["ceilings"]
    lines = [
        f"device: {result['machine']['device']}; torch {result['machine']['packages']['torch']}",
        f"correct: {len(result['checks'])} cases, "
        f"{sum(check['answers'] for check in result['checks'])} answers equal to float64",
    ]
    if ceilings:
        lines.append(
            f"ceilings: copy {ceilings['copy_bytes_per_second'] / 1e9:,.0f} GB/s, read "
            f"{ceilings['read_bytes_per_second'] / 1e9:,.0f} GB/s, "
            f"product {ceilings['product_flop_per_second'] / 1e12:,.1f} TFLOP/s"
        )
    rows: list[Sequence[str]] = [COLUMNS]
    lakes = [data for data in result["data"] if "lake" in data]
    for data in result["data"]:
        rows += _rows(data) + _published_rows(data)
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    for row in rows:
        cells = [
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    lines += [_lake_line(data) for data in lakes]
    lines += _paper_lines(result)
    lines += [
        f"{data['data']}: {data['values']:,} values as bags of words, "
        f"{data['device']['median_seconds'] * 1e3:.2f} ms a query column on the device, "
        f"{data['host']['median_seconds'] * 1e3:.2f} ms by compiled loops on the host"
        for data in result["data"]
        if data["data"] == WORDS
    ]
    lines += [
        f"{data['data']}: {data['lake_bytes'] / 1e9:.0f} GB in {data['partitions']} partitions, "
        f"of which {data['limit_bytes'] / 1e9:.0f} GB may be on the device: "
        f"{data['copied_bytes_per_second'] / 1e9:.1f} GB/s, {data['share_of_link']:.0%} of what "
        f"page-locked memory gives, {data['one_seconds'] * 1e3:.0f} ms a query column"
        for data in result["data"]
        if data["data"] == OUT_OF_CORE
    ]
    lines += [
        f"{data['data']}: {data['columns']:,} columns, medians in ms of Index.search on {device}: "
        + ", ".join(f"{mode} {1e3 * seconds:.2f}" for mode, seconds in figures.items())
        for data in result["data"]
        if data["data"].startswith("index ")
        for device, figures in data["median_seconds"].items()
    ]
    lines += [
        f"left out: {omission['part']}: {omission['reason']}" for omission in result["left_out"]
    ]
    lines.append(f"took {result['seconds']:.0f} s")
    return "\n".join(lines)


def _rows(data: Mapping[str, Any]) -> list[Sequence[str]]:
    name, ratios = data["data"], data.get("ratios", {})
    rows = _typical_rows(name, data["typical"]) if data.get("typical") else []
    if "single" not in data:
        return rows
    single = data["single"]
    rows.append(
        _row(name, f"one, {data['kernel']}", single, ratios.get("brute"), ratios.get("floor"))
    )
    rows += [
        _row(name, f"  {figures['values'][0]}-{figures['values'][1]} values", figures, None, None)
        for figures in single["by_size"]
    ]
    if "batch" in data:
        batch = data["batch"]
        rows.append(
            _row(
                name, f"batch of {batch['queries']}", batch, ratios.get("batch_brute_kernel"), None
            )
        )
    rows += [
        _row(name, f"one, {kernel}", figures, None, None)
        for kernel, figures in data["other_kernels"].items()
    ]
    if "brute" in data:
        brute = data["brute"]
        rows.append(_row(name, "brute force", brute, None, None))
        rows.append(_row(name, "  its kernel", {**brute["kernel"], **_only(brute)}, None, None))
        if "batch" in brute:
            rows.append(_row(name, "  its kernel, batch", brute["batch"], None, None))
    if "floor_seconds" in data:
        floor = {"median_seconds": data["floor_seconds"]}
        rows.append(_row(name, "floor: float16 read once", floor, None, None))
    return rows


def _typical_rows(name: str, typical: Mapping[str, Any]) -> list[Sequence[str]]:
    values = round(sum(typical["values_of_each"]) / len(typical["values_of_each"]))
    rows = [_row(name, f"typical, {values} values", typical["single"], None, None)]
    rows += [
        _row(name, f"  batch of {batch['queries']}", batch, None, None)
        for batch in typical["batches"]
    ]
    ratios = typical.get("ratios", {})
    for way, figures in typical.get("brute", {}).items():
        if figures["median_seconds"] is not None:
            rows.append(_row(name, f"  brute force, {way}", figures, ratios.get(way), None))
    return rows


def _published_rows(data: Mapping[str, Any]) -> list[Sequence[str]]:
    rows = []
    for run in data.get("published", ()):
        name, ratios = data["data"], run["ratios"]
        size = f"{run['lake']['values']:,} values, {run['pivots']} pivots, {run['levels']} levels"
        rows.append(_row(name, f"published, {size}", run["single"], ratios["fused"], None))
        rows.append(
            _row(name, "  its brute force, fused_kernel", run["brute"]["fused_kernel"], None, None)
        )
    return rows


_PAPER = (
    "The paper's are mean seconds on a CPU (Xeon E7-8890, 2.2 GHz, Python 3.7), over its own data "
    "of the full size and with pivots and a grid, lwdc in ten partitions on disk; those here are "
    "medians over calibrated lakes in memory. Query columns are of average size in both."
)


def _paper_lines(result: Mapping[str, Any]) -> list[str]:
    """Set the paper's seconds beside the median of the typical query columns."""
    lines = []
    for data in result["data"]:
        paper = result["paper_seconds"].get(data["data"])
        if paper is None:
            continue
        ours = [("as published", run["lake"], run["single"]) for run in data.get("published", ())]
        if data.get("typical"):
            ours.insert(0, ("default layout", data["lake"], data["typical"]["single"]))
        lines += [
            f"paper: {data['data']}: {paper:g} s; here {single['median_seconds'] * 1e3:,.3f} ms, "
            f"{layout}, {lake['values']:,} values"
            for layout, lake, single in ours
        ]
    return [*lines, _PAPER] if lines else []


def _only(brute: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: brute[name]
        for name in ("bytes_per_second", "share_of_read", "flop_per_second", "share_of_product")
    }


def _row(
    data: str, what: str, figures: Mapping[str, Any], brute: float | None, floor: float | None
) -> Sequence[str]:
    def cell(name: str, factor: float, form: str) -> str:
        return format(figures[name] * factor, form) if name in figures else ""

    rate = what != "brute force"
    return (
        data,
        what,
        cell("median_seconds", 1e3, ",.4f"),
        cell("p10_seconds", 1e3, ",.4f"),
        cell("p90_seconds", 1e3, ",.4f"),
        cell("bytes_per_second", 1e-9, ",.1f") if rate else "",
        cell("share_of_read", 100, ".2f") + "%" if rate and "share_of_read" in figures else "",
        cell("flop_per_second", 1e-12, ",.3f") if rate else "",
        cell("share_of_product", 100, ".3f") + "%"
        if rate and "share_of_product" in figures
        else "",
        cell("share_of_roofline", 100, ".2f") + "%"
        if rate and "share_of_roofline" in figures
        else "",
        f"{figures['host_share'] * 100:.0f}%" if figures.get("host_share") is not None else "",
        "" if brute is None else f"{brute:,.1f}x",
        "" if floor is None else f"{floor:,.2f}x",
    )


def _lake_line(data: Mapping[str, Any]) -> str:
    lake = data["lake"]
    held = (
        f", {lake['device_bytes_held'] / 1e9:.1f} GB held, {lake['device_bytes_peak'] / 1e9:.1f} "
        "GB at most"
        if "device_bytes_held" in lake
        else ""
    )
    return (
        f"{data['data']}: scale {lake['scale']:g}, {lake['values']:,} values x "
        f"{lake['dimensions']}, {lake['columns']:,} columns, "
        f"{lake['partitions']} partitions; planned {lake['plan_seconds']:.1f} s, built "
        f"{lake['build_seconds']:.1f} s "
        f"({lake['build_vectors_per_second'] / 1e6:.2f} M vectors/s){held}; "
        f"{data.get('checked', 0)} answers checked"
    )
