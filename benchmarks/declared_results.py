"""Which results there are: the code each rests on, and the command that makes it again.

They are declared in ``results.yml``, one entry a benchmark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath
from typing import Any

import yaml

from pexeso.errors import InputError

FILE = Path(__file__).resolve().parent / "results.yml"

_KEYS = {"results", "code", "command", "minutes", "kept", "needs"}


@dataclass(frozen=True)
class DeclaredResult:
    """What makes one result, or all results of a pattern.

    Attributes
    ----------
    name : str
        Of the benchmark.
    patterns : tuple of str
        Of the files, below ``benchmarks/results``.
    code : tuple of str
        Files, folders and patterns below the root of the repository.
    commands : tuple of str
        In order. Where there are none, a result names its own command.
    minutes : float, optional
        About how long they take.
    kept : str, optional
        Why this result stays as it is and is never renewed.
    needs : str, optional
        What the commands need that is not in the repository.
    figures : tuple of str
        Patterns of the numbers that pages quote, as paths of keys; empty where all may be quoted.
    """

    name: str
    patterns: tuple[str, ...]
    code: tuple[str, ...]
    commands: tuple[str, ...] = ()
    minutes: float | None = None
    kept: str | None = None
    needs: str | None = None
    figures: tuple[str, ...] = ()

    def holds(self, path: PurePath) -> bool:
        """Return whether a result file is one of these.

        Examples
        --------
        >>> lake = DeclaredResult("lake", ("lake/*.json",), ("pexeso",))
        >>> lake.holds(PurePath("results/lake/small.json")), lake.holds(PurePath("other/a.json"))
        (True, False)
        """
        return any(path.match(pattern) for pattern in self.patterns)


def read_declared(file: Path = FILE) -> tuple[DeclaredResult, ...]:
    """Read what is declared, in order.

    Raises
    ------
    InputError
        An entry has no result or no code, or a key that there is not.
    """
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    return tuple(
        _declared(name, entry, run, document["code"])
        for name, entry in document["benchmarks"].items()
        for run in entry["runs"]
    )


@cache
def known_results() -> tuple[DeclaredResult, ...]:
    """Return what is declared in ``results.yml``."""
    return read_declared()


def declared_of(
    path: PurePath, declared: tuple[DeclaredResult, ...] | None = None
) -> DeclaredResult | None:
    """Return what is declared of a result file, the first that holds it; None where nothing is.

    Examples
    --------
    >>> declared_of(PurePath("benchmarks/results/reading.json")).name
    'reading'
    """
    entries = known_results() if declared is None else declared
    return next((entry for entry in entries if entry.holds(path)), None)


def _declared(
    name: str, entry: Mapping[str, Any], run: Mapping[str, Any], sets: Mapping[str, list[str]]
) -> DeclaredResult:
    if unknown := sorted(run.keys() - _KEYS):
        raise InputError(
            f"{FILE.name}: {name} has the key {unknown[0]!r}. There are {', '.join(sorted(_KEYS))}."
        )
    code = [
        path
        for source in _listed(run.get("code", entry.get("code")))
        for path in sets.get(source, [source])
    ]
    patterns = _listed(run.get("results"))
    if not patterns or not code:
        raise InputError(f"{FILE.name}: {name} needs both results and code in each of its runs.")
    return DeclaredResult(
        name,
        tuple(patterns),
        tuple(code),
        tuple(_listed(run.get("command"))),
        run.get("minutes"),
        run.get("kept"),
        run.get("needs"),
        tuple(entry.get("figures", ())),
    )


def _listed(texts: str | list[str] | None) -> list[str]:
    """Return a list, also of what is told alone."""
    return [] if texts is None else [texts] if isinstance(texts, str) else texts
