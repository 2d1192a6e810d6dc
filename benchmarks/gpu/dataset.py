"""All that is measured on one data set, part by part, as far as memory and time allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import torch

from benchmarks.batching import make_batch
from benchmarks.checking import normal_form
from benchmarks.datasets.calibrated import calibrated_model
from benchmarks.drawing import SIZE_CLASSES, size_class
from benchmarks.gpu.brute import BruteResult, run_brute_force
from benchmarks.gpu.ceilings import PRODUCT_DTYPES, roofline
from benchmarks.gpu.checks import WrongAnswerError, refuse_difference
from benchmarks.gpu.fitting import fitting_scale, free_bytes
from benchmarks.gpu.lakes import ResidentLake, Wanted, make_lake
from benchmarks.gpu.measure import (
    ColumnValuesNeededError,
    measure_batch,
    measure_single,
    search,
)
from benchmarks.gpu.products import measure_rivals
from benchmarks.gpu.timing import Clock, host_share, spread
from benchmarks.lake import Answer, BenchmarkQuery
from pexeso.engine.interface import KernelChoice
from pexeso.engine.kernels.choice import choose_kernel
from pexeso.engine.stats import SearchStats

if TYPE_CHECKING:
    from benchmarks.algorithms.brute_triton.tuning import Tuner

CHECKED_A_CLASS = 3
CHECKED_TYPICAL = 5
MULTIPLIED = 3
"""Typical query columns that products are asked, in every precision and size of block."""

BATCHES = (1, 10, 100, 1000)
"""Typical query columns asked in one call."""

PROFILED = 9
"""Query columns whose time on the device is looked at, evenly spread."""

COMPARED_A_CLASS = 2
FIRST_RATE = {"cuda": 4e6, "cpu": 1e5}
"""Vectors a second that building is expected to do before it was seen."""

_AFTER = {"cuda": 20.0, "cpu": 2.0}
"""Seconds that searching a lake is expected to take at least."""


def run_data_set(
    name: str,
    scale: float,
    wanted: Wanted,
    device: torch.device,
    kernels: Sequence[str],
    ceilings: Mapping[str, float],
    clock: Clock,
    rate: float,
    tuner: Tuner | None = None,
) -> dict[str, object] | None:
    """Make a lake, search it, and compare the answers with brute force.

    Returns None where there is no room or no time for it.
    """
    model = calibrated_model(name)
    if scale < model.smallest_scale:
        smallest = model.smallest_scale
        clock.leave_out(f"{name} at scale {scale:g}", f"too few columns; run at {smallest:g}")
        scale = smallest
    n_coordinates = min(wanted.options.n_axes, model.dimensions) + 1
    sizes = (n_coordinates, wanted.partition_values, free_bytes(device))
    fits = fitting_scale(model, scale, *sizes, values_of_columns=device.type == "cpu")
    if fits is None:
        clock.leave_out(
            name, f"no scale down to {scale / 100:g} fits in {free_bytes(device) / 1e9:.0f} GB"
        )
        return None
    if fits < scale:
        clock.leave_out(f"{name} at scale {scale:g}", f"it does not fit in memory; run at {fits:g}")
    if not clock.enough(name, model.n_values * fits / rate + _AFTER[device.type]):
        return None
    keeps = (
        device.type == "cpu" or fitting_scale(model, fits, *sizes, values_of_columns=True) == fits
    )
    lake = ResidentLake(model, fits, device, keeps_values_of_columns=keeps)
    result: dict[str, object] = {"data": name}
    try:
        make_lake(lake, wanted, clock)
        result["lake"] = lake.facts
        if lake.typical:
            result["typical"] = {}
            _typical(lake, wanted.queries, kernels[0], ceilings, clock, tuner, result["typical"])
        _search_and_check(lake, kernels, ceilings, clock, tuner, result)
    except torch.OutOfMemoryError as error:
        reason = str(error).splitlines()[0]
        clock.leave_out(f"the rest of {name}", f"the device ran out of memory: {reason}")
    except ColumnValuesNeededError as error:
        clock.leave_out(f"the rest of {name}", str(error))
    finally:
        lake.release()
    return result if "lake" in result else None


def _typical(
    lake: ResidentLake,
    n_queries: int,
    kernel: str,
    ceilings: Mapping[str, float],
    clock: Clock,
    tuner: Tuner | None,
    result: dict[str, object],
) -> None:
    """Measure query columns as in the paper: one at a time, in batches, and by brute force.

    Answers are compared with those of brute force. Figures are put into the result as they come, so
    that it has them where memory runs out later.
    """
    name, main, queries = (
        lake.model.name,
        choose_kernel(kernel, lake.device),
        lake.typical[:n_queries],
    )
    single, answers = measure_single(lake, queries, main, ceilings, clock.left / 4)
    clock.say(
        f"{name}: a typical query column of {len(queries[0])} values: "
        f"{single['median_seconds'] * 1e3:.3f} ms"
    )
    single |= search_host_share(lake, queries, single["seconds"], main)
    result |= {
        "values_of_each": [len(query) for query in queries],
        "single": single,
        "batches": [],
    }
    for size in BATCHES:
        group = lake.typical[:size]
        if (
            len(group) < size
            and result["batches"]
            and len(group) <= result["batches"][-1]["queries"]
        ):
            break
        if not clock.enough(f"{name}: a batch of {size}", 5 * size * single["median_seconds"]):
            break
        figures, of_batch = measure_batch(
            lake, group, make_batch(group), main, ceilings, clock.left / 6
        )
        result["batches"].append(figures)
        for number, (answer, right) in enumerate(zip(of_batch, answers, strict=False)):
            _compare(
                answer,
                right,
                f"{name}, typical query column {number} of a batch of {size}, and alone",
            )
        clock.say(f"{name}: a batch of {len(group)}: {figures['median_seconds'] * 1e3:.4f} ms each")
    few = queries[: min(CHECKED_TYPICAL, len(answers))]
    brute = run_brute_force(lake, few, make_batch(lake.typical[: max(BATCHES)]), tuner)
    for number, right in enumerate(brute.answers):
        _compare(answers[number], right, f"{name}, typical query column {number}")
    median = spread([single["seconds"][number] for number in range(len(few))])["median_seconds"]
    result["brute"] = {"fused": spread(brute.seconds), "fused_kernel": spread(brute.kernel_seconds)}
    if len(lake.parts) == 1:
        result["brute"] |= measure_rivals(lake, few[:MULTIPLIED], brute.answers[:MULTIPLIED], clock)
    for figures in result["brute"].values():
        figures |= brute_roofline(
            lake, brute.values / len(few), figures["median_seconds"], ceilings
        )
    result["ratios"] = {way: run["median_seconds"] / median for way, run in result["brute"].items()}
    if brute.batch_seconds is not None and result["batches"]:
        result["brute"]["fused_kernel_in_a_batch"] = _batch_figures(lake, brute, ceilings)
        result["ratios"]["fused_kernel_in_a_batch"] = (
            brute.batch_seconds / result["batches"][-1]["median_seconds"]
        )
    result["checked"] = len(few)
    clock.say(f"{name}: brute force takes so many times as long: {result['ratios']}")


def _search_and_check(
    lake: ResidentLake,
    kernels: Sequence[str],
    ceilings: Mapping[str, float],
    clock: Clock,
    tuner: Tuner | None,
    result: dict[str, object],
) -> None:
    """Do as `_typical` does for query columns of every class of size, and by every kernel."""
    name = lake.model.name
    main = choose_kernel(kernels[0], lake.device)
    single, answers = measure_single(lake, lake.queries, main, ceilings, clock.left / 3)
    if len(answers) < len(lake.queries):
        clock.leave_out(
            f"{name}: {len(lake.queries) - len(answers)} query columns", "they took too long"
        )
        lake.queries = lake.queries[: len(answers)]
    single |= search_host_share(lake, lake.queries, single["seconds"], main)
    result |= {"kernel": kernels[0], "single": single, "other_kernels": {}}
    clock.say(
        f"{name}: one query column at a time, kernel {kernels[0]}: median "
        f"{single['median_seconds'] * 1e3:.3f} ms"
    )
    for number, (query, answer) in enumerate(zip(lake.queries, answers, strict=True)):
        column = lake.asked_columns[number]
        if normal_form(answer).get(column) != query.total:
            raise WrongAnswerError(
                f"A wrong answer: {name}, query column {number}: its own column {column} is not "
                "found whole."
            )
    chosen = _some(lake.queries, CHECKED_A_CLASS)
    batch = make_batch(lake.batch)
    batch_answers: list[Answer] = []
    if clock.enough(f"{name}: batch", len(lake.batch) * single["mean_seconds"]):
        result["batch"], batch_answers = measure_batch(
            lake, lake.batch, batch, main, ceilings, clock.left / 4
        )
        clock.say(
            f"{name}: batch of {len(lake.batch)}: {result['batch']['median_seconds'] * 1e3:.4f} "
            "ms a query column"
        )
    floor = lake.n_values * lake.model.dimensions * 2 / ceilings["read_bytes_per_second"]
    result["floor_seconds"] = floor
    if clock.enough(f"{name}: brute force and checks against it", 300 * floor + 5.0):
        queries = [lake.queries[number] for number in chosen]
        brute = run_brute_force(lake, queries, batch if "batch" in result else None, tuner)
        result["brute"] = _brute_figures(lake, brute, ceilings, floor)
        result["ratios"] = _ratios(result, brute, [single["seconds"][number] for number in chosen])
        for position, number in enumerate(chosen):
            _compare(
                answers[number],
                brute.answers[position],
                f"{name}, kernel {kernels[0]}, query column {number}",
            )
            if number < len(batch_answers):
                _compare(
                    batch_answers[number],
                    brute.answers[position],
                    f"{name}, query column {number} of the batch",
                )
        result["checked"] = len(chosen)
        clock.say(
            f"{name}: {len(chosen)} answers equal to those of brute force, which takes "
            f"{result['brute']['median_seconds'] * 1e3:.3f} ms"
        )
    if batch_answers:
        for number in range(min(len(answers), len(batch_answers))):
            _compare(
                batch_answers[number],
                answers[number],
                f"{name}, query column {number} of the batch, and alone",
            )
    for kernel in kernels[1:]:
        if not lake.keeps_values_of_columns:
            clock.leave_out(
                f"{name}: kernel {kernel}",
                "there is no room for the values of each column, which it reads",
            )
            continue
        few = [lake.queries[number] for number in _some(lake.queries, COMPARED_A_CLASS)]
        if clock.enough(f"{name}: kernel {kernel}", 100 * single["mean_seconds"] * len(few)):
            other = choose_kernel(kernel, lake.device)
            figures, others = measure_single(lake, few, other, ceilings, clock.left / 3)
            result["other_kernels"][kernel] = figures
            for number, answer in zip(_some(lake.queries, COMPARED_A_CLASS), others, strict=False):
                _compare(answer, answers[number], f"{name}, kernel {kernel}, query column {number}")
            clock.say(f"{name}: kernel {kernel}: median {figures['median_seconds'] * 1e3:.3f} ms")


def _some(queries: Sequence[BenchmarkQuery], a_class: int) -> list[int]:
    """Return the numbers of the first few query columns of every size class."""
    of_class = [
        [n for n, query in enumerate(queries) if size_class(len(query)) == kind]
        for kind in range(len(SIZE_CLASSES))
    ]
    return sorted(number for numbers in of_class for number in numbers[:a_class])


def _brute_figures(
    lake: ResidentLake, brute: BruteResult, ceilings: Mapping[str, float], floor: float
) -> dict[str, object]:
    itemsize = PRODUCT_DTYPES[lake.device.type].itemsize
    kernel = spread(brute.kernel_seconds)
    read = lake.n_values * lake.model.dimensions * itemsize / kernel["median_seconds"]
    flop = 2.0 * lake.n_values * lake.model.dimensions * brute.values / sum(brute.kernel_seconds)
    figures: dict[str, object] = {
        "queries": len(brute.seconds),
        **spread(brute.seconds),
        "kernel": kernel,
        "bytes_per_second": read,
        "share_of_read": read / ceilings["read_bytes_per_second"],
        "flop_per_second": flop,
        "share_of_product": flop / ceilings["product_flop_per_second"],
        "floor_seconds": floor,
    }
    if brute.batch_seconds is not None:
        figures["batch"] = _batch_figures(lake, brute, ceilings)
    return figures


def _batch_figures(
    lake: ResidentLake, brute: BruteResult, ceilings: Mapping[str, float]
) -> dict[str, object]:
    seconds = brute.batch_seconds
    # The whole batch reads the vectors once.
    values, reads = brute.batch_values / brute.batch_queries, 1.0 / brute.batch_queries
    return {
        "median_seconds": seconds,
        "share_of_values": brute.batch_share,
        **brute_roofline(lake, values, seconds, ceilings, reads),
    }


def brute_roofline(
    lake: ResidentLake,
    n_values: float,
    seconds: float,
    ceilings: Mapping[str, float],
    n_reads: float = 1.0,
) -> dict[str, object]:
    """Hold brute force against one pass over the rounded vectors, with all of its products."""
    n_entries = lake.n_values * lake.model.dimensions
    n_bytes = n_entries * PRODUCT_DTYPES[lake.device.type].itemsize
    return roofline(n_bytes * n_reads, 2.0 * n_entries * n_values, seconds, ceilings)


def search_host_share(
    lake: ResidentLake,
    queries: Sequence[BenchmarkQuery],
    seconds: Sequence[float],
    kernel: KernelChoice,
) -> dict[str, float | None]:
    """Return `host_share` for a few of the query columns."""
    some = sorted({len(seconds) * part // PROFILED for part in range(PROFILED)})
    works = [partial(search, lake, queries[number], kernel, SearchStats()) for number in some]
    return host_share(works, [seconds[number] for number in some], lake.device)


def _ratios(
    result: Mapping[str, object], brute: BruteResult, ours: Sequence[float]
) -> dict[str, float]:
    """Return how many times longer brute force takes, on the same query columns."""
    median = spread(ours)["median_seconds"]
    ratios = {
        "brute": spread(brute.seconds)["median_seconds"] / median,
        "brute_kernel": spread(brute.kernel_seconds)["median_seconds"] / median,
        "floor": result["floor_seconds"] / median,
    }
    if brute.batch_seconds is not None:
        ratios["batch_brute_kernel"] = brute.batch_seconds / result["batch"]["median_seconds"]
    return ratios


def _compare(answer: Answer, right: Answer, where: str) -> None:
    refuse_difference(normal_form(answer), normal_form(right), where)
