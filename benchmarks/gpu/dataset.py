"""All that is measured on one data set, part by part, as far as memory and time allow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch

from benchmarks.algorithms.brute_gemm.scan import PRECISIONS, ProductScan
from benchmarks.batching import make_batch
from benchmarks.checking import normal_form
from benchmarks.counting import count_columns
from benchmarks.datasets.calibrated import calibrated_model
from benchmarks.gpu.brute import BruteResult, run_brute_force
from benchmarks.gpu.ceilings import PRODUCT_DTYPES, roofline
from benchmarks.gpu.checks import WrongAnswerError, refuse_difference
from benchmarks.gpu.fitting import fitting_scale, free_bytes
from benchmarks.gpu.lakes import ResidentLake, Run, make_lake
from benchmarks.gpu.measure import (
    ColumnValuesNeededError,
    measure_batch,
    measure_single,
    search,
)
from benchmarks.gpu.neighbours import FAISS, kernel_of, lack_of, neighbours_of, pairs_by_neighbours
from benchmarks.gpu.timing import Clock, host_share, spread, wall_seconds
from benchmarks.lake import Answer, BenchmarkQuery
from benchmarks.matching import Pairs
from pexeso.engine.kernel import Kernel
from pexeso.engine.kernels.choice import choose_kernel
from pexeso.engine.stats import SearchStats

# Brute force on the same device by what others provide: torch's products, and neighbours.

REPEATS = 3
BLOCKS = {"cuda": (1 << 28, 1 << 30), "cpu": (1 << 20,)}
"""Products held at a time: each is tried, and the fastest counts. Fewer are slower: of ``2**24``,
``2**26`` and ``2**28`` the last was the fastest in every precision."""

_SPARE_BYTES = 4 << 30
"""What a scan takes beside its copy of the vectors."""

Search = Callable[[torch.Tensor, float], Pairs]


def measure_rivals(
    lake: ResidentLake, queries: Sequence[BenchmarkQuery], answers: Sequence[Answer], clock: Clock
) -> Mapping[str, dict[str, object]]:
    """Measure query columns of a lake of one partition by everything that is installed."""
    vectors, figures = lake.parts[0].partition.vectors, {}
    for name, precision in PRECISIONS.items():
        copied = 0 if precision == torch.float32 else vectors.nbytes // 2
        if copied + _SPARE_BYTES > free_bytes(lake.device):
            clock.leave_out(f"{lake.model.name}: products in {name}", "there is no memory for them")
            continue
        ways = {}
        for block in BLOCKS[lake.device.type]:
            scan = ProductScan(vectors, precision=precision, block_products=block)
            ways[block] = _ask(lake, queries, answers, f"products in {name}", scan.pairs)
            del scan
        best = min(ways, key=lambda block, ways=ways: ways[block]["median_seconds"])
        figures[name] = {"block_products": best, "queries": len(queries), **ways[best]}
    lack = lack_of(lake.device)
    if lack is None and vectors.nbytes + _SPARE_BYTES > free_bytes(lake.device):
        lack = "there is no memory for its copy of the vectors"
    if lack is not None:
        clock.leave_out(f"{lake.model.name}: {FAISS}", lack)
        return figures
    search = partial(pairs_by_neighbours, neighbours_of(vectors), vectors)
    figures[FAISS] = {"queries": len(queries), **_ask(lake, queries, answers, FAISS, search)}
    return figures


def _ask(
    lake: ResidentLake,
    queries: Sequence[BenchmarkQuery],
    answers: Sequence[Answer],
    name: str,
    search: Search,
) -> dict[str, float]:
    """Return the seconds of a way of searching, the fastest of a few per query column."""
    (part,) = lake.parts
    seconds = []
    for query, right in zip(queries, answers, strict=True):
        work = partial(search, query.vectors.to(lake.device), query.tau)
        answer = count_columns(
            *work(), query, part.partition.value_columns, part.partition.n_columns
        )
        if not all(torch.equal(*pair) for pair in zip(answer, right, strict=True)):
            raise WrongAnswerError(f"A wrong answer: {lake.model.name}, {name}, {query.name}.")
        seconds.append(min(wall_seconds(work, lake.device) for _ in range(REPEATS)))
    return spread(seconds)


CHECKED = 5
"""Query columns whose answers brute force checks."""

MULTIPLIED = 3
"""Query columns that products are asked, in every precision and size of block."""

BATCHES = (1, 10, 100, 1000)
"""Query columns asked in one call."""

PROFILED = 9
"""Query columns whose time on the device is looked at, evenly spread."""

FIRST_RATE = {"cuda": 4e6, "cpu": 1e5}
"""Vectors a second that building is expected to do before it was seen."""

_AFTER = {"cuda": 20.0, "cpu": 2.0}
"""Seconds that searching a lake is expected to take at least."""


def run_data_set(name: str, run: Run, rate: float) -> dict[str, object] | None:
    """Make a lake, search it, and compare the answers with brute force."""
    model, scale, device, clock = calibrated_model(name), run.scale, run.device, run.clock
    if scale < model.smallest_scale:
        smallest = model.smallest_scale
        clock.leave_out(f"{name} at scale {scale:g}", f"too few columns; run at {smallest:g}")
        scale = smallest
    n_coordinates = min(run.wanted.options.n_axes, model.dimensions) + 1
    sizes = (n_coordinates, run.wanted.partition_values, free_bytes(device))
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
        make_lake(lake, run.wanted, clock)
        result["lake"] = lake.facts
        result["typical"] = {}
        _search_and_check(lake, run, result["typical"])
    except torch.OutOfMemoryError as error:
        reason = str(error).splitlines()[0]
        clock.leave_out(f"the rest of {name}", f"the device ran out of memory: {reason}")
    except ColumnValuesNeededError as error:
        clock.leave_out(f"the rest of {name}", str(error))
    finally:
        lake.release()
    return result if "lake" in result else None


def _search_and_check(lake: ResidentLake, run: Run, result: dict[str, object]) -> None:
    """Measure query columns one at a time, in batches, and by brute force, and compare answers."""
    kernels, ceilings, clock = run.kernels, run.ceilings, run.clock
    name, main, queries = lake.model.name, choose_kernel(kernels[0], lake.device), lake.queries
    single, answers = measure_single(lake, queries, main, ceilings, clock.left / 4)
    queries = queries[: len(answers)]
    clock.say(f"{name}: one query column: {single['median_seconds'] * 1e3:.3f} ms")
    single |= search_host_share(lake, queries, single["seconds"], main)
    result |= {
        "values_of_each": [len(query) for query in queries],
        "single": single,
        "batches": [],
    }
    for number, (query, answer) in enumerate(zip(queries, answers, strict=True)):
        column = lake.columns[number]
        if normal_form(answer).get(column) != query.total:
            raise WrongAnswerError(
                f"A wrong answer: {name}, query column {number}: its own column {column} is not "
                "found whole."
            )
    for size in BATCHES:
        group = lake.batch[:size]
        if result["batches"] and len(group) <= result["batches"][-1]["queries"]:
            break
        if not clock.enough(f"{name}: a batch of {size}", 5 * size * single["median_seconds"]):
            break
        figures, of_batch = measure_batch(
            lake, group, make_batch(group), main, ceilings, clock.left / 6
        )
        result["batches"].append(figures)
        _compare_all(of_batch, answers, f"{name}, alone and in a batch of {size}")
        clock.say(f"{name}: a batch of {len(group)}: {figures['median_seconds'] * 1e3:.4f} ms each")
    few = queries[:CHECKED]
    brute = run_brute_force(lake, few, make_batch(lake.batch[: max(BATCHES)]), run.tuner)
    _compare_all(answers, brute.answers, f"{name}, kernel {kernels[0]} and brute force")
    result["brute"] = {"fused": spread(brute.seconds), "fused_kernel": spread(brute.kernel_seconds)}
    if len(lake.parts) == 1:
        result["brute"] |= measure_rivals(lake, few[:MULTIPLIED], brute.answers[:MULTIPLIED], clock)
    result["ratios"] = compare_brute(
        lake, result["brute"], brute.values / len(few), single["seconds"][: len(few)], ceilings
    )
    if brute.batch_seconds is not None and result["batches"]:
        result["brute"]["fused_kernel_in_a_batch"] = _batch_figures(lake, brute, ceilings)
        result["ratios"]["fused_kernel_in_a_batch"] = (
            brute.batch_seconds / result["batches"][-1]["median_seconds"]
        )
    result["checked"] = len(few)
    clock.say(f"{name}: brute force takes so many times as long: {result['ratios']}")
    result["kernels"] = {}
    for kernel in kernels[1:]:
        if not lake.keeps_values_of_columns:
            reason = "there is no room for the values of each column, which it reads"
            clock.leave_out(f"{name}: kernel {kernel}", reason)
        elif clock.enough(f"{name}: kernel {kernel}", 100 * single["mean_seconds"] * len(few)):
            other = kernel_of(kernel, lake.device)
            figures, others = measure_single(lake, few, other, ceilings, clock.left / 3)
            _compare_all(others, answers, f"{name}, kernels {kernel} and {kernels[0]}")
            result["kernels"][kernel] = figures


def _compare_all(answers: Sequence[Answer], right: Sequence[Answer], where: str) -> None:
    """Compare as many answers as both sides have."""
    for number, pair in enumerate(zip(answers, right, strict=False)):
        refuse_difference(*map(normal_form, pair), f"{where}, query column {number}")


def _batch_figures(
    lake: ResidentLake, brute: BruteResult, ceilings: Mapping[str, float]
) -> dict[str, object]:
    seconds = brute.batch_seconds
    # The whole batch reads the vectors once.
    values, reads = brute.batch_values / brute.batch_queries, 1.0 / brute.batch_queries
    return {
        "median_seconds": seconds,
        "share_of_values": brute.batch_share,
        **_brute_roofline(lake, values, seconds, ceilings, reads),
    }


def compare_brute(
    lake: ResidentLake,
    ways: Mapping[str, dict[str, object]],
    n_values: float,
    seconds: Sequence[float],
    ceilings: Mapping[str, float],
) -> dict[str, float]:
    """Add the roofline to ways of brute force; return their times over those of searches."""
    for figures in ways.values():
        figures |= _brute_roofline(lake, n_values, figures["median_seconds"], ceilings)
    median = spread(seconds)["median_seconds"]
    return {way: figures["median_seconds"] / median for way, figures in ways.items()}


def _brute_roofline(
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
    kernel: Kernel,
) -> dict[str, float | None]:
    """Return `host_share` for a few of the query columns."""
    some = sorted({len(seconds) * part // PROFILED for part in range(PROFILED)})
    works = [partial(search, lake, queries[number], kernel, SearchStats()) for number in some]
    return host_share(works, [seconds[number] for number in some], lake.device)
