"""The measured parts of the documentation, written from the results that are kept."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks import report
from benchmarks.origin import ROOT
from benchmarks.transform import tables
from pexeso.errors import InputError

PAGE = ROOT / "docs" / "explanation" / "benchmarks.md"

PARTS: dict[str, tuple[str, Callable[[Mapping[str, Any]], str]]] = {
    "means": ("cases", tables.means_table),
    "entities": ("cases", tables.entities_table),
    "unsolved": ("cases", tables.unsolved_table),
    "tasks": ("restraint", tables.tasks_means_table),
    "draws": ("restraint", tables.draws_table),
    "programs": ("restraint", tables.programs_table),
    "planted": ("planted", tables.planted_page_table),
    "apply": ("apply", tables.apply_page_table),
}
"""By name on the page: the result, and what shows it."""

NOT_MEASURED = "Not measured yet."

_PART = re.compile(r"(<!-- transform: ([^\n]*?) -->\n).*?(<!-- end -->)", re.DOTALL)


def kept_results() -> dict[str, dict[str, Any] | None]:
    """Return the results that are kept, by part of the benchmark."""
    names = dict.fromkeys(part for part, _ in PARTS.values())
    folder = report.RESULTS / "transform"
    return {name: report.read_result(folder / f"{name}.json") for name in names}


def rendered(text: str, results: Mapping[str, Mapping[str, Any] | None]) -> str:
    """Return the text of the page with its measured parts as the results have them.

    Parameters
    ----------
    text : str
    results : mapping
        See `kept_results`.

    Raises
    ------
    InputError
        The page has a part that there is not.
    """

    def part(match: re.Match[str]) -> str:
        if match[2] not in PARTS:
            raise InputError(
                f"The page has a part {match[2]!r}. It must be one of {', '.join(PARTS)}."
            )
        name, shown = PARTS[match[2]]
        result = results.get(name)
        return f"{match[1]}\n{NOT_MEASURED if result is None else shown(result)}\n\n{match[3]}"

    return _PART.sub(part, text)


def write_page() -> None:
    """Write the measured parts of the page anew."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(rendered(text, kept_results()), encoding="utf-8")
