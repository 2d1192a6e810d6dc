"""What an index is without, and what was repaired, counted by reason with examples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pexeso.lake.catalog import COLUMNS, TABLES, Catalog
from pexeso.lake.left_out.reasons import GroupedReason, Template, grouped, number_of
from pexeso.runtime.formatting import plain

MAX_EXAMPLES = 3
"""Examples of a group."""

_LOOKED_AT = 64
"""Rows of a piece that are looked at for examples of different tables."""

_MAX_NAME = 60
"""Characters of an example."""

NOTES = "notes"
"""What is listed beside `TABLES` and `COLUMNS`: notes about tables that were repaired."""

Piece = Callable[[], pa.Table]
"""Reads rows of one file of a catalog: ``table, column, reason``; tables have no `column`."""

_NOUNS = {TABLES: "file", COLUMNS: "column"}


@dataclass(frozen=True)
class ReasonGroup:
    """Tables or columns that were left out for one reason, or tables that have one note.

    Attributes
    ----------
    examples : tuple of str
        The first names, at most `MAX_EXAMPLES`, of different tables where there are several.
    """

    kind: str
    reason: str
    count: int
    examples: tuple[str, ...]
    detail: str | None = None

    def counted(self, noun: str | None = None) -> str:
        """Write how many they are, such as ``2 files``."""
        return f"{self.count:,} {noun or _NOUNS[self.kind]}{'s' * (self.count != 1)}"

    def named(self) -> str:
        """Write the examples, and dots where there are more, safe to be shown."""
        names = [plain(name, _MAX_NAME) for name in self.examples]
        return ", ".join((*names, *(["..."] if self.count > len(names) else [])))

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form: ``reason``, ``tables`` or ``columns``, and ``examples``."""
        return {"reason": self.reason, self.kind: self.count, "examples": list(self.examples)}


Counted = tuple[ReasonGroup, tuple[str, ...], Sequence[Piece]]
"""A group, its key, and what reads the rows among which its own are."""


def left_out(catalog: Catalog) -> tuple[ReasonGroup, ...]:
    """Count what an index is without: groups of tables, then of columns, each the largest first.

    Reads a file of the catalog at a time; memory grows with the rows left out in one of them.
    """
    return (*groups_of(catalog, TABLES), *groups_of(catalog, COLUMNS))


def groups_of(catalog: Catalog, listed: str) -> tuple[ReasonGroup, ...]:
    """Count tables left out, columns left out, or notes, by reason, the largest group first."""
    return tuple(group for group, _, _ in counted(catalog, listed))


def groups_in(folder: Path) -> tuple[ReasonGroup, ...]:
    """Count the files that a listing leaves out: a folder of Parquet, ``table, reason``."""

    def read() -> pa.Table:
        return _with_column(pq.read_table(folder, columns=["table", "reason"]).sort_by("table"))

    return tuple(group for group, _, _ in _count([read], TABLES))


def in_words(groups: Sequence[ReasonGroup], limit: int = 4) -> str:
    """Write the first groups one after another, for an error.

    Examples
    --------
    >>> in_words([ReasonGroup("columns", "numbers", 5, ("a.csv:x", "a.csv:y", "b.csv:z"))])
    'numbers (5 columns: a.csv:x, a.csv:y, b.csv:z, ...)'
    """
    descriptions = [
        f"{plain(group.reason)} ({group.counted()}: {group.named()})" for group in groups[:limit]
    ]
    n_more = len(groups) - len(descriptions)
    rest = [f"and {n_more:,} more reason{'s' * (n_more > 1)}"] if n_more else []
    return "; ".join((*descriptions, *rest)) or "nothing"


def count_repaired(catalog: Catalog) -> int:
    """Count the tables with notes about what was repaired, or guessed, while they were read."""
    return sum(len(_noted(read())) for read in catalog.pieces(TABLES, _NOTED))


def counted(catalog: Catalog, listed: str) -> list[Counted]:
    """Count what is listed by reason."""
    return _count(_pieces(catalog, listed), COLUMNS if listed == COLUMNS else TABLES)


def _count(pieces: Iterable[Piece], kind: str) -> list[Counted]:
    growing_groups: dict[tuple[str, ...], _Growing] = {}
    for piece in pieces:
        _count_piece(piece, growing_groups)
    groups = [(growing.group(kind), key, growing.pieces) for key, growing in growing_groups.items()]
    return sorted(groups, key=lambda group: (-group[0].count, group[0].reason))


def keyed(rows: pa.Table) -> tuple[list[GroupedReason], np.ndarray]:
    """Return the different reasons of rows, each with its group, and which of them each row has.

    A row's own table is that of the first row with its reason: a reason that holds the name of a
    table is of that one alone. So the Python loop goes over different reasons, which are few, but
    for one of each file that cannot be read.
    """
    reasons = rows["reason"].dictionary_encode().combine_chunks()
    codes = reasons.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    _, first = np.unique(codes, return_index=True)
    tables = rows["table"].take(pa.array(first)).to_pylist()
    texts = reasons.dictionary.to_pylist()
    return [grouped(text, table) for text, table in zip(texts, tables, strict=True)], codes


