"""The command ``python -m benchmarks.effectiveness.threshold_study``.

It compares ways to set the thresholds of a search by the lexical model: the default ones, fixed
ones chosen on the data sets other than the one that is scored, and those that an index advises. The
larger share that advice asks of short query columns is left out.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.effectiveness.lexical.data import PreparedSet, normalised, prepared, study_set
from benchmarks.effectiveness.lexical.held_out import nearest_position
from benchmarks.effectiveness.lexical.scores import DISTANCES, column_scores
from benchmarks.effectiveness.lexical.study import MODELS, methods
from benchmarks.effectiveness.scoring import JOINABILITIES
from benchmarks.effectiveness.searched import index_for
from benchmarks.effectiveness.sets import DATA, shared_set
from benchmarks.effectiveness.stored import RESULTS
from benchmarks.report import write_result
from pexeso.errors import PexesoError
from pexeso.index import Index, open_index
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.options import DEFAULT_MIN_JOINABILITY, USUAL_MAX_DISTANCES

RESULT = "threshold-study"
MODEL = "lexical"
DEFAULT = (USUAL_MAX_DISTANCES[MODEL], DEFAULT_MIN_JOINABILITY)
N_TIMED = 20
"""Query columns whose searches are timed, one after the other."""


@dataclass(frozen=True)
class ThresholdScores:
    """What the ways to set thresholds do on one data set.

    Attributes
    ----------
    f1 : numpy.ndarray of shape (distances, joinabilities)
        Of columns, at each of `DISTANCES` and `JOINABILITIES`.
    advised : dict
        ``max_distance``, ``min_joinability`` and ``f1`` of the advice of an index; ``columns``
        sampled for it, the ``seconds`` it takes, and those of a search, ``seconds_of_a_search``.
    """

    f1: np.ndarray
    advised: dict[str, Any]

    def at(self, distance: float, joinability: float) -> float:
        """Return the F1 at fixed thresholds."""
        row = nearest_position(DISTANCES, distance)
        return float(self.f1[row, nearest_position(JOINABILITIES, joinability)])


def best_thresholds(grids: list[np.ndarray]) -> tuple[float, float]:
    """Return the distance and the joinability with the highest mean F1.

    Examples
    --------
    >>> grid = np.zeros((len(DISTANCES), len(JOINABILITIES)))
    >>> grid[5, 20] = 1
    >>> best_thresholds([grid, grid])
    (0.25, 0.5)
    """
    mean = np.mean(grids, axis=0).round(9)
    row, column = np.unravel_index(np.argmax(mean), mean.shape)
    return DISTANCES[int(row)], float(JOINABILITIES[int(column)])


def compared(scores: Mapping[str, ThresholdScores]) -> dict[str, Any]:
    """Compare the ways on all data sets.

    Returns
    -------
    dict
        ``sets``: name -> the F1 at the ``default``, at the ``held_out`` thresholds chosen on the
        other sets, and as ``advised``; ``mean`` and ``worst`` of each way over the sets.
    """
    sets: dict[str, Any] = {}
    for name, set_scores in scores.items():
        others = best_thresholds([score.f1 for other, score in scores.items() if other != name])
        sets[name] = {
            "default": set_scores.at(*DEFAULT),
            "held_out": set_scores.at(*others),
            "thresholds_of_others": others,
            "advised": set_scores.advised["f1"],
            "advice": set_scores.advised,
        }
    ways = ("default", "held_out", "advised")
    return {
        "default": DEFAULT,
        "best_of_all": best_thresholds([score.f1 for score in scores.values()]),
        "mean": {way: float(np.mean([figures[way] for figures in sets.values()])) for way in ways},
        "worst": {way: min(figures[way] for figures in sets.values()) for way in ways},
        "sets": sets,
    }


def scored(own: PreparedSet, index: Index, place: Path) -> ThresholdScores:
    """Score one data set; `place` is a folder to write in."""
    started = time.perf_counter()
    advice = index.advise()
    seconds = time.perf_counter() - started
    vectors = methods(place)[next(iter(MODELS))](own.values, own.counts)
    distances = (*DISTANCES, advice.max_distance)
    f1 = column_scores(own.study.judged, own.columns, vectors, own.number(), distances).f1()
    share = nearest_position(JOINABILITIES, advice.min_joinability or 0.0)
    advised = {
        "max_distance": advice.max_distance,
        "min_joinability": advice.min_joinability,
        "f1": float(f1[-1, share]),
        "columns": advice.evidence.get("sampled_columns"),
        "seconds": round(seconds, 2),
        "seconds_of_a_search": round(_seconds_of_a_search(own, index), 3),
    }
    return ThresholdScores(f1[:-1], advised)


def _seconds_of_a_search(prepared_set: PreparedSet, index: Index) -> float:
    """Return the median seconds of a search at the default thresholds."""
    judged = prepared_set.study.judged
    queries = range(judged.n_columns) if judged.allowed_queries is None else judged.allowed_queries
    texts, seconds = [judged.texts[number] for number in list(queries)[: N_TIMED + 1]], []
    for text in texts:
        started = time.perf_counter()
        index.search(text)
        seconds.append(time.perf_counter() - started)
    return float(np.median(seconds[1:]))  # the first compiles


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--indexes",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder in which indexes are kept as NAME.pexeso, and used where they are there.",
)
@click.option("--write", is_flag=True, help=f"Keep the result as {RESULT}.json.")
def main(indexes: Path | None, write: bool) -> None:
    """Compare ways to set the thresholds of a search, on all shared data sets."""
    try:
        with tempfile.TemporaryDirectory(prefix="pexeso-threshold-study-") as folder:
            scores = {name: _scored(name, Path(folder) / name, indexes) for name in DATA}
    except PexesoError as error:
        raise click.ClickException(str(error)) from error
    result = {"data": RESULT, "measured": dt.date.today().isoformat(), **compared(scores)}
    if write:
        write_result(RESULTS / f"{RESULT}.json", result)
    click.echo(json.dumps(result, indent=1))


def _scored(name: str, folder: Path, indexes: Path | None) -> ThresholdScores:
    prepared_set = prepared(study_set(name, folder / "study"), normalised(Normaliser()))
    path = (indexes or folder) / f"{name}.pexeso"
    if path.is_dir():
        index = open_index(path)
    else:
        index = index_for(shared_set(name, folder / "lake").lake, path, MODEL)
    scores = scored(prepared_set, index, folder)
    click.echo(f"{name}: done", err=True)
    return scores


if __name__ == "__main__":
    sys.exit(main())
