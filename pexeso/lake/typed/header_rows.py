"""Where in a grid of cells a table stands: its header, its rows, and what is written around it."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from pexeso.lake.cells.missing import is_missing_word
from pexeso.lake.readers.layout.ending import MIN_FULLER, begin_of, is_marked, is_sure
from pexeso.lake.typed.cells import cell_text

_ROWS_LOOKED_AT = 200
_HEADER_WITHIN = 50
_YEARS = range(1000, 3000)
_LIKELY_YEARS = range(1700, 2101)

Row = Sequence[object]
Merged = tuple[int, int, int, int]
"""First row, first column, last row, last column of cells that were merged into one."""


@dataclass(frozen=True)
class TablePlace:
    """The part of a grid that is the table."""

    names: list[str]
    columns: list[int]
    first: int
    end: int
    notes: list[str] = field(default_factory=list)


def is_blank(value: object) -> bool:
    """Return whether a cell is empty or holds white space alone."""
    return value is None or (isinstance(value, str) and not value.strip())


def find_table(rows: Sequence[Row], merged: Sequence[Merged] = ()) -> TablePlace | None:
    """Find the header row of a grid and the rows that belong to it.

    The header is the first row about as wide as the rows of the table usually are, if its cells are
    names rather than values. Titles above it, and footnotes below the last row, are left out. A row
    of units or of parts below it, or of groups above it, gives the other half of the names.

    Returns
    -------
    TablePlace or None
        None where all cells are empty.

    Examples
    --------
    >>> place = find_table([["Sales of 2020", None], [None, None], ["city", "sum"], ["Oslo", 3.0]])
    >>> place.names, place.first, place.end
    (['city', 'sum'], 3, 4)
    """
    grid = _Grid(rows, merged)
    if not grid.filled:
        return None
    head = grid.header()
    if not grid.is_header(head) and grid.is_header_with_gaps(head - 1, head):
        head -= 1
    notes = []
    if not grid.is_header(head):
        end = grid.end(head - 1)
        columns = grid.columns(head, end)
        notes.append("no row looks like a header: the columns have no names")
        return TablePlace([""] * len(columns), columns, head, end, notes + grid.notes(head, end))
    top, bottom = head, head
    if grid.is_second_header(head + 1, head):
        bottom = head + 1
    elif grid.is_group_row(head - 1, head):
        top = head - 1
    end = grid.end(bottom)
    columns = grid.columns(top, end)
    if top != bottom:
        notes.append("two rows are the header; names of both were joined")
    names = grid.names(top, bottom, columns)
    return TablePlace(names, columns, bottom + 1, end, notes + grid.notes(top, end))


class _Grid:
    """Cells, and which of the rows hold how many."""

    def __init__(self, rows: Sequence[Row], merged: Sequence[Merged]) -> None:
        self.rows, self.merged = rows, merged
        self._begins: dict[int, set[str]] = {}
        counts = [sum(not is_blank(value) for value in row) for row in rows]
        self.counts = counts
        self.filled = [number for number, count in enumerate(counts) if count]
        sample = sorted((counts[n] for n in self.filled[:_ROWS_LOOKED_AT]), reverse=True)
        # The largest block of cells that as many rows fill.
        areas = [(count * (number + 1), count) for number, count in enumerate(sample)]
        self.usual = max(areas, default=(0, 0))[1]
        self.enough = self.usual if self.usual < 3 else self.usual - max(1, self.usual // 5)

    def header(self) -> int:
        """Return the row that is the header, or the first row of the table if there is none."""
        candidates = [n for n in self.filled[:_HEADER_WITHIN] if self.counts[n] >= self.enough]
        if not candidates:
            return self.filled[0]
        first = candidates[0]
        if (whole := self._first_whole_header()) is not None and whole > first:
            return whole
        if self._stands_alone(first):
            for later in candidates[1:]:
                if self._is_all_names(later) and (
                    self.counts[later] > self.counts[first] or self._differs_below(later)
                ):
                    return later
                if not self._stands_alone(later):
                    break
        return first

    def _first_whole_header(self) -> int | None:
        """Return the first row of names for all columns, below facts such as a date and an author.

        None where there is none, or a row above it names columns as well.
        """
        for number in self.filled[:_HEADER_WITHIN]:
            is_all_names = self._is_all_names(number)
            n_unlike = self._n_unlike_below(number) if is_all_names else 0
            if self.counts[number] >= self.usual > 2:
                return number if n_unlike else None
            if 2 * n_unlike >= self.counts[number] or (n_unlike and self.counts[number] > 2):
                return None
        return None

    def is_header_with_gaps(self, number: int, head: int) -> bool:
        """Return whether the row above the first of the table names some of its columns."""
        if number < 0 or self.counts[number] < 2 or not self._is_all_names(number):
            return False
        return self._n_unlike_below(number) > 0 and all(
            is_blank(above) or not is_blank(below)
            for above, below in zip(self.rows[number], self.rows[head], strict=True)
        )

    def _stands_alone(self, number: int) -> bool:
        """Return whether what follows a row is blank, or narrower where the row is narrow too."""
        if number + 1 >= len(self.rows):
            return False
        below = self.counts[number + 1]
        return below == 0 or (self.counts[number] < self.usual and below < self.enough)

    def is_header(self, number: int) -> bool:
        """Return whether the cells of a row are names of what is below them."""
        if self._is_all_texts(number):
            return True
        names, values = 0, 0
        for column, value in enumerate(self.rows[number]):
            below = self._below(number, column)
            if is_blank(value) or not below:
                continue
            below_is_text = sum(isinstance(cell, str) for cell in below) > 0.2 * len(below)
            names += isinstance(value, str) and not below_is_text
            values += not isinstance(value, str) and not below_is_text
        return names > values

    def _is_all_names(self, number: int) -> bool:
        return all(is_blank(value) or isinstance(value, str) for value in self.rows[number])

    def _is_sequence(self, number: int) -> bool:
        """Return whether all that is no text are years, dates or numbers that go up or down."""
        others = [v for v in self.rows[number] if not is_blank(v) and not isinstance(v, str)]
        kinds = {type(value) for value in others}
        if len(others) < 2:
            return False
        if kinds <= {datetime.date, datetime.datetime}:
            moments = [cell_text(value) for value in others]
            return moments in (sorted(set(moments)), sorted(set(moments), reverse=True))
        if not kinds <= {int, float} or not all(float(value).is_integer() for value in others):
            return False
        numbers = [int(value) for value in others]
        if all(value in _YEARS for value in numbers):
            return numbers in (sorted(set(numbers)), sorted(set(numbers), reverse=True))
        return len(numbers) > 2 and numbers == list(range(numbers[0], numbers[0] + len(numbers)))

    def _below(self, number: int, column: int) -> list[object]:
        """Return the cells below one, as many as are looked at."""
        rows = self.rows[number + 1 : number + 1 + _HEADER_WITHIN]
        return [row[column] for row in rows if not is_blank(row[column])]

    def _is_unlike_below(self, number: int, column: int) -> bool:
        """Return whether a cell is a word above numbers, dates or the like."""
        value = self.rows[number][column]
        if is_blank(value) or not isinstance(value, str):
            return False
        word = value.strip().lower()
        if is_missing_word(word) or not any(map(str.isalpha, word)):
            return False
        below = self._below(number, column)
        return bool(below) and sum(isinstance(cell, str) for cell in below) <= 0.2 * len(below)

    def _differs_below(self, number: int) -> bool:
        return self._n_unlike_below(number) > 0

    def _n_unlike_below(self, number: int) -> int:
        return sum(self._is_unlike_below(number, c) for c in range(len(self.rows[number])))

    def _names_years(self, number: int) -> bool:
        """Return whether all that is no text are years, and what is below them mostly is not."""
        row = self.rows[number]
        columns = [c for c, v in enumerate(row) if not is_blank(v) and not isinstance(v, str)]
        if not columns or not all(_is_year(row[c]) for c in columns):
            return False
        below = [cell for c in columns for cell in self._below(number, c)]
        return 4 * sum(map(_is_year, below)) < len(below)

    def is_second_header(self, number: int, head: int) -> bool:
        """Return whether the row below the header is a header too: of units, or of parts."""
        if number >= len(self.rows) or not self.counts[number]:
            return False
        if not self._is_all_names(number):
            return self._is_all_texts(head) and self._are_years_of_groups(number, head)
        unlike = self._n_unlike_below(number)
        return 2 * unlike >= self.counts[number] and unlike > 0 and self._is_all_texts(head)

    def _are_years_of_groups(self, number: int, head: int) -> bool:
        """Return whether a row has years, also where the name of a group above it goes on."""
        pairs = zip(self.rows[head], self.rows[number], strict=True)
        goes_on = any(is_blank(above) and not is_blank(below) for above, below in pairs)
        return goes_on and self._names_years(number)

    def _is_all_texts(self, number: int) -> bool:
        """Return whether a row holds texts alone, or numbers and dates that are names as well."""
        return self._is_all_names(number) or self._is_sequence(number) or self._names_years(number)

    def is_group_row(self, number: int, head: int) -> bool:
        """Return whether the row above the header names groups of its columns."""
        if number < 0 or not self.counts[number] or not self._is_all_texts(number):
            return False
        filled = [c for c, value in enumerate(self.rows[head]) if not is_blank(value)]
        spans = self._spans(number)
        if any(last - first + 1 < len(filled) for first, last in spans.values()):
            return True
        texts = [cell_text(self.rows[head][column]).strip() for column in filled]
        return self.counts[number] > 1 and len(set(texts)) < len(texts)

    def _spans(self, number: int) -> dict[int, tuple[int, int]]:
        """Return first and last column of the cells of a row that were merged with the next."""
        return {
            left: (left, right)
            for top, left, _, right in self.merged
            if top == number and right > left and left < len(self.rows[number])
        }

    def names(self, top: int, bottom: int, columns: list[int]) -> list[str]:
        """Return the names of columns, those of two rows joined by a space."""
        lower = [_name(self.rows[bottom][column]) for column in columns]
        if top == bottom:
            return lower
        upper = [_name(self.rows[top][column]) for column in columns]
        spans = self._spans(top)
        reach = {
            column: _name(self.rows[top][left])
            for left, right in spans.values()
            for column in range(left, min(right + 1, len(self.rows[top])))
        }
        current, names = "", []
        for column, above, below in zip(columns, upper, lower, strict=True):
            current = above or ("" if spans else current)
            group = reach.get(column) or (current if below else above)
            names.append(" ".join(filter(None, (group, below))))
        return names

    def end(self, head: int) -> int:
        """Return the row after the last one of the table: footnotes do not belong to it."""
        last = self.filled[-1]
        end = last + 1
        if self.usual < 2:
            return end
        number = last
        table = [row for row in self.filled if row > head]
        n_above, n_fuller = len(table), sum(self.counts[row] > 1 for row in table)
        while number > head + 1 and self.counts[number] <= 1:
            column = next((c for c, v in enumerate(self.rows[number]) if not is_blank(v)), None)
            n_above -= column is not None
            are_fuller = n_fuller >= MIN_FULLER * n_above
            if column is None:
                end = number if are_fuller else end
            elif self._is_note(number, column, head) and (
                are_fuller or is_sure(str(self.rows[number][column]))
            ):
                end = number
            elif not isinstance(self.rows[number][column], str):
                break
            number -= 1
        return max(end, head + 1)

    def _is_note(self, number: int, column: int, head: int) -> bool:
        """Return whether the one cell of a row begins like a note; names may begin so too.

        Where a blank row stands before it, all that follows that row is left out anyway.
        """
        text = self.rows[number][column]
        if not isinstance(text, str):
            return False
        if column not in self._begins:
            wide = (n for n in reversed(self.filled) if self.counts[n] > 1 and n > head)
            cells = (self.rows[n][column] for n in islice(wide, _ROWS_LOOKED_AT))
            self._begins[column] = {begin_of(cell) for cell in cells if isinstance(cell, str)}
        return is_marked(text, self._begins[column], is_like_a_row=True)

    def columns(self, top: int, end: int) -> list[int]:
        """Return the columns that hold anything in some rows."""
        seen: set[int] = set()
        width = len(self.rows[top])
        for row in self.rows[top:end]:
            if len(seen) == width:
                break
            seen.update(c for c, value in enumerate(row) if c not in seen and not is_blank(value))
        return sorted(seen)

    def notes(self, top: int, end: int) -> list[str]:
        """Return what is said about rows around the table."""
        above = sum(number < top for number in self.filled)
        below = sum(number >= end for number in self.filled)
        notes = [f"rows above the header were left out: {above:,}"] if above else []
        return notes + ([f"rows below the table were left out: {below:,}"] if below else [])


def _is_year(value: object) -> bool:
    return type(value) in (int, float) and float(value).is_integer() and int(value) in _LIKELY_YEARS


def _name(value: object) -> str:
    return "" if is_blank(value) else " ".join(cell_text(value).split())
