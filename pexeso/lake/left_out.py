"""What an index is without, and what was repaired, counted by reason with examples.

A reason is written as ``GROUP[: DETAIL][; WAY OUT]``, after the name of the table where it is a
sentence: ``a.csv is empty: it has no header row.`` is of the group ``empty``. What a library says
of a file, and names, are in the detail or in parentheses, so that what comes before is the same for
all that was left out alike, but for numbers. A test reads the sources for reasons that are written
otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pexeso.lake.catalog import COLUMNS, TABLES, Catalog
from pexeso.runtime.formatting import plain

# What is listed next to `TABLES` and `COLUMNS`: notes about tables that were repaired.
NOTES = "notes"

# Examples of a group.
MAX_EXAMPLES = 3

# Reads rows of one file of a catalog: ``table, column, reason``; tables have no `column`.
Piece = Callable[[], pa.Table]

_NOUNS = {TABLES: "file", COLUMNS: "column"}
_NOTED = ("table", "notes")
# Rows of a piece that are looked at for examples of different tables.
_EXAMPLE_ROWS = 64
_MAX_NAME = 60

_VERBS = "is|was|has|had|holds|cannot|could|does|comes|unpacks|ends|takes|needs|must|lacks"
_AFTER_A_NAME = re.compile(rf" (?=(?:{_VERBS}) )")
_PARTS = re.compile(r"(?<=.)[/#]")
_QUOTED_NAME = re.compile(rf"""(["']).*?\1 (?=(?:{_VERBS}) )""", re.DOTALL)
_COLUMN_NAME = re.compile(r"column .+? \(#[0-9,]+\) (?=is )", re.DOTALL)
_SUBJECT = re.compile(r"(?:it )?(?:is )?")
_END = re.compile(
    r": |; |\. "  # the detail, the way out, a further sentence
    r"| \((?![a-z_]+\)|#)"  # words of a library; options such as (min_rows) belong to the group
)
# Its details are groups of their own: they are of our own words, and few.
_WITH_DETAIL = "not a table: "
_NUMBER = re.compile(r"(?<![\w#.-])([0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)(?!\w)")
_SINGULAR = re.compile(r"^ (distinct value|row|column|line|cell|byte|value|table|member)\b")


class Template(NamedTuple):
    """A text, and the range of each number in it."""

    words: tuple[str, ...]
    lows: tuple[str, ...]
    highs: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Template:
        words = _NUMBER.split(text)
        numbers = tuple(words[1::2])
        return cls(tuple(words[::2]), numbers, numbers)

    @property
    def key(self) -> tuple[str, ...]:
        return (self.words[0], *map(_plural, self.words[1:]))

    def widened(self, other: Template) -> Template:
        """Return the text with ranges that hold the numbers of another one of the same key."""
        lows = (min(pair, key=_number) for pair in zip(self.lows, other.lows, strict=True))
        highs = (max(pair, key=_number) for pair in zip(self.highs, other.highs, strict=True))
        return Template(self.words, tuple(lows), tuple(highs))

    def written(self) -> str:
        parts = [self.words[0]]
        for low, high, after in zip(self.lows, self.highs, self.words[1:], strict=True):
            parts += (low, after) if low == high else (f"{low} to {high}", _plural(after))
        return "".join(parts)


class GroupedReason(NamedTuple):
    head: Template
    whole: Template

    @property
    def key(self) -> tuple[str, ...]:
        return self.head.key


def grouped(reason: str, table: str = "") -> GroupedReason:
    text = _SUBJECT.sub("", _without_name(reason, table), count=1).rstrip(".")
    end = _END.search(text, len(_WITH_DETAIL) if text.startswith(_WITH_DETAIL) else 0)
    whole = Template.of(text)
    return GroupedReason(Template.of(text[: end.start()]) if end else whole, whole)


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _plural(after_a_number: str) -> str:
    return _SINGULAR.sub(r" \1s", after_a_number)


def _without_name(reason: str, table: str) -> str:
    """Take the name off that a sentence begins with: of the table, or of the file that holds it."""
    ends = (part.start() for part in _PARTS.finditer(table))
    for end in chain((len(table),), ends):
        if reason.startswith(table[:end]) and (after := _AFTER_A_NAME.match(reason, end)):
            return reason[after.end() :]
    if match := _QUOTED_NAME.match(reason):
        return reason[match.end() :]
    if match := _COLUMN_NAME.match(reason):
        return f"a column {reason[match.end() :]}"
    return reason


@dataclass(frozen=True)
class ReasonGroup:
    """Tables or columns that were left out for one reason, or tables that have one note."""

    kind: str  # ``tables`` or ``columns``
    reason: str  # What is the same for all of them; a number that differs is a range.
    count: int
    # The first names, at most `MAX_EXAMPLES`, of different tables where there are several.
    examples: tuple[str, ...]
    # The whole reason, without names, where all of them have the same but for numbers.
    detail: str | None = None

    def counted(self, noun: str | None = None) -> str:
        return f"{self.count:,} {noun or _NOUNS[self.kind]}{'s' * (self.count != 1)}"

    def named(self) -> str:
        names = [plain(name, _MAX_NAME) for name in self.examples]
        return ", ".join((*names, *(["..."] if self.count > len(names) else [])))

    def to_dict(self) -> dict[str, Any]:
        return {"reason": self.reason, self.kind: self.count, "examples": list(self.examples)}


# A group, its key, and what reads the rows among which its own are.
Counted = tuple[ReasonGroup, tuple[str, ...], Sequence[Piece]]


def left_out(catalog: Catalog) -> tuple[ReasonGroup, ...]:
    """Count what an index is without: groups of tables, then of columns, each the largest first.

    Reads a file of the catalog at a time; memory grows with the rows left out in one of them.
    """
    return (*groups_of(catalog, TABLES), *groups_of(catalog, COLUMNS))


def groups_of(catalog: Catalog, listed: str) -> tuple[ReasonGroup, ...]:
    return tuple(group for group, _, _ in counted(catalog, listed))


def groups_in(folder: Path) -> tuple[ReasonGroup, ...]:
    """Count the files that a listing leaves out: a folder of Parquet, ``table, reason``."""

    def read() -> pa.Table:
        return pq.read_table(folder, columns=["table", "reason"]).sort_by("table")

    return tuple(group for group, _, _ in _count([partial(_with_column, read)], TABLES))


def in_words(groups: Sequence[ReasonGroup], limit: int = 4) -> str:
    """Write the first groups one after another, for an error."""
    descriptions = [
        f"{plain(group.reason)} ({group.counted()}: {group.named()})" for group in groups[:limit]
    ]
    n_more = len(groups) - len(descriptions)
    rest = [f"and {n_more:,} more reason{'s' * (n_more > 1)}"] if n_more else []
    return "; ".join((*descriptions, *rest)) or "nothing"


def count_repaired(catalog: Catalog) -> int:
    return sum(len(_noted(read)) for read in catalog.pieces(TABLES, _NOTED))


def counted(catalog: Catalog, listed: str) -> list[Counted]:
    if listed == NOTES:
        pieces = (partial(_notes, read) for read in catalog.pieces(TABLES, _NOTED))
        return _count(pieces, TABLES)
    names = ("table", "label", "reason") if listed == COLUMNS else ("table", "reason")
    reads = catalog.pieces(listed, names, pc.field("reason").is_valid())
    return _count((partial(_with_column, read) for read in reads), listed)


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


@dataclass
class _Growing:
    head: Template
    whole: Template | None
    count: int = 0
    examples: dict[str, str] = field(default_factory=dict)
    spare: list[str] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)

    def add(self, other: GroupedReason, count: int) -> None:
        self.count += count
        self.head = self.head.widened(other.head)
        is_alike = self.whole is not None and self.whole.key == other.whole.key
        self.whole = self.whole.widened(other.whole) if is_alike else None

    def show(self, rows: pa.Table) -> None:
        has_columns = rows["column"].null_count < rows.num_rows
        for row in rows.to_pylist():
            table, column = row["table"], row["column"]
            name = f"{table}:{'?' if column is None else column}" if has_columns else table
            if table not in self.examples and len(self.examples) < MAX_EXAMPLES:
                self.examples[table] = name
            elif len(self.spare) < MAX_EXAMPLES:
                self.spare.append(name)

    def group(self, kind: str) -> ReasonGroup:
        examples = [*self.examples.values(), *self.spare][:MAX_EXAMPLES]
        detail = None if self.whole is None else self.whole.written()
        return ReasonGroup(kind, self.head.written(), self.count, tuple(examples), detail)


