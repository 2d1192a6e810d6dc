"""The command ``python -m benchmarks.effectiveness.model_study``.

It compares the kinds of models on all shared data sets: at their default distances, and each data
set at the distance that is chosen on the others. fastText is trained on the lake of each set.
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
import numpy as np
import pyarrow as pa

from benchmarks.effectiveness.lexical.data import (
    Prepare,
    PreparedSet,
    normalised,
    prepared,
    study_set,
)
from benchmarks.effectiveness.lexical.held_out import held_out, nearest_position
from benchmarks.effectiveness.lexical.study import MODELS as LEXICAL_MODELS
from benchmarks.effectiveness.lexical.study import Method, methods, scores_of
from benchmarks.effectiveness.model_tables import STUDY, tables
from benchmarks.effectiveness.page import write_page
from benchmarks.effectiveness.sets import DATA
from benchmarks.effectiveness.stored import RESULTS
from benchmarks.report import read_result, write_result
from embed.corpus import write_corpus
from embed.registry import create_embedder
from pexeso.errors import InputError, PexesoError
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.options import DEFAULT_MAX_DISTANCE, USUAL_MAX_DISTANCES

LEXICAL, SENTENCE = "lexical", "sentence"
TRAINED = {"fasttext": "weighted", "fasttext-mean": "mean"}
MODELS = (LEXICAL, *TRAINED, SENTENCE)
"""Kinds of embedders; of those that are trained, how words make up a value."""

DISTANCES = tuple(np.round(np.arange(0.01, 0.501, 0.01), 3).tolist())
"""Largest distances that are tried, as a share of the largest there is."""


def method_of(model: str, own: PreparedSet, prepare: Prepare, place: Path, sentence: str) -> Method:
    """Return what makes vectors of a model of `MODELS`; `place` is a folder to write in."""
    if model == LEXICAL:
        return methods(place)[next(iter(LEXICAL_MODELS))]
    if model == SENTENCE:
        embedder = create_embedder(f"sentence:{sentence}")
    else:
        columns = [
            pa.array(sorted(set(column) - {""}), pa.string()) for column in prepare(own.study.lake)
        ]
        groups = np.repeat(np.arange(len(columns)), [len(column) for column in columns])
        pairs = pa.table({"group": groups, "value": pa.chunked_array(columns)})
        write_corpus([pairs], place / "corpus.txt")
        embedder = create_embedder(
            "fasttext", corpus=place / "corpus.txt", value_vectors=TRAINED[model]
        )
    return lambda values, counts: embedder.embed(values)


def measured(models: Sequence[str], sentence: str) -> dict[str, Any]:
    """Measure models on all data sets.

    Returns
    -------
    dict
        Model -> when it was ``measured``, what `held_out` returns, ``semantic_recall`` of
        `wikitables` by precision, and ``curves`` of the F1s of columns and of values by distance.
    """
    prepare, scores = normalised(Normaliser()), {model: {} for model in models}
    for name in DATA:
        with tempfile.TemporaryDirectory(prefix="pexeso-model-study-") as folder:
            work_folder = Path(folder)
            study = prepared(study_set(name, work_folder / "study"), prepare)
            for model in models:
                method = method_of(model, study, prepare, work_folder, sentence)
                scores[model][name] = scores_of(study, method, DISTANCES)
                click.echo(f"{name}, {model}: done", err=True)
    return {
        model: {
            "measured": dt.date.today().isoformat(),
            **({"model": sentence} if model == SENTENCE else {}),
            **held_out(sets),
            "semantic_recall": sets["wikitables"].semantic,
            "curves": {
                name: [[round(f1, 4) for f1 in set_scores.at(distance)] for distance in DISTANCES]
                for name, set_scores in sets.items()
            },
        }
        for model, sets in scores.items()
    }


def at_default(model: str, curves: Mapping[str, Sequence[Sequence[float]]]) -> dict[str, Any]:
    """Return the default distance of a model, its F1s there, and their mean."""
    default = USUAL_MAX_DISTANCES.get(model, DEFAULT_MAX_DISTANCE)
    row = nearest_position(DISTANCES, default)
    sets = {name: curve[row] for name, curve in curves.items()}
    return {"distance": default, "sets": sets, "mean": float(np.mean(list(sets.values())))}


def merged(before: Mapping[str, Any] | None, new_models: Mapping[str, Any]) -> dict[str, Any]:
    """Put models in the place of those that were kept, and read all of them at their defaults."""
    models = {**(before or {"models": {}})["models"], **new_models}
    return {
        "data": STUDY,
        "distances": DISTANCES,
        "models": {
            name: {**models[name], "at_default": at_default(name, models[name]["curves"])}
            for name in MODELS
            if name in models
        },
    }


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--models",
    default=",".join(MODELS),
    show_default=True,
    help="Those measured, with commas; none: read the kept ones at their defaults anew.",
)
@click.option(
    "--sentence-model", default="", help="A sentence-transformers model, by path or name."
)
@click.option(
    "--write",
    is_flag=True,
    help=f"Keep the models in benchmarks/results/effectiveness/{STUDY}.json, and write "
    "docs/explanation/effectiveness.md anew.",
)
@click.option("--json", "as_json", is_flag=True, help="Print plain data instead of tables.")
def main(models: str, sentence_model: str, write: bool, as_json: bool) -> None:
    """Compare the kinds of models on all shared data sets, at default and at other distances."""
    names = [name.strip() for name in models.split(",") if name.strip()]
    try:
        if unknown := [name for name in names if name not in MODELS]:
            raise InputError(f"The models are {', '.join(MODELS)}. Got {unknown[0]!r}.")
        if SENTENCE in names and not sentence_model:
            raise InputError(f"The model {SENTENCE} needs --sentence-model, or leave it out.")
        new_models = measured(names, sentence_model)
    except PexesoError as error:
        raise click.ClickException(str(error)) from error
    path = RESULTS / f"{STUDY}.json"
    before = read_result(path) if write else None
    result = merged(before, new_models)
    if write:
        some = result["models"].keys() != new_models.keys()
        write_result(path, result, before=before if some else None)
        write_page()
    click.echo(json.dumps(result, indent=1) if as_json else tables(result))


if __name__ == "__main__":
    sys.exit(main())
