"""The command ``python -m benchmarks.effectiveness``."""

from __future__ import annotations

import json
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from benchmarks.effectiveness.judged import Judged, read_judged
from benchmarks.effectiveness.methods import METHODS, SENTENCE, Workshop, run_method
from benchmarks.effectiveness.report import as_table, curve_of, plot, scores_of
from pexeso.errors import InputError, PexesoError

ROOT = Path(__file__).resolve().parent.parent.parent
SHARED = ROOT.parent / "shared" / "data"
DATA = ("wikitables",)


@click.command()
@click.option("--data", type=click.Choice(DATA), help="A shared lake with truth.")
@click.option(
    "--lake",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Any lake of tables, with --truth.",
)
@click.option(
    "--truth",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Its joinable pairs, with the columns of the shared join_pairs.tsv.gz.",
)
@click.option("--methods", help=f"Some of {', '.join(METHODS)}, with commas; all but {SENTENCE} by default.")
@click.option("--model", default="fasttext", show_default=True, help="Model of pexeso's index.")
@click.option(
    "--index",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="An index of the lake that is there; without it one is built.",
)
@click.option("--sentence-model", help="A sentence-transformers model, by path or name, to compare with.")
@click.option("--json", "as_json", is_flag=True, help="Print plain data instead of a table.")
@click.option("--plots", type=click.Path(file_okay=False, path_type=Path), help="Folder for plots.")
def main(
    data: str | None,
    lake: Path | None,
    truth: Path | None,
    methods: str | None,
    model: str,
    index: Path | None,
    sentence_model: str | None,
    as_json: bool,
    plots: Path | None,
) -> None:
    """Measure which joinable columns are found, against what could be used instead."""
    try:
        with tempfile.TemporaryDirectory(prefix="pexeso-effectiveness-") as folder:
            place = Path(folder)
            lake, truth = _unpacked(data, place) if data else _given(lake, truth)
            judged = read_judged(lake, truth)
            shop = Workshop(judged, lake, place, model, index, sentence_model)
            names = _chosen(methods, sentence_model)
            result, curves = _run(shop, names)
    except PexesoError as error:
        raise click.ClickException(str(error)) from error
    result = {"data": data or str(lake), **result}
    if plots is not None:
        plots.mkdir(parents=True, exist_ok=True)
        plot(curves, plots / f"{Path(result['data']).name}.png")
    click.echo(json.dumps(result, indent=1) if as_json else as_table(result["methods"]))


def _run(shop: Workshop, names: list[str]) -> tuple[dict[str, Any], dict[str, list[tuple[float, float, float]]]]:
    judged = shop.judged
    methods, curves = {}, {}
    for name in names:
        started = time.perf_counter()
        founds = run_method(name, shop)
        methods[name] = scores_of(judged, founds)
        curves[name] = curve_of(judged, founds)
        click.echo(f"{name}: {time.perf_counter() - started:.0f} s", err=True)
    return {**_counts(judged), "methods": methods}, curves


def _counts(judged: Judged) -> dict[str, int]:
    text, meaning, not_judged = (len(judged.labels[label]) for label in (1, 2, 3))
    return {
        "columns": judged.n_columns,
        "queries": len(judged.queries),
        "positive_pairs": text + meaning,
        "semantic_only_pairs": meaning,
        "not_judged_pairs": not_judged,
    }


def _chosen(methods: str | None, sentence_model: str | None) -> list[str]:
    if methods is None:
        return [name for name in METHODS if name != SENTENCE or sentence_model]
    names = [name.strip() for name in methods.split(",")]
    if unknown := [name for name in names if name not in METHODS]:
        raise InputError(f"The methods are {', '.join(METHODS)}. Got {', '.join(unknown)}.")
    return names


def _given(lake: Path | None, truth: Path | None) -> tuple[Path, Path]:
    if lake is None or truth is None:
        raise InputError("Give --data, or both --lake and --truth.")
    return lake, truth


def _unpacked(data: str, place: Path) -> tuple[Path, Path]:
    folder = SHARED / data
    if not folder.is_dir():
        raise InputError(f"The shared lake {data} is not on this machine: {folder} is not there.")
    target = place / "tables"
    with tarfile.open(folder / "tables.tar.gz") as archive:
        archive.extractall(target, filter="data")
    return target, folder / "join_pairs.tsv.gz"


if __name__ == "__main__":
    sys.exit(main())
