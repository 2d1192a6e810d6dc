"""What is in an index, what was left out and why, and whether it is whole.

Checksums find damage. They are no signature: an index that was written wrong, or made to do harm,
has right ones too. So a check looks at the contents of each part as well.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from pexeso.build.parts.base import OfParts
from pexeso.build.parts.metadata import require_contents
from pexeso.build.report import REPORT_FILE, BuildReport
from pexeso.errors import InputError
from pexeso.lake.catalog import COLUMNS, TABLES, Catalog
from pexeso.lake.frames.tables import Tabular
from pexeso.lake.left_out import NOTES, ReasonGroup, count_repaired, counted, keyed, left_out
from pexeso.registry import choices, registered
from pexeso.runtime.formatting import many
from pexeso.runtime.progress import counted_bar, with_bar
from pexeso.store.integrity import Problem, check_store
from pexeso.store.io.location import Location, locate
from pexeso.store.local.reader import Store
from pexeso.store.opening import open_store_anywhere, require_everything_seen, require_openable

# Rows that are turned into Python objects together.
_ROWS = 1 << 14


class ReasonRow(NamedTuple):
    """A table or column that was left out, or a note about a table."""

    group: ReasonGroup
    table: str
    column: str | None  # None for a table
    reason: str

    @property
    def name(self) -> str:
        """The table's name, or ``table:column``."""
        return self.table if self.column is None else f"{self.table}:{self.column}"

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form: ``table``, ``column``, ``group`` and ``reason``."""
        return {
            "table": self.table,
            "column": self.column,
            "group": self.group.reason,
            "reason": self.reason,
        }


class ReasonListing(Tabular):
    """All that an index is without, or all notes about what was repaired, by reason.

    Iterates over `ReasonRow`, those of a group together, in the order of `groups` and within a
    group in that of the catalog. The catalog is read a file at a time, once for each group that has
    rows in it, so memory grows with the rows left out in one file, however many there are in all.

    Attributes
    ----------
    groups : tuple of ReasonGroup
        Of tables, then of columns, each the largest first.
    """

    def __init__(self, catalog: Catalog, *, notes: bool = False) -> None:
        listed = [NOTES] if notes else [TABLES, COLUMNS]
        self._catalog = catalog
        self._counted = [group for kind in listed for group in counted(catalog, kind)]
        self.groups: tuple[ReasonGroup, ...] = tuple(group for group, _, _ in self._counted)
        self.is_of_notes = notes

    fields = ("table", "column", "group", "reason")

    def rows(self) -> list[dict[str, Any]]:
        """Return the values of `fields` for each table, column or note."""
        return [row.to_dict() for row in self]

    def _field_types(self) -> dict[str, pa.DataType]:
        return dict.fromkeys(self.fields, pa.string())

    def _summary(self) -> str:
        return f"{len(self):,} in {many(len(self.groups), 'group')}"

    def _shown(self) -> tuple[list[str], list[list[Any]]]:
        rows = [[group.kind, group.reason, group.count, group.examples] for group in self.groups]
        return ["kind", "reason", "count", "examples"], rows

    def __len__(self) -> int:
        return sum(group.count for group in self.groups)

    def __iter__(self) -> Iterator[ReasonRow]:
        for group, key, pieces in self._counted:
            for piece in pieces:
                yield from _rows_of(piece(), group, key)

    def count_repaired(self) -> int:
        """Count the tables that were repaired, or read by a guess; reads the catalog once more."""
        return count_repaired(self._catalog)

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form: ``groups``, and ``rows``, a dictionary each."""
        return {"groups": [group.to_dict() for group in self.groups], "rows": self.rows()}


def _rows_of(rows: pa.Table, group: ReasonGroup, key: tuple[str, ...]) -> Iterator[ReasonRow]:
    reasons, codes = keyed(rows)
    is_of_it = np.array([reason.key == key for reason in reasons], bool)
    positions = np.flatnonzero(is_of_it[codes])
    for start in range(0, len(positions), _ROWS):
        chosen = positions[start : start + _ROWS]
        batch = rows.take(pa.array(chosen))
        for code, table, column in zip(
            codes[chosen].tolist(),
            batch["table"].to_pylist(),
            batch["column"].to_pylist(),
            strict=True,
        ):
            yield ReasonRow(group, table, column, reasons[code].whole.written())


