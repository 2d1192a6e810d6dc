"""The shared cases: two tables, the columns of the key, and the pairs of values that are true.

A case is a folder with ``source.csv``, ``target.csv``, ``ground_truth.csv`` and ``case.json``. Its
key columns are names, or ``column 2: Team`` for the column at position 2. Values are compared as
pexeso compares them: composed, without spaces around them.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.datasets.tables import unpacked
from pexeso.errors import InputError
from pexeso.lake.columns import find_column, label_columns
from pexeso.lake.containers.reader import read_table
from pexeso.transform.texts import cleaned

TWO_TABLES = "two web tables"
"""The kind of cases whose tables are about the same entities, some of which no rule derives."""

_POSITION = re.compile(r"column (\d+):")

Key = tuple[str | None, ...]
"""The cleaned values of a source key, of one column or several."""


@dataclass(frozen=True)
class Case:
    """Two tables and what of them joins."""

    name: str
    kind: str
    relations: dict[str, int]
    folder: Path
    source_columns: tuple[str, ...]
    target_column: str
    truth: frozenset[tuple[Key, str]]

    @property
    def by_rule(self) -> bool:
        """Whether its relation is a rule of strings."""
        return self.kind != TWO_TABLES

    @property
    def source(self) -> Path:
        return self.folder / "source.csv"

    @property
    def target(self) -> Path:
        return self.folder / "target.csv"

    @cached_property
    def source_keys(self) -> list[Key]:
        """Distinct keys of the source that have a value, in the order of their first row."""
        columns = _cells(self.source, self.source_columns)
        keys = dict.fromkeys(zip(*columns, strict=True))
        return [key for key in keys if any(key)]

    @cached_property
    def source_texts(self) -> list[str]:
        """The same as text: a key of several columns with spaces between their values."""
        return [" ".join(filter(None, key)) for key in self.source_keys]

    @cached_property
    def target_values(self) -> list[str]:
        """Distinct values of the target's key, in the order of their first row."""
        [values] = _cells(self.target, (self.target_column,))
        return [value for value in dict.fromkeys(values) if value is not None]

    def places(self) -> tuple[list[int], int]:
        """Return the positions of the key columns of the source, and of that of the target."""
        source = label_columns(read_table(str(self.source)).names)
        target = label_columns(read_table(str(self.target)).names)
        return (
            [find_column(source, spec) for spec in self.source_columns],
            find_column(target, self.target_column),
        )


def cleaned_values(cells: Any) -> list[str | None]:
    """Return cells as texts are compared; what is empty is None."""
    texts = cells if isinstance(cells, pa.Array | pa.ChunkedArray) else pa.array(cells, pa.string())
    return cleaned(texts).to_pylist()


def _cells(path: Path, specs: Sequence[str]) -> list[list[str | None]]:
    table = read_table(str(path))
    names = label_columns(table.names)
    return [cleaned_values(table.columns[find_column(names, spec)]) for spec in specs]


def read_case(folder: Path) -> Case:
    facts = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    source = facts["source_key"] if isinstance(facts["source_key"], list) else [facts["source_key"]]
    with (folder / "ground_truth.csv").open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    columns = [cleaned_values(list(column)) for column in zip(*rows, strict=True)]
    truth = frozenset(
        (tuple(key), value) for *key, value in zip(*columns, strict=True) if value is not None
    )
    if not truth:
        raise InputError(f"The case {folder.name} has no true pair in ground_truth.csv.")
    return Case(
        folder.name,
        facts["kind"],
        facts["relations"],
        folder,
        tuple(map(spec_of, source)),
        spec_of(facts["target_key"]),
        truth,
    )


def spec_of(key: str) -> str:
    """Return how pexeso names a key column of a case."""
    match = _POSITION.match(key)
    return f"#{match[1]}" if match else key


@contextmanager
def shared_cases() -> Iterator[list[Case]]:
    """Yield the shared cases, by name, for as long as the block lasts."""
    with unpacked("transform", "cases") as folder:
        yield [read_case(path.parent) for path in sorted(folder.glob("*/case.json"))]
