"""The command ``python -m benchmarks.effectiveness.lexical_study``.

It compares models of words and n-grams on all shared data sets together. The distance of a model
is chosen on the data sets other than the one that is scored.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from benchmarks.effectiveness.lexical.data import LAKES, StudySet, normalised, prepared, study_set
from benchmarks.effectiveness.lexical.held_out import SetScores, held_out
from benchmarks.effectiveness.lexical.scores import DISTANCES
from benchmarks.effectiveness.lexical.study import (
    MISSPELT_DISTANCES,
    TODAY,
    MisspeltLake,
    described,
    methods,
    misspelt_lakes,
    misspelt_scores,
    scores_of,
)
from benchmarks.effectiveness.sets import DATA, SHARED
from benchmarks.effectiveness.stored import RESULTS
from benchmarks.report import read_result, write_result
from pexeso.errors import InputError, PexesoError
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.normalise.rules import DEFAULT_RULES

RESULT = "lexical-study"
N_MISSPELT = 3000
TODAY_DISTANCE, TODAY_JOINABILITY = 0.35, 0.6
"""The defaults of a search before the study."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--models", help="Some of the models, with commas.  [default: all]")
@click.option("--misspelt", default=N_MISSPELT, show_default=True, help="Misspelt values drawn.")
@click.option("--rules", help="Rules of the normaliser to switch on, with commas.")
@click.option("--without", help="Rules of the normaliser to switch off, with commas.")
@click.option("--json", "as_json", is_flag=True, help="Print plain data instead of a table.")
@click.option(
    "--write",
    is_flag=True,
    help="Keep the models in benchmarks/results/effectiveness/lexical-study.json.",
)
def main(
    models: str | None,
    misspelt: int,
    rules: str | None,
    without: str | None,
    as_json: bool,
    write: bool,
) -> None:
    """Compare lexical models on all shared data sets, at distances chosen on other sets."""
    try:
        normaliser = Normaliser().switched(_names(rules), _names(without))
        result = run(_names(models), misspelt, normaliser)
    except PexesoError as error:
        raise click.ClickException(str(error)) from error
    if write:
        path = RESULTS / f"{RESULT}.json"
        before = read_result(path)
        updated = merged(before, result)
        some = before is not None and updated["models"].keys() != result["models"].keys()
        write_result(path, updated, before=before if some else None)
    click.echo(json.dumps(result, indent=1) if as_json else table(result))


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in text.split(",")] if text else []


def run(
    names: Sequence[str], n_misspelt: int, normaliser: Normaliser, shared: Path = SHARED
) -> dict[str, Any]:
    """Measure models.

    Returns
    -------
    dict
        ``models``: name -> ``model``, `held_out` of it, ``at_today``, ``semantic_recall`` of
        `wikitables` by precision, ``curves`` of F1 by distance, and ``misspelt``.

    Raises
    ------
    InputError
        There is no such model, or a data set is not on this machine.
    """
    with tempfile.TemporaryDirectory(prefix="pexeso-lexical-study-") as folder:
        work_folder = Path(folder)
        measured = methods(work_folder)
        if unknown := [name for name in names if name not in measured]:
            raise InputError(f"The models are {', '.join(measured)}. Got {unknown[0]!r}.")
        studies = [study_set(name, work_folder / name, shared) for name in (*DATA, *LAKES)]
        prepare = normalised(normaliser)
        sets = [prepared(study, prepare) for study in studies if study.judged]
        lakes = misspelt_lakes(studies, prepare, n_misspelt) if n_misspelt else []
        models = {}
        for name in names or measured:
            scores = {dataset.study.name: scores_of(dataset, measured[name]) for dataset in sets}
            models[name] = _result(name, scores, lakes, measured)
            click.echo(f"{name}: {models[name]['mean']:.4f}", err=True)
    return {
        "data": RESULT,
        "measured": dt.date.today().isoformat(),
        "rules_switched": sorted(set(normaliser.rules) ^ set(DEFAULT_RULES)),
        "counts": counts_of(studies),
        "distances": list(DISTANCES),
        "misspelt": {"drawn": n_misspelt, "distances": list(MISSPELT_DISTANCES)},
        "models": models,
    }


def merged(before: Mapping[str, Any] | None, result: dict[str, Any]) -> dict[str, Any]:
    """Put the models of a result in the place of those that were kept, of the same truth.

    A model that was measured without misspellings keeps those that it had.
    """
    if before is None or any(before[name] != result[name] for name in ("counts", "distances")):
        return result
    models = dict(before["models"])
    for name, model in result["models"].items():
        prior = {what: models[name][what] for what in ("misspelt",) if what in models.get(name, {})}
        models[name] = {**prior, **model}
    drawn = max(before["misspelt"], result["misspelt"], key=lambda sample: sample["drawn"])
    return {**result, "misspelt": drawn, "models": models}


def counts_of(studies: Sequence[StudySet]) -> dict[str, dict[str, int]]:
    """Count what there is to find in each data set."""
    return {
        study.name: {
            "columns": len(study.lake),
            "tasks": len(study.tasks),
            "positive_pairs": sum(len(study.judged.labels[label]) for label in (1, 2))
            if study.judged
            else 0,
        }
        for study in studies
    }


def _result(
    name: str,
    scores: Mapping[str, SetScores],
    lakes: Sequence[MisspeltLake],
    measured: Mapping[str, Any],
) -> dict[str, Any]:
    result = {"model": described(name), **held_out(scores)}
    if name == TODAY:
        result["at_defaults"] = {
            dataset: scores[dataset].at(TODAY_DISTANCE, TODAY_JOINABILITY) for dataset in scores
        }
    result["semantic_recall"] = scores["wikitables"].semantic
    result["curves"] = {
        dataset: [[round(f1, 4) for f1 in set_scores.at(distance)] for distance in DISTANCES]
        for dataset, set_scores in scores.items()
    }
    if lakes:
        result["misspelt"] = misspelt_scores(lakes, measured[name])
    return result


def table(result: Mapping[str, Any]) -> str:
    """Return a result as a table, one model a row."""
    sets = list(DATA)
    titles = ["model", "d", *(f"{name}: columns, values" for name in sets), "mean", "p .90", ".95"]
    titles += ["80 % misspelt at", "unrelated: lake, column"]
    lines = [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
    for name, model in result["models"].items():
        cells = [name, f"{model['distance']:.2f}"]
        for dataset in sets:
            f1s = model["sets"][dataset]
            cells.append(f"{f1s['columns']:.3f} {f1s['values']:.3f} ({f1s['distance']:.2f})")
        cells += [f"{model['mean']:.4f}", *(f"{r:.3f}" for r in model["semantic_recall"].values())]
        cells += _misspelt_cells(model.get("misspelt"))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _misspelt_cells(misspelt: Mapping[str, Sequence[float]] | None) -> list[str]:
    shares = misspelt["found"] if misspelt else []
    position = next((at for at, share in enumerate(shares) if share >= 0.8), None)
    if misspelt is None or position is None:
        return ["", ""]
    lake, column = (misspelt[f"unrelated_in_{where}"][position] for where in ("lake", "column"))
    return [f"{MISSPELT_DISTANCES[position]:.2f}", f"{lake:.3f}, {column:.3f}"]


if __name__ == "__main__":
    sys.exit(main())
