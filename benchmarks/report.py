"""Results: one file a run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import Settings
from benchmarks.machine import describe_machine
from benchmarks.origin import result_origin

RESULTS = Path(__file__).resolve().parent / "results"


def result_name(data: str, variant: str, algorithms: Sequence[str], settings: Settings) -> str:
    """Return the name of a run; it holds everything that was asked for.

    Examples
    --------
    >>> algorithms = ["pexeso", "brute_gemm"]
    >>> result_name("web", "hashing-100d", algorithms, Settings(threads=2))
    'web/hashing-100d_pexeso+brute_gemm_q100_d0.06_j0.6_r3_s0_cpu_t2'
    """
    parameters = (
        f"{'b' if settings.batched else 'q'}{settings.queries}"
        f"_d{settings.max_distance:g}_j{settings.min_joinability:g}"
        f"_r{settings.repeats}_s{settings.seed}"
        f"_{settings.device.replace(':', '-')}_t{settings.threads}"
    )
    names = "+".join(algorithms).replace(":", "-")
    return "_".join(filter(None, (f"{data}/{variant}", names, parameters)))


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


def rate(value: float) -> str:
    """Return a share with three digits.

    Examples
    --------
    >>> rate(0.5), rate(1)
    ('.500', '1.000')
    """
    return f"{value:.3f}".removeprefix("0")


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
