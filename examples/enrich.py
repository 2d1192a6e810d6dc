"""Does a join found by pexeso make a model better? Table V of the paper in shape, on real tables.

For each task: a table with a key and a target; the tables of a lake that can be joined with it,
found in four ways (none, equal text, similar text, pexeso); their columns joined to it; features
chosen by recursive elimination, a random forest, four folds; the same for all ways and seeds.

    # the demo lake alone: two minutes, most of it the index
    python examples/enrich.py --tasks demo
    # eight tasks in one lake of 2,500 real tables (../shared/data): an hour
    python examples/enrich.py
    # keeps the lake and its index there for the next time
    python examples/enrich.py --work FOLDER
    # also renews the stored result and the page about it; of some tasks with --tasks
    python examples/enrich.py --write
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from enrichment import lake as lakes
from enrichment import report, tasks
from enrichment.running import METHODS, Workshop, run_task, variants_of

import pexeso
from benchmarks.report import write_result

RESULT = lakes.ROOT / "benchmarks" / "results" / "enrichment" / "result.json"
PAGE = lakes.ROOT / "docs" / "explanation" / "enrichment.md"


@click.command()
@click.option(
    "--tasks",
    "task_names",
    default=",".join(tasks.REAL),
    show_default=True,
    help="Some of these, with commas; or demo.",
)
@click.option(
    "--methods", default=",".join(METHODS), show_default=True, help="Some of these, with commas."
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Splits and forests: so many, by seed.",
)
@click.option(
    "--trees", type=click.IntRange(min=1), default=20, show_default=True, help="Of each forest."
)
@click.option("--quick", is_flag=True, help="One seed and five trees: to see that it runs.")
@click.option(
    "--work",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for lake and index, kept; else they are made anew.",
)
@click.option(
    "--index",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="An index of the demo lake that is there.",
)
@click.option("--write", is_flag=True, help="Renew the stored result and the page.")
def main(
    task_names: str,
    methods: str,
    seeds: int,
    trees: int,
    quick: bool,
    work: Path | None,
    index: Path | None,
    write: bool,
) -> None:
    """Compare ways to find tables that make a model better."""
    chosen, ways = (
        _chosen(task_names, (*tasks.REAL, "demo"), "--tasks"),
        _chosen(methods, METHODS, "--methods"),
    )
    if "demo" in chosen and len(chosen) > 1:
        raise click.UsageError("The task demo is of another lake: ask for it alone.")
    if write and (quick or ways != list(METHODS) or chosen == ["demo"]):
        raise click.UsageError("--write is for real tasks, all methods, not --quick.")
    if index is not None and chosen != ["demo"]:
        raise click.UsageError(
            "--index is for --tasks demo; the other tasks have their index in --work."
        )
    seeds, trees = (1, 5) if quick else (seeds, trees)
    try:
        with tempfile.TemporaryDirectory(prefix="pexeso-enrich-") as temporary:
            folder = work or Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            result = _run(chosen, ways, seeds, trees, folder, index)
    except pexeso.PexesoError as error:
        raise click.ClickException(str(error)) from error
    click.echo(report.as_text(result))
    if write:
        result = write_result(RESULT, result)
        PAGE.write_text(report.renew(PAGE.read_text(encoding="utf-8"), result), encoding="utf-8")


def _run(
    names: list[str], methods: list[str], seeds: int, trees: int, folder: Path, path: Path | None
) -> dict[str, Any]:
    is_demo = names == ["demo"]
    lake = lakes.DEMO if is_demo else lakes.unpack_lake(folder)
    index = lakes.open_or_build(
        lake, path or folder / ("demo.pexeso" if is_demo else "lake.pexeso")
    )
    shop = Workshop(index)
    runs = []
    for name in names:
        task = tasks.demo(lake) if name == "demo" else tasks.REAL[name](lake)
        for method in methods:
            for threshold in variants_of(method):
                click.echo(
                    f"{name}: {method}{'' if threshold is None else f' {threshold}'}", err=True
                )
                runs.append(run_task(shop, task, method, threshold, range(seeds), trees))
    info = index.info()
    return {
        "lake": {"tables": info.tables, "columns": info.columns_indexed, "values": info.values},
        "index": {
            "model": index.embedder.kind,
            "max_distance": index.search_options({}).max_distance,
        },
        "seeds": seeds,
        "trees": trees,
        "runs": runs,
    }


def _chosen(text: str, known: tuple[str, ...], option: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if unknown := [name for name in names if name not in known]:
        raise click.UsageError(
            f"{option} takes {', '.join(known)}, with commas. Got {', '.join(map(repr, unknown))}."
        )
    return names


if __name__ == "__main__":
    main()
