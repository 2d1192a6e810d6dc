"""The command ``python -m benchmarks.effectiveness.combined_study``.

It compares spaces in which the lexical model and fastText stand together: vectors of both, one
after the other, scaled so that a cosine is ``1 - w`` times the lexical one and ``w`` times that of
fastText. This is one metric, so one index and one search could have it. At each weight the distance
is chosen on the data sets other than the one that is scored.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import click
import numpy as np
import scipy.sparse as sp

from benchmarks.effectiveness.combined_tables import STUDY, tables
from benchmarks.effectiveness.lexical.data import normalised, prepared, study_set
from benchmarks.effectiveness.lexical.held_out import held_out
from benchmarks.effectiveness.lexical.products import Combined, best_by_column_of_each
from benchmarks.effectiveness.lexical.study import scores_of
from benchmarks.effectiveness.model_study import DISTANCES, LEXICAL, method_of
from benchmarks.effectiveness.page import write_page
from benchmarks.effectiveness.sets import DATA
from benchmarks.effectiveness.stored import RESULTS
from benchmarks.report import write_result
from pexeso.errors import InputError, PexesoError
from pexeso.lake.normalise.normaliser import Normaliser

FASTTEXT = "fasttext"
WEIGHTS = tuple(np.round(np.arange(0, 1.01, 0.1), 1).tolist())
"""Shares of fastText in the squared length of a vector."""


def measured(weights: tuple[float, ...]) -> dict[str, Any]:
    """Measure the weights on all data sets, each set with the same models.

    Returns
    -------
    dict
        Weight, as text -> what `held_out` returns, and ``semantic_recall`` of `wikitables` by
        precision.
    """
    prepare, scores = normalised(Normaliser()), {weight: {} for weight in weights}
    for name in DATA:
        with tempfile.TemporaryDirectory(prefix="pexeso-combined-study-") as folder:
            work_folder = Path(folder)
            study = prepared(study_set(name, work_folder / "study"), prepare)
            both = [
                method_of(model, study, prepare, work_folder, "")(study.values, study.counts)
                for model in (LEXICAL, FASTTEXT)
            ]
        known: dict[float, sp.csr_matrix] = {}

        def best_of(left: Combined, *others: Any, known: Any = known) -> sp.csr_matrix:
            if not known:
                known.update(best_by_column_of_each(left, *others, weights))
            return known[left.weight]

        for weight in weights:
            together = Combined(*both, weight)
            scores[weight][name] = scores_of(study, lambda *_, of=together: of, DISTANCES, best_of)
        click.echo(f"{name}: done", err=True)
    return {
        f"{weight:.1f}": {
            **held_out(sets),
            "semantic_recall": sets["wikitables"].semantic,
        }
        for weight, sets in scores.items()
    }


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--weights",
    default=",".join(map(str, WEIGHTS)),
    show_default=True,
    help="Of fastText, from 0 to 1, with commas.",
)
@click.option("--json", "as_json", is_flag=True, help="Print plain data instead of a table.")
@click.option(
    "--write",
    is_flag=True,
    help=f"Keep the result in benchmarks/results/effectiveness/{STUDY}.json, and write "
    "docs/explanation/effectiveness.md anew.",
)
def main(weights: str, as_json: bool, write: bool) -> None:
    """Compare spaces of letters and of fastText's vectors together on all shared data sets."""
    try:
        result = {
            "data": STUDY,
            "measured": dt.date.today().isoformat(),
            "weights": measured(read_weights(weights)),
        }
    except PexesoError as error:
        raise click.ClickException(str(error)) from error
    if write:
        write_result(RESULTS / f"{STUDY}.json", result)
        write_page()
    click.echo(json.dumps(result, indent=1) if as_json else tables(result))


def read_weights(text: str) -> tuple[float, ...]:
    """Read weights with commas between them.

    Raises
    ------
    InputError
        One is no number from 0 to 1.

    Examples
    --------
    >>> read_weights("0, 0.5")
    (0.0, 0.5)
    """
    try:
        weights = tuple(float(weight) for weight in text.split(","))
    except ValueError:
        weights = (-1.0,)
    if not all(0 <= weight <= 1 for weight in weights):
        raise InputError(f"Weights must be numbers from 0 to 1, with commas. Got {text!r}.")
    return weights


if __name__ == "__main__":
    sys.exit(main())
