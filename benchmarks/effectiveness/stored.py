"""Stored results: one JSON file per data set.

The page and its plots are written from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.effectiveness.methods import METHODS
from benchmarks.report import RESULTS as ALL_RESULTS
from benchmarks.report import read_result, write_result
from pexeso.errors import InputError

RESULTS = ALL_RESULTS / "effectiveness"

_NOT_COUNTS = ("data", "methods", "skipped", "origin")


def result_path(results: Path, data: str) -> Path:
    """Return the file of a data set.

    Examples
    --------
    >>> result_path(Path("r"), "autofj").as_posix()
    'r/autofj.json'
    """
    return results / f"{data}.json"


def stored_result(results: Path, data: str) -> dict[str, Any] | None:
    """Read the result of a data set; None where there is none."""
    return read_result(result_path(results, data))


def store(results: Path, result: Mapping[str, Any], *, some: bool) -> dict[str, Any]:
    """Write the result of a data set, whole or not at all, and return what stands in the file.

    Parameters
    ----------
    results : Path
    result : mapping
        See `benchmarks.effectiveness.measuring.measure`.
    some : bool
        Only some methods were measured: the others stay as they are stored.

    Raises
    ------
    InputError
        What is stored has another truth, so that its methods cannot stand beside the new ones.
    """
    before = stored_result(results, result["data"]) if some else None
    full_result = merged(before, result)
    return write_result(result_path(results, result["data"]), full_result, before=before)


def merged(before: Mapping[str, Any] | None, result: Mapping[str, Any]) -> dict[str, Any]:
    """Put the methods of a result in the place of those that were stored.

    Raises
    ------
    InputError
        See `store`.
    """
    if before is None:
        return dict(result)
    ours, stored_counts = (
        {name: value for name, value in record.items() if name not in _NOT_COUNTS}
        for record in (result, before)
    )
    if ours != stored_counts:
        raise InputError(
            f"The stored result of {result['data']} is about another truth: {stored_counts}, now "
            f"{ours}. Measure all methods, without --methods."
        )
    methods = {**before["methods"], **result["methods"]}
    skipped = {**before["skipped"], **result["skipped"]}
    return {
        **result,
        "methods": {name: methods[name] for name in METHODS if name in methods},
        "skipped": {name: why for name, why in skipped.items() if name not in methods},
    }
