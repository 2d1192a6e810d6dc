"""``pexeso estimate``: what indexing a lake will cost, before it is done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from pexeso.faces.cli.options import column_types_option, command, complete_path, takes
from pexeso.faces.cli.output.output import MAX_NAME, human_bytes, output_options, plain, write_json
from pexeso.faces.cli.output.progress import counted_progress
from pexeso.faces.service.index_requests import EstimateRequest
from pexeso.faces.service.verbs import run
from pexeso.runtime.shown import many

if TYPE_CHECKING:
    from pexeso.build.diagnostics.estimate import Estimate


@command()
@click.argument("lake", metavar="LAKE", shell_complete=complete_path)
@output_options("json")
@column_types_option
@takes(
    EstimateRequest,
    without=(
        *("value_vectors", "metric", "n_pivots", "n_partitions"),
        *("aliases", "normaliser", "seed"),
    ),
)
def estimate(request: EstimateRequest, form: str | None) -> None:
    """Estimate what indexing a lake will cost, before it is done.

    \b
    Example:
      pexeso estimate my_folder

    Reads a sample of the files, at most 200 and 64 MiB, and measures on it how fast this machine
    is. The counts of a lake that is sampled whole are exact; all else is rough, and the time holds
    for a machine as busy as it is now. Takes the options of pexeso index on
    which the cost depends.

    In Python: pexeso.build.diagnostics.estimate.estimate_build(LAKE), after import
    pexeso.build.diagnostics.estimate.
    """  # noqa: D301  click reads \b
    with counted_progress("sampling", unit=" files") as progress:
        response = run(request, progress=progress)
    if form == "json":
        write_json(response.to_dict())
    else:
        click.echo("\n".join(estimate_lines(response)))


def estimate_lines(costs: Estimate) -> list[str]:
    """Lay out an estimate for people."""
    about = "" if costs.exact else "about "
    formats = ", ".join(f"{facts['files']:,} {name}" for name, facts in costs.by_format.items())
    per_index = f"{many(costs.partitions, 'partition')}"
    facts = [
        (
            "lake",
            f"{costs.lake}: {many(costs.files, 'file')}, {human_bytes(costs.bytes)} ({formats})",
        ),
        ("tables", f"{about}{costs.tables:,}"),
        (
            "columns",
            f"{about}{costs.columns:,}, of which {about}{costs.columns_indexed:,} will be indexed",
        ),
        (
            "values",
            f"{about}{costs.values:,} distinct, in "
            f"{about}{many(costs.postings, '(column, value) pair')}",
        ),
        (
            "index",
            f"about {human_bytes(costs.index_bytes)} on disk, of which the model "
            f"{human_bytes(costs.model_bytes)}; {per_index}",
        ),
        *_further_models(costs),
        *_part_lines(costs, about),
        ("memory", f"about {human_bytes(costs.memory_bytes)} with {many(costs.cores, 'core')}"),
        ("time", f"about {_minutes(sum(costs.seconds.values()))} ({_stages(costs.seconds)})"),
    ]
    width = max(len(name) for name, _ in facts) + 2
    return [
        *(f"{name:<{width}}{plain(value, MAX_NAME)}" for name, value in facts),
        "",
        _basis(costs),
    ]


def _further_models(costs: Estimate) -> Iterator[tuple[str, str]]:
    """Yield what models beside the main one bring."""
    for model in costs.further_models:
        size = human_bytes(model["model_bytes"])
        yield "and", f"the model {model['model']}, {size}; {many(model['partitions'], 'partition')}"


def _part_lines(costs: Estimate, about: str) -> list[tuple[str, str]]:
    """Return the lines about the parts for joins by equal values."""
    return [
        *_equal_text_lines(costs, about),
        *_row_lines("composite", costs.composite, about),
        *_row_lines("redundancy", costs.redundancy, about),
    ]


def _row_lines(name: str, part: Mapping[str, Any], about: str) -> list[tuple[str, str]]:
    if not part["cells"]:
        return []
    holds = f"{about}{many(part['rows'], 'row')}, {about}{many(part['cells'], 'cell')}"
    size = f"{human_bytes(part['bytes'])} in {many(part['shards'], 'shard')}"
    return [(name, f"{holds}; of the index about {size}")]


def _equal_text_lines(costs: Estimate, about: str) -> list[tuple[str, str]]:
    equal_text = costs.equal_text
    if not equal_text["parts"]:
        return []
    pairs = f"{about}{many(equal_text['pairs'], '(column, value) pair')}"
    holds = (
        f"{about}{many(equal_text['columns'], 'column')}, {about}{equal_text['tokens']:,} "
        f"distinct values in {pairs}"
    )
    size = (
        f"of the index about {human_bytes(equal_text['bytes'])} in "
        f"{many(equal_text['shards'], 'shard')}"
    )
    return [("equal text", f"{' and '.join(equal_text['parts'])}: {holds}; {size}")]


def _basis(costs: Estimate) -> str:
    if costs.exact:
        return f"Counted in all {many(costs.files, 'file')}; bytes, memory and time are rough."
    share = costs.sampled_bytes / max(1, costs.bytes)
    return (
        f"From {costs.sampled_files:,} of {many(costs.files, 'file')} ({100 * share:.2g} % "
        "of the bytes): a rough figure."
    )


def _stages(seconds: dict[str, float]) -> str:
    return ", ".join(f"{stage} {value:,.0f} s" for stage, value in seconds.items())


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:,.0f} minutes"