@dataclass(frozen=True, repr=False)
class IndexInfo(OfParts):
    """A summary of an index.

    Attributes
    ----------
    path, lake, written_by, created : str
    files : int
        Files found under the lake.
    tables : int
        Files read as tables.
    columns : int
        Columns of these tables.
    columns_indexed : int
        Columns that can be found.
    aliases : int
        Values that are read as other names.
    parts : list of str
        What the index has besides the semantic search; see `pexeso.registry.choices`.
    bytes : int
        Of all files.
    left_out : tuple of ReasonGroup
        How many tables, and then how many columns, are left out for which reason, with examples;
        each the largest group first.
    repaired : int
        Tables that were repaired while they were read, or read by a guess: those with notes.
    of_parts : dict
        `as_of` of an index that has one, ``hashed`` of one of hashed values, and
        what each part says of itself: see `pexeso.semantic.part.info.info` and
        `pexeso.build.parts.base.ShardedPart.info`.
    """

    path: str
    lake: str
    written_by: str
    created: str
    files: int
    tables: int
    columns: int
    columns_indexed: int
    aliases: int
    parts: list[str]
    bytes: int
    left_out: tuple[ReasonGroup, ...]
    repaired: int

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form."""
        return {**super().to_dict(), "left_out": [group.to_dict() for group in self.left_out]}


def index_info(store: Store) -> IndexInfo:
    """Summarise an open index; reads the catalog and a small document of each partition."""
    manifest = store.manifest
    require_contents(manifest)
    catalog = Catalog(store.catalog_files)
    tables, columns = catalog.tables(["reason"]), catalog.columns(["reason"])
    return IndexInfo(
        path=str(store.path),
        lake=manifest.facts["lake"],
        written_by=manifest.written_by,
        created=manifest.created,
        files=tables.num_rows,
        tables=tables["reason"].null_count,
        columns=columns.num_rows,
        columns_indexed=columns["reason"].null_count,
        aliases=manifest.facts.get("aliases", 0),
        parts=[word for word in choices() if word in manifest.options.get("parts", [])],
        bytes=manifest.n_bytes,
        left_out=left_out(catalog),
        repaired=count_repaired(catalog),
        of_parts={
            **({"as_of": manifest.options["as_of"]} if "as_of" in manifest.options else {}),
            **({"hashed": True} if "key" in manifest.facts else {}),
            **{name: value for part in registered() for name, value in part.info(store).items()},
        },
    )


def list_reasons(store: Store, *, notes: bool = False) -> ReasonListing:
    """List all that an index is without, or all notes about what was repaired while reading."""
    require_contents(store.manifest)
    return ReasonListing(Catalog(store.catalog_files), notes=notes)


def last_report(store: Store) -> BuildReport:
    for folder in reversed(store.manifest.catalogs):
        if folder.file(REPORT_FILE) is not None:
            return BuildReport.from_dict(store.catalog_document(folder, REPORT_FILE))
    raise InputError(
        f"The index '{store.path}' holds no report of how it was built. Build it again to have one."
    )


Progress = Callable[[int, int], None]


@with_bar(partial(counted_bar, "checking", unit="B", unit_scale=True))
def check_index(
    path: str | os.PathLike[str] | Location, progress: Progress | None = None
) -> list[Problem]:
    """Check every byte of an index against its checksum, then the contents of each part.

    The index is read twice. Contents are checked against what a search takes for granted.

    Returns
    -------
    list of Problem
        As `pexeso.store.integrity.check_store` gives them; then, where every byte is as it was
        written, those of kind ``content`` and ``version``. Where none is a failure, the index is
        whole.
    """
    require_everything_seen("Checking an index")
    location = locate(path)
    if isinstance(location, Path):
        require_openable(location)
    report = progress or (lambda done, total: None)
    problems = check_store(location, lambda done, total: report(done, 2 * total))
    if any(problem.is_failure for problem in problems):
        return problems
    store = open_store_anywhere(location)
    total, parts = store.manifest.n_bytes, store.manifest.parts
    sizes = {name: sum(entry.n_bytes for entry in entries) for name, entries in parts.items()}
    n_checked, n_bytes = 0, max(1, sum(sizes.values()))

    def report_part(done: int, _: int) -> None:
        report(total + total * (n_checked + done) // n_bytes, 2 * total)

    part_problems = []
    for part in registered():
        part_problems += part.check(store, report_part)
        n_checked += sizes.get(part.name, 0)
        report_part(0, n_bytes)  # a part need not report how far it is
    # What all models of an index rest on is a problem of each.
    return [*dict.fromkeys(part_problems), *problems]
