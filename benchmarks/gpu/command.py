"""The command ``python -m benchmarks gpu``."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import torch

from benchmarks.commands import (
    CONTEXT,
    COUNT,
    NO_RUN,
    SHARE,
    WRONG_ANSWERS,
    refuse_unknown,
    setting,
    with_options,
)
from benchmarks.datasets.calibrated import MODELS
from benchmarks.gpu.ceilings import measure_ceilings
from benchmarks.gpu.checks import WrongAnswerError, check_kernels
from benchmarks.gpu.dataset import FIRST_RATE, run_data_set
from benchmarks.gpu.index import INDEX, N_VALUES, measure_indexes
from benchmarks.gpu.lakes import Run, Wanted
from benchmarks.gpu.neighbours import FAISS, lack_of
from benchmarks.gpu.out_of_core import OUT_OF_CORE, run_out_of_core
from benchmarks.gpu.page import run_text
from benchmarks.gpu.published import PAPER_SECONDS, run_published
from benchmarks.gpu.timing import Clock
from benchmarks.gpu.words import N_VALUES as N_WORD_VALUES
from benchmarks.gpu.words import WORDS, measure_words
from benchmarks.machine import describe_machine, find_device
from benchmarks.report import RESULTS, write_result
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.errors import PexesoError

if TYPE_CHECKING:
    from benchmarks.gpu.fused_kernel import Tuner


DATA = ("swdc", INDEX, OUT_OF_CORE, "open", "lwdc", WORDS)
PRESETS = ("default", "published")
KERNELS = {"cuda": ("triton", "torch"), "cpu": ("torch",)}
_SHARE_OF_CHECKS = 0.2
_SHARE_OF_PUBLISHED = 0.25

_TUNING_SHARE = 0.02
_SECONDS = {
    INDEX: {"cuda": 90.0, "cpu": 5.0},
    OUT_OF_CORE: {"cuda": 45.0, "cpu": 5.0},
}
"""What each takes about."""

Result = dict[str, Any]
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


class Budget(click.ParamType):
    """Seconds, written as 90s, 8m or 1h."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, float):
            return value
        parsed = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", str(value))
        if parsed is None or float(parsed[1]) == 0:
            self.fail(f"A duration is a positive number and s, m or h, as in 8m. Got {value!r}.")
        return float(parsed[1]) * _UNITS[parsed[2]]


@dataclass(frozen=True)
class Settings:
    """The options of a run, as its result states them."""

    device: str = setting("cuda", "cuda, cuda:N or cpu.")
    preset: str = setting(
        PRESETS[0],
        "published: measure the layout as published (pivots and a grid) too.",
        type=click.Choice(PRESETS),
    )
    data: tuple[str, ...] = setting(DATA, "Data sets, with commas between, in this order.")
    scale: float = setting(
        1.0,
        "Of the data sets; a smaller one is taken where memory is short.",
        type=SHARE,
    )
    budget: float = setting(
        "8m",
        "Time that the run may take: 90s, 8m, 1h. Parts that do not fit are left out, and named.",
        type=Budget(),
    )
    queries: int = setting(100, "Query columns asked one at a time.", type=COUNT)
    batch: int = setting(1000, "Query columns asked in one call.", type=COUNT)
    axes: int = setting(15, "Axes of the projection.", type=COUNT)
    partition_values: int = setting(75_000_000, "Most values of a partition, about.", type=COUNT)

    def __post_init__(self) -> None:
        refuse_unknown("Data sets", self.data, DATA)


@click.command("gpu", context_settings=CONTEXT)
@with_options(Settings)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=RESULTS / "gpu",
    help="Folder of the result file.  [default: benchmarks/results/gpu]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON too, at the end.")
def gpu_command(output: Path, as_json: bool, **options: Any) -> None:
    """Check pexeso's answers on a device against float64, then measure it.

    It is measured against what the device can do and against brute force, in lakes that are made on
    the device. Exit status: 0, 1 when an answer is wrong, 2 when the run cannot be made.
    """
    try:
        settings = Settings(**options)
        clock = Clock(settings.budget)
        device = find_device(settings.device)
        path = output / f"{_file_name(_machine(device)['device'])}_{settings.preset}.json"
        result = run(settings, device, clock, path)
    except WrongAnswerError as error:
        click.echo(str(error), err=True)
        sys.exit(WRONG_ANSWERS)
    except PexesoError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(NO_RUN)
    click.echo(run_text(result))
    if as_json:
        click.echo(json.dumps(result))
    if result["failed"]:
        sys.exit(NO_RUN)


