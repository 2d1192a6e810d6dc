"""The command ``python -m benchmarks effectiveness``."""

from __future__ import annotations

import datetime as dt
import logging
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from benchmarks.commands import benchmark, refuse_unknown, setting
from benchmarks.effectiveness import similar
from benchmarks.effectiveness.automatic import automatic_columns, automatic_distances
from benchmarks.effectiveness.found_pairs import FoundPairs, found_by_values
from benchmarks.effectiveness.joining import COLUMNS, scores_at, scores_of_values
from benchmarks.effectiveness.judged import BY_MEANING, BY_TEXT, NOT_JUDGED, Judged, incidence
from benchmarks.effectiveness.methods import (
    AUTOMATIC,
    BY_STRINGS,
    CODES,
    METHODS,
    MODELS,
    OTHER_MODELS,
    PEXESO,
    RERANKED,
    SENTENCE,
    Method,
    Workshop,
    cosines,
    make_method,
)
from benchmarks.effectiveness.nearest import join_nearest
from benchmarks.effectiveness.partners import scores_of_partners
from benchmarks.effectiveness.report import Scores, scores_of, tables_of
from benchmarks.effectiveness.searched import ranked_pairs
from benchmarks.effectiveness.sets import DATA, TruthSet, shared_set

LOGGER = logging.getLogger(__name__)

Result = dict[str, Any]


def measure(truth: TruthSet, shop: Workshop, names: Sequence[str]) -> Result:
    """Score methods on a data set."""
    result: Result = {"data": truth.name, **counts_of(truth), "methods": {}, "skipped": {}}
    for name in names:
        if name == SENTENCE and not shop.sentence_model:
            result["skipped"][name] = "No sentence model was given (--sentence-model)."
            continue
        if name == RERANKED and not truth.judged:
            result["skipped"][name] = "It ranks columns, and no pairs of columns are judged."
            continue
        if name in (CODES, *OTHER_MODELS) and shop.model_of(name) is None:
            lacking = "model of vectors" if name == CODES else f"model {name}"
            result["skipped"][name] = f"The index holds no {lacking}."
            continue
        started = dt.datetime.now()
        scores = _MEASURED_BY.get(name, _scores)(truth, shop, name)
        scores["measured"] = started.date().isoformat()
        if name not in BY_STRINGS:
            scores["model"] = shop.describe_model(name)
        result["methods"][name] = scores
        seconds = (dt.datetime.now() - started).total_seconds()
        LOGGER.info("%s, %s: %.0f s", truth.name, name, seconds)
    return result


def founds_of(method: Method, judged: Judged) -> list[FoundPairs]:
    """Return the pairs of columns that a method finds at each of its thresholds."""
    columns = [[text for text in column if text] for column in method.prepare(judged.texts)]
    values, held = incidence(columns)
    similarities = method.similarities(method.thresholds)
    alike = similar.whole(method.compare(values, values, min(similarities)), len(values))
    founds = found_by_values(judged, held, alike, similarities)
    return [
        replace(pairs, threshold=threshold)
        for pairs, threshold in zip(founds, method.thresholds, strict=True)
    ]


def counts_of(truth: TruthSet) -> dict[str, int]:
    """Count what there is to find: two runs with equal counts have the same truth."""
    counts: dict[str, int] = {}
    if truth.judged:
        text, meaning, not_judged = (
            len(truth.judged.labels[label]) for label in (BY_TEXT, BY_MEANING, NOT_JUDGED)
        )
        counts |= {
            "columns": truth.judged.n_columns,
            "queries": len(truth.judged.queries),
            "positive_pairs": text + meaning,
            "semantic_only_pairs": meaning,
            "not_judged_pairs": not_judged,
        }
    if truth.tasks:
        counts |= {
            "tasks": len(truth.tasks),
            "asked_values": sum(len(task.queries) for task in truth.tasks),
            "asked_values_with_partner": sum(int(task.has_partner().sum()) for task in truth.tasks),
            "other_values": sum(len(task.others) for task in truth.tasks),
        }
    if truth.partners:
        counts |= {
            "columns": len(truth.partners.texts),
            "queries": len(truth.partners.pair_by_task),
        }
    return counts


