"""The command line of ``python -m benchmarks.gpu``."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.datasets.calibrated import MODELS
from benchmarks.gpu.ceilings import measure_ceilings
from benchmarks.gpu.checks import WrongAnswerError, check_kernels
from benchmarks.gpu.dataset import FIRST_RATE, run_data_set
from benchmarks.gpu.lakes import Wanted
from benchmarks.gpu.table import CODE, CODES, RESULTS, WORDS, slug, table, write_json
from benchmarks.gpu.timing import Clock
from benchmarks.gpu.words import N_VALUES, measure_words
from benchmarks.machine import describe_machine, find_device
from pexeso.engine.layout.options import PartitionLayoutOptions
from pexeso.errors import PexesoError

DATA = (*MODELS, WORDS)
KERNELS = {"cuda": ("triton", "torch"), "cpu": ("torch",)}
_SHARE_OF_CHECKS = 0.3


def main(arguments: Sequence[str] | None = None) -> int:
    """Check, measure, print and write the result, and return the exit status.

    The status is 0, 1 when an answer is wrong, and 2 when the run cannot be made.
    """
    options = parser().parse_args(arguments)
    clock = Clock(options.seconds)
    try:
        device = find_device(options.device)
        result = run(options, device, clock)
    except WrongAnswerError as error:
        print(error, file=sys.stderr, flush=True)
        return 1
    except PexesoError as error:
        print(f"{error}", file=sys.stderr, flush=True)
        return 2
    print(table(result), flush=True)
    if options.json:
        print(json.dumps(result), flush=True)
    return 0


def parser() -> argparse.ArgumentParser:
    """Declare the options."""
    argument_parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu",
        description="Checks pexeso's answers on a device against float64, then measures it "
        "against what the device can do and against brute force.",
    )
    argument_parser.add_argument("--device", default="cuda", help="cuda (default), cuda:N or cpu")
    argument_parser.add_argument(
        "--data",
        type=_data,
        default=DATA,
        help=f"data sets, with commas between: {','.join(DATA)} (default: all, in this order)",
    )
    argument_parser.add_argument(
        "--scale",
        type=float,
        default=1.0,
        help="of the data sets, in (0, 1]; a smaller one is taken where memory is short",
    )
    argument_parser.add_argument(
        "--seconds",
        type=float,
        default=480.0,
        help="what the run may take; parts that would take longer are left out, and named",
    )
    argument_parser.add_argument(
        "--queries",
        type=_positive,
        default=100,
        help="query columns asked one at a time, at least 1",
    )
    argument_parser.add_argument(
        "--batch", type=_positive, default=1000, help="query columns asked in one call, at least 1"
    )
    argument_parser.add_argument(
        "--axes", type=_positive, default=15, help="axes of the projection"
    )
    argument_parser.add_argument(
        "--partition-values",
        type=_positive,
        default=75_000_000,
        help="most values of a partition, about",
    )
    argument_parser.add_argument(
        "--output", type=Path, default=RESULTS, help="folder of the result file"
    )
    argument_parser.add_argument(
        "--json", action="store_true", help="print the result as JSON too, on the last line"
    )
    return argument_parser


def run(options: argparse.Namespace, device: torch.device, clock: Clock) -> dict[str, Any]:
    """Run every part that there is time for; each data set gets a file as soon as it is through."""
    kernels = KERNELS[device.type]
    result: dict[str, Any] = {
        "machine": _machine(device),
        "settings": {
            name: value for name, value in vars(options).items() if name not in ("output", "json")
        },
        "checks": [],
        "ceilings": {},
        "data": [],
        "left_out": clock.left_out,
        "seconds": 0.0,
    }
    clock.say(f"device {result['machine']['device']}, kernels {', '.join(kernels)}")
    result["checks"] = check_kernels(device, kernels, clock, _SHARE_OF_CHECKS * options.seconds)
    result["ceilings"] = measure_ceilings(device)
    clock.say("ceilings measured")
    request = Wanted(
        PartitionLayoutOptions(map="projection", n_axes=options.axes),
        queries=options.queries,
        batch=options.batch,
        partition_values=options.partition_values,
    )
    rate = FIRST_RATE[device.type]
    for name in options.data:
        if name == WORDS:
            measured = measure_words(device, clock, max(1000, int(N_VALUES * options.scale)))
        else:
            measured = run_data_set(
                name, options.scale, request, device, kernels, result["ceilings"], clock, rate
            )
            if measured is not None:
                rate = max(rate, measured["lake"]["build_vectors_per_second"])
        result["seconds"] = clock.elapsed
        if measured is not None:
            result["data"].append(measured)
            path = options.output / f"{slug(result['machine']['device'])}_{name}.json"
            write_json(path, {**result, "data": [measured]}, CODES.get(name, CODE))
            clock.say(f"written: {path}")
    return result


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


def _data(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    unknown = [name for name in names if name not in DATA]
    if unknown:
        raise argparse.ArgumentTypeError(
            f"data sets are {', '.join(DATA)}. Got {', '.join(unknown)} instead."
        )
    return names


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1. Got {number} instead.")
    return number
