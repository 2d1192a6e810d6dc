"""What came out, as plain data and as tables in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.effectiveness.found_pairs import FoundPairs
from benchmarks.effectiveness.judged import Judged
from benchmarks.effectiveness.scoring import (
    TOP,
    best_f1,
    by_meaning_at,
    cross_validated,
    f1,
    intervals,
    ranked,
    rates,
    truth_of,
)
from benchmarks.report import markdown_table, rate

PRECISIONS = (0.90, 0.95)

Scores = dict[str, Any]


def scores_of_found(judged: Judged, pairs: FoundPairs) -> Scores:
    """Score what a method finds, however its thresholds were chosen; not rounded."""
    precision, recall, by_meaning = rates(pairs, truth_of(judged, np.arange(judged.n_columns)))
    average, at_top = ranked(judged, pairs)
    return {
        "precision": precision,
        "recall": recall,
        "f1": f1(precision, recall),
        "semantic_only_recall": by_meaning,
        "map": average,
        f"recall_at_{TOP}": at_top,
    }


def scores_of(judged: Judged, founds: Sequence[FoundPairs]) -> Scores:
    """Score a method at thresholds chosen on other query columns."""
    truth = truth_of(judged, np.arange(judged.n_columns))
    pairs, chosen = cross_validated(judged, founds, best_f1)
    scores = {
        **scores_of_found(judged, pairs),
        "thresholds": chosen,
        "intervals": intervals(judged, pairs),
    }
    for precision in PRECISIONS:
        pairs, chosen = cross_validated(judged, founds, by_meaning_at(precision))
        held_out, _, by_meaning = rates(pairs, truth)
        name = f"p{round(100 * precision)}"
        scores |= {
            f"semantic_only_recall_at_{name}": by_meaning,
            f"semantic_only_precision_at_{name}": held_out,
            f"semantic_only_interval_at_{name}": intervals(judged, pairs)["semantic_only_recall"],
            f"thresholds_at_{name}": chosen,
        }
    return {
        name: round(value, 4) if isinstance(value, float) else value
        for name, value in scores.items()
    }


Cells = dict[str, Callable[[Scores], float | str | None]]
"""Heading of a column of a table, and what stands in it for a method; None: nothing."""

OF_COLUMNS: Cells = {
    "precision": lambda scores: scores["precision"],
    "recall": lambda scores: scores["recall"],
    "F1": lambda scores: scores["f1"],
    "95 % of F1": lambda scores: _interval(scores["intervals"]["f1"]),
    "MAP": lambda scores: scores["map"],
    f"recall at {TOP}": lambda scores: scores[f"recall_at_{TOP}"],
    "by meaning, p ≥ .90": lambda scores: scores.get("semantic_only_recall_at_p90"),
    "by meaning, p ≥ .95": lambda scores: scores.get("semantic_only_recall_at_p95"),
}
OF_VALUES: Cells = {
    "precision": lambda scores: scores["values"]["precision"],
    "recall": lambda scores: scores["values"]["recall"],
    "F1": lambda scores: scores["values"]["f1"],
    "95 % of F1": lambda scores: _interval(scores["values"]["intervals"]["f1"]),
    "recall, other spellings": lambda scores: scores["values"]["recall_of_other_spellings"],
}
OF_PARTNERS: Cells = {
    "partner first": lambda scores: (
        f"{scores['partners']['first']} of {scores['partners']['asked']}"
    ),
    "with twins": lambda scores: (
        f"{scores['partners']['first_with_twins']} of {scores['partners']['asked']}"
    ),
    "mean reciprocal rank": lambda scores: scores["partners"]["mean_reciprocal_rank"],
}


def tables_of(result: Mapping[str, Any]) -> str:
    """Write the scores of a data set as tables in Markdown."""
    methods = result["methods"]
    first = next(iter(methods.values()), {})
    parts = []
    if "map" in first:
        parts.append(("Joinable columns", as_table(methods, OF_COLUMNS)))
    if "values" in first:
        cells = {**OF_VALUES, **(OF_PARTNERS if "partners" in first else {})}
        parts.append(
            ("Values joined with their nearest one", as_table(with_values(methods), cells))
        )
    skipped = [f"Not measured: {name}. {why}" for name, why in result["skipped"].items()]
    return "\n\n".join([*(f"{title}:\n\n{table}" for title, table in parts), *skipped])


def with_values(methods: Mapping[str, Scores]) -> dict[str, Scores]:
    """Leave out the methods that rank columns and compare no values."""
    return {name: scores for name, scores in methods.items() if "values" in scores}


def as_table(methods: Mapping[str, Scores], cells: Cells) -> str:
    """Write a table with a row for each method; the best number of each column is bold."""
    columns = [_column([read(scores) for scores in methods.values()]) for read in cells.values()]
    return markdown_table(["method", *cells], zip(methods, *columns, strict=True))


def _column(values: Sequence[float | str | None]) -> list[str]:
    """Write the cells of a column, the highest number in bold."""
    texts = [rate(value) if isinstance(value, float | int) else value or "" for value in values]
    numbers = [value for value in values if isinstance(value, float | int)]
    best = rate(max(numbers)) if numbers else None
    return [f"**{text}**" if text == best else text for text in texts]


def summary_table(results: Sequence[Mapping[str, Any]]) -> str:
    """Compare data sets in one table: F1 of columns and values, pairs by meaning, and partners."""
    methods = list(dict.fromkeys(name for result in results for name in result["methods"]))
    scores = {
        method: {result["data"]: result["methods"].get(method) for result in results}
        for method in methods
    }
    return as_table(scores, {head: read for result in results for head, read in _heads(result)})


def _heads(result: Mapping[str, Any]) -> Iterator[tuple[str, Callable[[Scores], Any]]]:
    name, first = result["data"], next(iter(result["methods"].values()), {})

    def reader(*path: str) -> Callable[[Scores], Any]:
        def read(scores: Scores) -> Any:
            value: Any = scores[name]
            for key in path:
                value = value and value.get(key)
            return value

        return read

    if "map" in first:
        yield f"{name}: columns", reader("f1")
        yield f"{name}: by meaning, p ≥ .90", reader("semantic_only_recall_at_p90")
    if "values" in first:
        yield f"{name}: values", reader("values", "f1")
    if "partners" in first:
        yield f"{name}: partner first", lambda scores: _first(scores[name])


PAPER = {
    "equi": ("1.000 / .611", "1.000 / .589"),
    "jaccard": (".876 / .732", ".919 / .781"),
    "edit": (".814 / .756", ".833 / .842"),
    "fuzzy": (".834 / .795", ".865 / .833"),
    "tf-idf": (".784 / .712", ".810 / .782"),
    "pexeso": (".911 / .821", ".948 / .868"),
    "pexeso-pq": (".787 / .422", ".744 / .461"),
}
"""Table IV of the paper: precision and recall on OPEN and on SWDC."""


def paper_table(result: Mapping[str, Any]) -> str:
    """Return precision and recall of columns beside those of Table IV."""
    methods = result["methods"]
    rows = []
    for name, published in PAPER.items():
        folded = methods.get({"pexeso": "pexeso-folded", "pexeso-pq": ""}.get(name, name))
        normalised = methods.get(name if name.startswith("pexeso") else f"{name}-normalised")
        both = (folded, normalised)
        rates = [
            "" if one is None else f"{rate(one['precision'])} / {rate(one['recall'])}"
            for one in both
        ]
        meaning = ["" if one is None else rate(one["semantic_only_recall_at_p90"]) for one in both]
        rows.append([f"`{name}`", *published, *rates, *meaning])
    data = f"`{result['data']}`"
    head = ["method", "paper: OPEN", "paper: SWDC", f"{data}, folded text", f"{data}, normalised"]
    return markdown_table([*head, "by meaning, folded", "normalised"], rows)


def _first(scores: Scores | None) -> str | None:
    return scores and f"{scores['partners']['first']} of {scores['partners']['asked']}"


def _interval(bounds: Sequence[float]) -> str:
    return " to ".join(map(rate, bounds))
