"""What an index is without, and what was repaired, counted by reason with examples."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
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

# The groups that reasons and notes fall into.
#
# A reason is written as ``GROUP[: DETAIL][; WAY OUT]``, after the name of the table where it is a
# sentence: ``a.csv is empty: it has no header row.`` is of the group ``empty``. What a library
# says of a file, and names, stand in the detail or in parentheses, so that what stands before is
# the same for all that was left out alike, but for numbers. A test reads the sources for reasons
# that are written otherwise.

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
_WITH_DETAIL = ("not a table",)
"""Groups whose details are groups of their own: they are of our own words, and few."""

_NUMBER = re.compile(r"(?<![\w#.-])([0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)(?!\w)")
_SINGULAR = re.compile(r"^ (distinct value|row|column|line|cell|byte|value|table|member)\b")


class Template(NamedTuple):
    """A text, and where numbers stand in it."""

    words: tuple[str, ...]
    numbers: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Template:
        """Find the numbers of a text."""
        parts = _NUMBER.split(text)
        return cls(tuple(parts[::2]), tuple(parts[1::2]))

    @property
    def key(self) -> tuple[str, ...]:
        """The same for all texts that differ in numbers alone."""
        return (self.words[0], *map(_plural, self.words[1:]))

    def written(self, lows: Sequence[str] | None = None, highs: Sequence[str] | None = None) -> str:
        """Write the text, with ranges in the place of its numbers where they are given.

        Examples
        --------
        >>> Template.of("3 rows, at least 5 needed").written(("0", "5"), ("4", "5"))
        '0 to 4 rows, at least 5 needed'
        """
        parts = [self.words[0]]
        for low, high, after in zip(
            lows or self.numbers, highs or self.numbers, self.words[1:], strict=True
        ):
            parts += (low, after) if low == high else (f"{low} to {high}", _plural(after))
        return "".join(parts)


class GroupedReason(NamedTuple):
    """A reason, or a note, and the group that it falls into."""

    text: str
    head: Template
    whole: Template
    key: tuple[str, ...]


def grouped(reason: str, table: str = "") -> GroupedReason:
    """Return a reason with the group that it falls into.

    Examples
    --------
    >>> grouped("a.csv is empty: it has no header row.", "a.csv").head.written()
    'empty'
    >>> few, fewer = (grouped(f"{n}, at least 5 needed (min_rows)") for n in ("4 rows", "1 row"))
    >>> few.head.written(), few.key == fewer.key
    ('4 rows, at least 5 needed (min_rows)', True)
    """
    text = _SUBJECT.sub("", _without_name(reason, table), count=1).rstrip(".")
    start = 0
    for group in _WITH_DETAIL:
        if text.startswith(f"{group}: "):
            start = len(group) + 2
    end = _END.search(text, start)
    whole = Template.of(text)
    head = Template.of(text[: end.start()]) if end else whole
    return GroupedReason(text, head, whole, head.key)


def number_of(text: str) -> float:
    """Return the number that a reason holds as text.

    Examples
    --------
    >>> number_of("1,200")
    1200.0
    """
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
    kind : str
        ``tables`` or ``columns``.
    reason : str
        What is the same for all of them; a number that differs is a range.
    count : int
    examples : tuple of str
        The first names, at most `MAX_EXAMPLES`, of different tables where there are several.
    detail : str or None
        The whole reason, without names, where all of them have the same but for numbers.
    """

    kind: str
    reason: str
    count: int
    examples: tuple[str, ...]
    detail: str | None = None

    def counted(self, noun: str | None = None) -> str:
        """Write how many they are, such as ``2 files``.

        Parameters
        ----------
        noun : str, optional
            By default ``file`` or ``column``.
        """
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

    Parameters
    ----------
    catalog : Catalog

    Returns
    -------
    tuple of ReasonGroup
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
    """Count what is listed by reason.

    Returns
    -------
    list of (ReasonGroup, tuple of str, sequence of callable)
        Each group, the largest first, with its key (see `GroupedReason`), and what reads the rows
        among which its own are.
    """
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