def names_of(rows: pa.Table) -> pa.ChunkedArray:
    """Return the names of what rows are of: ``table``, or ``table:column``."""
    if rows["column"].null_count == rows.num_rows:
        return rows["table"]
    return pc.binary_join_element_wise(
        rows["table"], rows["column"], ":", null_handling="replace", null_replacement="?"
    )


@dataclass
class _Ranges:
    """The ranges of the numbers of texts that differ in numbers alone."""

    template: Template
    lows: tuple[str, ...]
    highs: tuple[str, ...]

    @classmethod
    def of(cls, template: Template) -> _Ranges:
        return cls(template, template.numbers, template.numbers)

    def widen(self, other: Template) -> None:
        if other.numbers != self.lows:
            self.lows = tuple(map(_lower, self.lows, other.numbers))
        if other.numbers != self.highs:
            self.highs = tuple(map(_higher, self.highs, other.numbers))

    def written(self) -> str:
        return self.template.written(self.lows, self.highs)


@dataclass
class _Growing:
    """A group while its rows are counted."""

    head: _Ranges
    whole: _Ranges | None
    count: int = 0
    examples: dict[str, str] = field(default_factory=dict)
    spare: list[str] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)

    def add(self, other: GroupedReason, count: int) -> None:
        self.count += count
        self.head.widen(other.head)
        if self.whole is not None and self.whole.template.key == other.whole.key:
            self.whole.widen(other.whole)
        else:
            self.whole = None

    def show(self, rows: pa.Table) -> None:
        """Take examples from the first rows of the group in a piece."""
        names = names_of(rows).to_pylist()
        for table, name in zip(rows["table"].to_pylist(), names, strict=True):
            if table not in self.examples and len(self.examples) < MAX_EXAMPLES:
                self.examples[table] = name
            elif len(self.spare) < MAX_EXAMPLES:
                self.spare.append(name)

    def group(self, kind: str) -> ReasonGroup:
        examples = [*self.examples.values(), *self.spare][:MAX_EXAMPLES]
        detail = None if self.whole is None else self.whole.written()
        return ReasonGroup(kind, self.head.written(), self.count, tuple(examples), detail)


def _count_piece(piece: Piece, growing_groups: dict[tuple[str, ...], _Growing]) -> None:
    rows = piece()
    if not rows.num_rows:
        return
    reasons, codes = keyed(rows)
    counts = np.bincount(codes, minlength=len(reasons)).tolist()
    codes_by_key: dict[tuple[str, ...], list[int]] = {}
    for code, (reason, count) in enumerate(zip(reasons, counts, strict=True)):
        growing = growing_groups.get(reason.key)
        if growing is None:
            growing = _Growing(_Ranges.of(reason.head), _Ranges.of(reason.whole))
            growing_groups[reason.key] = growing
        growing.add(reason, count)
        codes_by_key.setdefault(reason.key, []).append(code)
    for key, of_group in codes_by_key.items():
        growing = growing_groups[key]
        growing.pieces.append(piece)
        if len(growing.examples) < MAX_EXAMPLES:
            is_of_it = np.zeros(len(reasons), bool)
            is_of_it[of_group] = True
            first = np.flatnonzero(is_of_it[codes])[:_LOOKED_AT]
            growing.show(rows.take(pa.array(first)))


def _pieces(catalog: Catalog, listed: str) -> Iterator[Piece]:
    if listed == NOTES:
        for read in catalog.pieces(TABLES, _NOTED):
            yield partial(_converted, read, _notes)
        return
    names = ("table", "label", "reason") if listed == COLUMNS else ("table", "reason")
    is_left_out = pc.field("reason").is_valid()
    for read in catalog.pieces(listed, names, is_left_out):
        yield partial(_converted, read, _with_column)


def _converted(read: Piece, convert: Callable[[pa.Table], pa.Table]) -> pa.Table:
    return convert(read())


_NOTED = ("table", "notes")


def _notes(rows: pa.Table) -> pa.Table:
    """Return a row of each note of tables that were read."""
    noted = _noted(rows).combine_chunks()
    table = noted["table"].take(pc.list_parent_indices(noted["notes"]))
    return _with_column(pa.table({"table": table, "reason": pc.list_flatten(noted["notes"])}))


def _noted(rows: pa.Table) -> pa.Table:
    return rows.filter(pc.greater(pc.fill_null(pc.list_value_length(rows["notes"]), 0), 0))


def _with_column(rows: pa.Table) -> pa.Table:
    column = rows["label"] if "label" in rows.column_names else pa.nulls(len(rows), pa.string())
    return pa.table({"table": rows["table"], "column": column, "reason": rows["reason"]})


def _lower(one: str, other: str) -> str:
    return min(one, other, key=number_of)


def _higher(one: str, other: str) -> str:
    return max(one, other, key=number_of)