def _scores(truth: TruthSet, shop: Workshop, name: str) -> Scores:
    """Score a method at thresholds that are tuned, fold by fold."""
    method, scores = make_method(name, shop), {}
    if truth.judged:
        scores |= scores_of(truth.judged, founds_of(method, truth.judged))
    if truth.tasks:
        joined = [join_nearest(method, task) for task in truth.tasks]
        scores["values"] = scores_of_values(joined, method.nearest_thresholds)
    return _with_partners(scores, truth, method)


def _scores_of_ranked(truth: TruthSet, shop: Workshop, name: str) -> Scores:
    return scores_of(truth.judged, [ranked_pairs(truth.judged, shop.index())])


def _scores_of_automatic(truth: TruthSet, shop: Workshop, name: str) -> Scores:
    """Score pexeso at thresholds that the index chooses from the values alone."""
    method, index, scores = make_method(PEXESO, shop), shop.index(), {}
    advice = index.advise()
    if truth.judged:
        _, scores = automatic_columns(truth.judged, index)
    if truth.tasks:
        distances = automatic_distances(
            index, [(task.queries, task.others) for task in truth.tasks]
        )
        joined = [join_nearest(method, task) for task in truth.tasks]
        scores["values"] = scores_at(
            joined, cosines(distances), [round(distance, 4) for distance in distances]
        )
    return _with_partners(scores, truth, replace(method, thresholds=(advice.max_distance,)))


_MEASURED_BY: dict[str, Callable[[TruthSet, Workshop, str], Scores]] = {
    RERANKED: _scores_of_ranked,
    AUTOMATIC: _scores_of_automatic,
}
"""Methods that are not one similarity with thresholds to tune."""


def _with_partners(scores: Scores, truth: TruthSet, method: Method) -> Scores:
    if truth.partners:
        scores["partners"] = scores_of_partners(method, truth.partners)
    if not truth.judged:
        scores |= {name: scores["values"][name] for name in COLUMNS[:3]}
    return scores


ALL = "all"


@dataclass(frozen=True)
class Effectiveness:
    """Data sets, methods and models to measure."""

    data: str = setting(
        help_text=f"Data sets with truth, with commas, of {', '.join(DATA)}; or {ALL}."
    )
    methods: str = setting(
        ALL, f"Some of {', '.join(METHODS)}, with commas; {SENTENCE} needs a model."
    )
    model: str = setting(MODELS, "Models of an index that is built; 'pexeso' is the first of them.")
    indexes: str | None = setting(
        None,
        "Folder of indexes NAME.pexeso, built where they are missing; without it an index is"
        " thrown away.",
        type=click.Path(file_okay=False),
    )
    sentence_model: str | None = setting(
        None, "A sentence-transformers model, by path or name, to compare with."
    )


@benchmark("effectiveness", Effectiveness, tables_of)
def main(settings: Effectiveness) -> Iterator[tuple[str, Result]]:
    """Measure which joinable columns and values are found, against the alternatives."""
    names = members(settings.data, DATA, "Data sets")
    methods = members(settings.methods, METHODS, "Methods")
    for name in names:
        with tempfile.TemporaryDirectory(prefix="pexeso-effectiveness-") as work:
            truth = shared_set(name, Path(work))
            folder = Path(settings.indexes or work)
            folder.mkdir(parents=True, exist_ok=True)
            models = settings.model, settings.sentence_model
            shop = Workshop(truth.texts, truth.lake, folder, *models, name)
            yield f"effectiveness/{name}", measure(truth, shop, methods)


def members(given: str, known: Sequence[str], noun: str) -> list[str]:
    """Read names with commas, or all of those that are known."""
    names = list(known) if given == ALL else [name.strip() for name in given.split(",")]
    refuse_unknown(noun, names, [*known, ALL])
    return names
