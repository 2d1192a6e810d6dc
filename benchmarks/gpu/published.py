"""The layout as published, pivots and a grid, on a device: at sizes that fit the time.

The published search has work that grows faster than the lake. So a lake of a few hundred thousand
values comes first, and much larger ones after it, as long as there is time.
"""

from __future__ import annotations

import torch

from benchmarks.checking import normal_form
from benchmarks.datasets.calibrated import (
    CalibratedModel,
    VectorChunks,
    calibrated_model,
    plan_lake,
)
from benchmarks.datasets.calibrated_columns import postings
from benchmarks.gpu.brute import run_brute_force
from benchmarks.gpu.checks import refuse_difference
from benchmarks.gpu.dataset import compare_brute, search_host_share
from benchmarks.gpu.fitting import RESERVE_BYTES, free_bytes
from benchmarks.gpu.lakes import ResidentLake, Run, Wanted, make_lake
from benchmarks.gpu.measure import measure_single
from benchmarks.gpu.timing import spread
from pexeso.engine.arrays import offsets_of
from pexeso.engine.dense.building import resolve_options
from pexeso.engine.kernels.choice import choose_kernel
from pexeso.engine.options import PartitionLayoutOptions

FIRST_VALUES, GROWTH = 1 << 18, 16
"""Values of the smallest lake, and how many times larger each next one is."""

QUERIES, CHECKED = 20, 5

PAPER_SECONDS = {"swdc": 12.8, "open": 51.8, "lwdc": 603.0}
"""Mean seconds of a search in the paper, at 6 % and 60 %, on the data set whole: one column of
average size, by Python 3.7 on a CPU (Xeon E7-8890, 2.2 GHz), index in memory (`lwdc`: ten
partitions on disk)."""

_SPLITS = 600
"""Bytes a value, beside its vector, that a grid takes when it is built, about."""


def run_published(name: str, run: Run, until: float) -> list[dict[str, object]]:
    """Measure growing lakes of a data set; every answer that brute force is asked is checked."""
    model, clock, results = calibrated_model(name), run.clock, []
    options, took = None, 0.0
    for n_values in _sizes(model, run.scale):
        what = f"{name} as published, {n_values:,} values"
        started = clock.elapsed
        # On a GPU most of it is what takes as long at any size.
        needed = took * (2 if run.device.type == "cuda" else GROWTH)
        if started + needed > until:
            clock.leave_out(what, f"would take about {needed:.0f} s, too long for its share")
            break
        room = n_values * (4 * model.dimensions + _SPLITS) + RESERVE_BYTES
        if room > free_bytes(run.device):
            clock.leave_out(what, f"needs {room / 1e9:.0f} GB of memory")
            break
        scale = n_values / model.n_values
        if options is None:
            options = _options(model, scale, run.device)
        lake = ResidentLake(model, scale, run.device)
        try:
            results.append(_measured(lake, options, run, until))
        except torch.OutOfMemoryError as error:
            clock.leave_out(what, f"the device ran out of memory: {str(error).splitlines()[0]}")
            break
        finally:
            lake.release()
        took = clock.elapsed - started
    return results


def _sizes(model: CalibratedModel, scale: float) -> list[int]:
    """Return the values of the lakes, growing."""
    largest = round(model.n_values * max(scale, model.smallest_scale))
    smallest = min(largest, max(FIRST_VALUES, round(model.n_values * model.smallest_scale)))
    sizes = [smallest]
    while sizes[-1] < largest:
        sizes.append(min(GROWTH * sizes[-1], largest))
    return sizes


def _options(model: CalibratedModel, scale: float, device: torch.device) -> PartitionLayoutOptions:
    """Return five pivots by PCA, and as many levels as the published model chooses for a lake."""
    options = PartitionLayoutOptions(cells="grid", n_levels=None)
    plan = plan_lake(model, scale, 0)
    vectors = torch.cat([part.cpu() for part in VectorChunks(model, plan, device)]).numpy()
    members = torch.cat([values.cpu() for values, _ in postings(plan, device)]).long().numpy()
    return resolve_options(vectors, offsets_of(plan.sizes).numpy(), members, options)[0]


def _measured(
    lake: ResidentLake, options: PartitionLayoutOptions, run: Run, until: float
) -> dict[str, object]:
    wanted = Wanted(options, queries=QUERIES, batch=1, partition_values=lake.model.n_values)
    make_lake(lake, wanted, run.clock)
    name, ceilings, clock = lake.model.name, run.ceilings, run.clock
    kernel = choose_kernel(run.kernels[0], lake.device)
    queries = lake.queries
    left = max(1.0, (until - clock.elapsed) / 2)
    single, answers = measure_single(lake, queries, kernel, ceilings, left)
    single |= search_host_share(lake, queries, single["seconds"], kernel)
    few = queries[: min(CHECKED, len(answers))]
    brute = run_brute_force(lake, few, None, run.tuner)
    for number, right in enumerate(brute.answers):
        refuse_difference(
            normal_form(answers[number]),
            normal_form(right),
            f"{name} as published, {lake.n_values:,} values, query column {number}",
        )
    ways = {"fused": spread(brute.seconds), "fused_kernel": spread(brute.kernel_seconds)}
    clock.say(
        f"{name} as published, {lake.n_values:,} values: {single['median_seconds'] * 1e3:.3f} ms, "
        f"{len(few)} answers equal to those of brute force"
    )
    return {
        "lake": lake.facts,
        "pivots": options.n_pivots,
        "levels": options.n_levels,
        "kernel": run.kernels[0],
        "values_of_each": [len(query) for query in queries],
        "single": single,
        "brute": ways,
        "ratios": compare_brute(
            lake, ways, brute.values / len(few), single["seconds"][: len(few)], ceilings
        ),
        "checked": len(few),
    }
