"""The page of the documentation that shows the results.

Its measured parts are written from the stored results. All else is left unchanged.

A measured part stands between ``<!-- measured: NAME -->`` and ``<!-- end -->``. ``summary``
compares the data sets, ``score-study``, ``model-study`` and ``combined-study`` have what the
commands of these names found, any other name is one of the data sets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.effectiveness import combined_tables, model_tables
from benchmarks.effectiveness.methods import BY_STRINGS, CODES, PEXESO, SENTENCE
from benchmarks.effectiveness.plots import plot_result
from benchmarks.effectiveness.report import Cells, as_table, tables_of, with_values
from benchmarks.effectiveness.score import tables as score_tables
from benchmarks.effectiveness.sets import DATA, ROOT
from benchmarks.effectiveness.stored import RESULTS, stored_result
from benchmarks.report import read_result
from pexeso.errors import InputError

PAGE = ROOT / "docs" / "explanation" / "effectiveness.md"
SUMMARY, NOT_MEASURED = "summary", "Not measured yet."
STUDIES = {module.STUDY: module.tables for module in (score_tables, model_tables, combined_tables)}

Results = Mapping[str, Mapping[str, Any]]

_PART = re.compile(r"(<!-- measured: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


def write_page(page: Path = PAGE, results: Path = RESULTS) -> list[Path]:
    """Write the measured parts of the page anew, and draw its plots; return the files.

    Raises
    ------
    InputError
        The page has a part that nothing is known about.
    """
    known = {name: stored for name in DATA if (stored := stored_result(results, name)) is not None}
    studies = {name: read_result(results / f"{name}.json") for name in STUDIES}
    page.write_text(rendered(page.read_text(encoding="utf-8"), known, studies), encoding="utf-8")
    plots = page.with_suffix("")
    return [page, *(path for result in known.values() for path in plot_result(result, plots))]


def rendered(text: str, results: Results, studies: Mapping[str, Any] | None = None) -> str:
    """Return the text of the page with its measured parts as the results have them."""
    known = (SUMMARY, *STUDIES, *DATA)

    def part(match: re.Match[str]) -> str:
        name = match.group(2)
        if name not in known:
            raise InputError(f"The page has a part {name!r}. It must be one of {', '.join(known)}.")
        if name in STUDIES:
            study = (studies or {}).get(name)
            body = NOT_MEASURED if study is None else STUDIES[name](study)
        else:
            body = summary(results) if name == SUMMARY else _of_set(name, results)
        return f"{match.group(1)}{body}\n{match.group(3)}"

    return _PART.sub(part, text)


def summary(results: Results) -> str:
    """Compare the data sets in one table, and say in which pexeso is first."""
    methods = list(
        dict.fromkeys(method for result in results.values() for method in result["methods"])
    )
    cells = {
        heading: read for name in results for heading, read in _cells_of(name, results).items()
    }
    scores = {
        method: {name: result["methods"].get(method) for name, result in results.items()}
        for method in methods
    }
    verdicts = [verdict(title, f1s) for title, f1s in _f1s(results)]
    return "\n".join([as_table(scores, cells), "", *(f"- {verdict}" for verdict in verdicts)])


def verdict(title: str, f1s: Mapping[str, float]) -> str:
    """Say in a sentence which place pexeso has in F1 among the methods of table IV.

    Examples
    --------
    >>> verdict("towns", {"equi": 0.5, "tf-idf": 0.8, "pexeso": 0.7})
    'towns: pexeso is second in F1 (.700), behind tf-idf (.800).'
    """
    pexeso_f1 = round(f1s[PEXESO], 3)
    rivals = sorted(
        ((round(f1, 3), name) for name, f1 in f1s.items() if name in (*BY_STRINGS, CODES)),
        reverse=True,
    )
    ahead = [f"{name} ({_short(f1)})" for f1, name in rivals if f1 > pexeso_f1]
    even = [name for f1, name in rivals if f1 == pexeso_f1]
    parts = [f"{title}: pexeso is {_ORDINALS[len(ahead)]} in F1 ({_short(pexeso_f1)})"]
    parts += [f"even with {' and '.join(even)}"] if even else []
    if ahead:
        parts.append(f"behind {' and '.join(ahead)}")
    elif rivals and not even:
        parts.append(f"before {rivals[0][1]} ({_short(rivals[0][0])})")
    return f"{', '.join(parts)}."


def _f1s(results: Results) -> list[tuple[str, dict[str, float]]]:
    rows = []
    for name, result in results.items():
        methods = result["methods"]
        if PEXESO not in methods:
            continue
        if "map" in methods[PEXESO]:
            rows.append(
                (f"{name}, columns", {method: scores["f1"] for method, scores in methods.items()})
            )
        if "values" in methods[PEXESO]:
            rows.append(
                (
                    f"{name}, values",
                    {
                        method: scores["values"]["f1"]
                        for method, scores in with_values(methods).items()
                    },
                )
            )
    return rows


def _cells_of(name: str, results: Results) -> Cells:
    first = next(iter(results[name]["methods"].values()), {})
    cells: Cells = {}
    if "map" in first:
        cells[f"{name}: columns"] = lambda scores: _read(scores[name], "f1")
        cells[f"{name}: by meaning, p ≥ .90"] = lambda scores: _read(
            scores[name], "semantic_only_recall_at_p90"
        )
    if "values" in first:
        cells[f"{name}: values"] = lambda scores: _read(scores[name], "values", "f1")
    if "partners" in first:
        cells[f"{name}: partner first"] = lambda scores: _first(scores[name])
    return cells


def _first(scores: Mapping[str, Any] | None) -> str | None:
    return scores and f"{scores['partners']['first']} of {scores['partners']['asked']}"


def _read(scores: Mapping[str, Any] | None, *path: str) -> Any:
    for name in path:
        scores = scores and scores.get(name)
    return scores


def _of_set(name: str, results: Results) -> str:
    if name not in results:
        return NOT_MEASURED
    result = results[name]
    counted = ", ".join(
        f"{value:,} {key.replace('_', ' ')}"
        for key, value in result.items()
        if isinstance(value, int)
    )
    models = sorted(
        {
            scores["model"]
            for method, scores in result["methods"].items()
            if "model" in scores and method != SENTENCE
        }
    )
    dates = sorted({scores["measured"] for scores in result["methods"].values()})
    measured = f"Measured {' to '.join(dict.fromkeys((dates[0], dates[-1])))}: {counted}."
    plural = "s" * (len(models) > 1)
    model = f" Model{plural} of the index: {'; '.join(models)}." if models else ""
    if SENTENCE in result["methods"]:
        model += f" Sentence model: {result['methods'][SENTENCE]['model']}."
    return f"{measured}{model}\n\n{tables_of(result)}"


def _short(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")