def run(settings: Settings, device: torch.device, clock: Clock, path: Path) -> dict[str, Any]:
    """Run every part that there is time for; the result is written after each.

    A part that fails, in whatever way, is named in `failed`, and the others go on: time on a device
    is scarce.
    """
    kernels = KERNELS[device.type]
    if (lack := lack_of(device)) is None:
        kernels = (*kernels, FAISS)
    else:
        clock.leave_out("kernel faiss", lack)
    tuner = _tuner(device, _TUNING_SHARE * settings.budget)
    result: dict[str, Any] = {
        "machine": _machine(device),
        "settings": vars(settings),
        "checks": [],
        "ceilings": {},
        "data": [],
        "tuned": [] if tuner is None else tuner.tried,
        "paper_seconds": PAPER_SECONDS,
        "left_out": clock.left_out,
        "failed": [],
        "seconds": 0.0,
    }
    clock.say(f"device {result['machine']['device']}, kernels {', '.join(kernels)}")
    result["checks"] = check_kernels(device, kernels, clock, _SHARE_OF_CHECKS * settings.budget)
    result["ceilings"] = measure_ceilings(device)
    clock.say("ceilings measured")
    wanted = Wanted(
        PartitionLayoutOptions(map="projection", n_axes=settings.axes),
        queries=settings.queries,
        batch=settings.batch,
        partition_values=settings.partition_values,
    )
    shared = Run(wanted, settings.scale, device, kernels, result["ceilings"], clock, tuner)
    rates = [FIRST_RATE[device.type]]
    lakes = [name for name in settings.data if name in MODELS]
    if settings.preset == "published":
        clock.reserved = _SHARE_OF_PUBLISHED * settings.budget
    for name in settings.data:
        _add(path, result, name, partial(_measured_part, name, shared, settings, rates), clock)
    clock.reserved = 0.0
    for number, name in enumerate(lakes if settings.preset == "published" else ()):
        until = clock.elapsed + clock.left / (len(lakes) - number)
        measure = partial(_published_part, name, shared, until)
        _add(path, result, f"{name} as published", measure, clock)
    return result


def _measured_part(name: str, run: Run, settings: Settings, rates: list[float]) -> list[Result]:
    """Return what a part measured, or nothing for lack of time."""
    device, clock, scale = run.device, run.clock, run.scale
    if name in _SECONDS and not clock.enough(name, _SECONDS[name][device.type]):
        return []
    if name == WORDS:
        return [measure_words(device, clock, max(1000, int(N_WORD_VALUES * scale)))]
    if name == OUT_OF_CORE:
        return [run_out_of_core(device, clock, scale)]
    if name == INDEX:
        devices = list(dict.fromkeys(("cpu", settings.device)))
        return measure_indexes(devices, clock, max(1000, int(N_VALUES * scale)))
    measured = run_data_set(name, run, max(rates))
    if measured is None:
        return []
    rates.append(measured["lake"]["build_vectors_per_second"])
    return [measured]


def _published_part(name: str, run: Run, until: float) -> list[Result]:
    runs = run_published(name, run, until)
    return [{"data": name, "published": runs}] if runs else []


def _add(
    path: Path,
    result: dict[str, Any],
    name: str,
    measure: Callable[[], list[dict[str, Any]]],
    clock: Clock,
) -> None:
    """Measure a part, add it, and write the result as far as it is."""
    try:
        parts = measure()
    except WrongAnswerError:
        raise
    except Exception as error:
        traceback.print_exc()
        clock.leave_out(name, f"it failed: {str(error).partition(chr(10))[0]}")
        result["failed"].append(name)
        parts = []
    for part in parts:
        same = [data for data in result["data"] if data["data"] == part["data"]]
        if same:
            same[0] |= part
        else:
            result["data"].append(part)
    result["seconds"] = clock.elapsed
    write_result(path, result)
    clock.say(f"written: {path}")


def _tuner(device: torch.device, seconds: float) -> Tuner | None:
    """Return what chooses configurations of the fused kernel, where that runs."""
    if device.type != "cuda":
        return None
    from benchmarks.gpu.fused_kernel import Tuner

    return Tuner(seconds)


def _file_name(device: str) -> str:
    """Return the name of a device as the name of a file: ``nvidia-h200`` of NVIDIA H200."""
    return re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")


def _machine(device: torch.device) -> dict[str, Any]:
    """Describe the machine; of a GPU also its memory, its driver and what it is programmed with."""
    described = describe_machine(device)
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        described |= {
            "device_memory_bytes": properties.total_memory,
            "multiprocessors": properties.multi_processor_count,
            "capability": f"{properties.major}.{properties.minor}",
            "driver": _driver(),
            "cuda": torch.version.cuda,
        }
        described["packages"]["triton"] = importlib.metadata.version("triton")
    else:
        described["device"] = f"cpu {described['processor']}"
    return described


def _driver() -> str:
    try:
        process = subprocess.run(
            ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return process.stdout.splitlines()[0].strip() if process.stdout.strip() else "unknown"
