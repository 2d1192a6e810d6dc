"""The published layout beside blocks with a projection, on the same lakes on a device."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from benchmarks.checking import normal_form
from benchmarks.datasets.calibrated import calibrated_model
from benchmarks.gpu.checks import refuse_difference
from benchmarks.gpu.lakes import ResidentLake, Wanted, make_lake
from benchmarks.gpu.measure import measure_single
from benchmarks.gpu.timing import Clock
from pexeso.engine.kernels.choice import choose_kernel
from pexeso.engine.layout.grid_cells import blocks_bytes
from pexeso.engine.layout.options import PartitionLayoutOptions

LAYOUTS = {
    "blocks": PartitionLayoutOptions(map="projection", n_axes=15),
    "grid": PartitionLayoutOptions(map="pivots", cells="grid", n_pivots=5, n_levels=4),
}


def compare_layouts(
    name: str,
    device: torch.device,
    ceilings: Mapping[str, float],
    clock: Clock,
    *,
    scale: float = 1.0,
    partition_values: int = 75_000_000,
    queries: int = 20,
    layouts: Mapping[str, PartitionLayoutOptions] = LAYOUTS,
) -> dict[str, object]:
    """Time single query columns of typical size in each layout of the same vectors.

    Parameters
    ----------
    name : str
        Of a calibrated lake.
    ceilings : mapping
        As `benchmarks.gpu.ceilings.measure_ceilings` gives them.
    layouts : mapping of str to PartitionLayoutOptions
        Nothing is left to choose in them. Each is let go before the next is built.

    Returns
    -------
    dict
        Plain JSON by layout: ``median_seconds``, ``single`` as `measure_single` gives it, and
        ``derived_bytes``, what a grid takes on a device besides its arrays; and under ``ratios``
        how many times longer each layout takes than the first.

    Raises
    ------
    WrongAnswerError
        Two layouts answer a query column differently.
    """
    kernel = choose_kernel("triton" if device.type == "cuda" else "torch", device)
    figures: dict[str, dict[str, object]] = {}
    first = None
    for layout, options in layouts.items():
        lake = ResidentLake(calibrated_model(name), scale, device)
        wanted = Wanted(options, queries=queries, batch=1, partition_values=partition_values)
        try:
            make_lake(lake, wanted, clock)
            asked = (lake.typical or lake.queries)[:queries]
            single, answers = measure_single(lake, asked, kernel, ceilings, max(1.0, clock.left))
            found = [normal_form(answer) for answer in answers]
            first = first or found
            for number, (answer, right) in enumerate(zip(found, first, strict=False)):
                refuse_difference(answer, right, f"{name}, {layout}, query column {number}")
            derived = [
                blocks_bytes(part.partition.n_values, options.n_pivots)
                for part in lake.parts
                if options.cells == "grid"
            ]
            figures[layout] = {
                "median_seconds": single["median_seconds"],
                "single": single,
                "derived_bytes": sum(derived),
            }
        finally:
            lake.release()
        clock.say(f"{name}, {layout}: median {single['median_seconds'] * 1e3:.3f} ms")
    base = next(iter(figures.values()))["median_seconds"]
    ratios = {layout: part["median_seconds"] / base for layout, part in figures.items()}
    return {"layouts": figures, "ratios": ratios}