def _count(pieces: Iterable[Piece], kind: str) -> list[Counted]:
    growing_groups: dict[tuple[str, ...], _Growing] = {}
    for piece in pieces:
        rows = piece()
        if not rows.num_rows:
            continue
        reasons, codes = keyed(rows)
        counts = np.bincount(codes, minlength=len(reasons)).tolist()
        codes_by_key: dict[tuple[str, ...], list[int]] = {}
        for code, (reason, count) in enumerate(zip(reasons, counts, strict=True)):
            growing = growing_groups.setdefault(reason.key, _Growing(*reason))
            growing.add(reason, count)
            codes_by_key.setdefault(reason.key, []).append(code)
        for key, group_codes in codes_by_key.items():
            growing = growing_groups[key]
            growing.pieces.append(piece)
            if len(growing.examples) < MAX_EXAMPLES:
                first = np.flatnonzero(np.isin(codes, group_codes))[:_EXAMPLE_ROWS]
                growing.show(rows.take(pa.array(first)))
    groups = [(growing.group(kind), key, growing.pieces) for key, growing in growing_groups.items()]
    return sorted(groups, key=lambda group: (-group[0].count, group[0].reason))


def _notes(read: Piece) -> pa.Table:
    noted = _noted(read).combine_chunks()
    table = noted["table"].take(pc.list_parent_indices(noted["notes"]))
    reasons = pc.list_flatten(noted["notes"])
    return _with_column(lambda: pa.table({"table": table, "reason": reasons}))


def _noted(read: Piece) -> pa.Table:
    rows = read()
    return rows.filter(pc.greater(pc.fill_null(pc.list_value_length(rows["notes"]), 0), 0))


def _with_column(read: Piece) -> pa.Table:
    rows = read()
    column = rows["label"] if "label" in rows.column_names else pa.nulls(len(rows), pa.string())
    return pa.table({"table": rows["table"], "column": column, "reason": rows["reason"]})
