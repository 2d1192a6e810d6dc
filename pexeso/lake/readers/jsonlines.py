"""JSON to rows and to a table: one object a line, or one document.

Objects inside objects become columns such as ``address.city``.
"""

from __future__ import annotations

import codecs
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

import pyarrow as pa

from pexeso.errors import TableReadError
from pexeso.lake.readers.budget import ReadingBudget
from pexeso.lake.readers.encoding import detect_json_encoding
from pexeso.lake.readers.json_documents import Key, Record, document_records
from pexeso.lake.readers.table import (
    Table,
    check_width,
    clean_name,
    empty_to_null,
    strings,
    too_big_note,
)

_FIRST_BYTES = 1 << 20
"""Of a file, to tell by its first line whether it is JSON lines."""
ROWS_A_CHUNK = 4096
"""Rows that are made into columns at a time."""

_MAX_DEPTH = 8
_OBJECTS = re.compile(rb'(?:\[\s*)?\{\s*"(?:[^"\\]|\\.)*"\s*:')
_BETWEEN = re.compile(r"[\s,\x1e]*")
_SURPLUS_COMMA = re.compile(r'("(?:[^"\\]|\\.)*"?)|,(?=\s*[\]}])', re.DOTALL)
"""A text, or a comma behind the last item, which only hands and careless programs write.

A text that never ends is one as well: it would be looked through anew from each of its marks.
"""
_LINES_ENDS = (".jsonl", ".ndjson")


def parse_json(
    shown: str, data: bytes, *, max_cell_bytes: int, budget: ReadingBudget | None = None
) -> Table:
    """Read JSON as a table; the columns are all keys, in order of first appearance.

    What the text holds decides whether it is JSON lines or one document. Strings stay as they are,
    numbers and arrays are written as JSON; a missing key, ``null`` and ``NaN`` are empty. Objects
    inside objects become columns named ``outer.inner``, down to 8 levels; they stay JSON where that
    comes to more columns than a table may have. Where a key of a row is named as one inside an
    object of it, such as ``a.b`` in ``{"a.b": 1, "a": {"b": 2}}``, there are two columns of the
    name, with a note. Lines and items that are no object are left out and counted in a note while
    they are the minority.

    Memory: JSON lines take a chunk of 4,096 besides the columns. A document takes what Python's
    objects of it take, about ten times its size.
    """
    return JsonRows(shown, data, budget).table(max_cell_bytes)


class JsonRows:
    """The rows of a JSON text."""

    def __init__(self, shown: str, data: bytes, budget: ReadingBudget | None = None) -> None:
        self.shown, self.data = shown, data
        self.budget = budget or ReadingBudget(shown, len(data))
        encoding = detect_json_encoding(data)
        self.encoding, self._notes = encoding.name, [encoding.note] if encoding.note else []
        self.depth, self.by_path = _MAX_DEPTH, False
        self._document: object = None
        self._n_repeats = 0
        self.is_lines = self._is_lines()

    def table(self, max_cell_bytes: int) -> Table:
        """Return the rows as a table of texts."""
        while True:
            try:
                return self._table(max_cell_bytes)
            except _SameNameError:
                self.by_path = True
            except _TooWideError as error:
                if not self.depth:
                    raise TableReadError(str(error)) from error
                self.depth = 0

    def chunks(self) -> Iterator[list[Record]]:
        """Yield lists of rows, with the columns that `table` has.

        Rows are gone through before, for how deep the columns may go and what tells them apart.
        """
        try:
            self._look()
        except _SameNameError:
            self.by_path = True
            self._look()
        yield from self._chunks([])

    def _look(self) -> None:
        names: set[Key] = set()
        n_rows = 0
        try:
            for rows in self._chunks([]):
                names.update(key for row in rows for key in row)
                n_rows += len(rows)
                self.check(n_rows, len(names))
        except _TooWideError:
            self.depth = 0

    def _table(self, max_cell_bytes: int) -> Table:
        builder = _Builder(self, max_cell_bytes)
        notes = list(self._notes)
        for rows in self._chunks(notes):
            builder.add(rows)
        if not self.depth:
            notes.append("objects inside objects stay JSON: they have too many different keys")
        elif self.by_path:
            notes.append("keys that are named as others inside objects are columns of their own")
        return builder.table(notes)

    def check(self, n_rows: int, n_columns: int) -> None:
        """Raise `_TooWideError` for more columns, or more empty cells, than a table has."""
        try:
            check_width(self.shown, n_columns)
            self.budget.check_cells(n_rows, n_columns, len(self.data))
        except TableReadError as error:
            raise _TooWideError(str(error)) from error

    def _chunks(self, notes: list[str]) -> Iterator[list[Record]]:
        repeats = _Repeats()
        records = self._lines(notes, repeats) if self.is_lines else self._items(notes)
        while rows := list(islice(records, ROWS_A_CHUNK)):
            self.budget.check_seconds()
            yield [flat(row, self.depth, by_path=self.by_path) for row in rows]
        n_repeats = repeats.n_objects + (0 if self.is_lines else self._n_repeats)
        if n_repeats:
            notes.append(f"objects with a key twice were read with its last value: {n_repeats:,}")

    def _items(self, notes: list[str]) -> Iterator[Record]:
        return iter(document_records(self.shown, self._document, notes))

    def _text(self) -> Iterator[str]:
        stream = io.BytesIO(self.data)
        return io.TextIOWrapper(stream, encoding=self.encoding, errors="replace", newline="\n")

    def _lines(self, notes: list[str], repeats: _Repeats) -> Iterator[Record]:
        """Yield the objects of lines."""
        n_good = n_bad = 0
        for line in self._text():
            if line.isspace():
                continue
            record = _value(line, repeats)
            if isinstance(record, dict):
                n_good += 1
                yield record
            else:
                n_bad += 1
        if n_bad and n_bad >= n_good:
            raise TableReadError(
                f"{self.shown} is not JSON lines: {n_bad:,} of {n_bad + n_good:,} lines hold no "
                "object."
            )
        if not n_good:
            raise TableReadError(f"{self.shown} is empty: it holds no JSON object.")
        if n_bad:
            notes.append(f"lines that hold no JSON object were left out: {n_bad:,}")

    def _is_lines(self) -> bool:
        """Return whether lines are objects; else the document is read."""
        is_named_so = any(end in self.shown.lower() for end in _LINES_ENDS)
        lines = (line for line in self._text() if not line.isspace())
        first = list(islice(lines, 2))
        if not first:
            raise TableReadError(f"{self.shown} is empty: it holds no JSON object.")
        n_objects = 0
        if len(first) > 1 or is_named_so:
            n_objects = sum(isinstance(_value(line, _Repeats()), dict) for line in first)
        if n_objects == len(first):
            return True
        try:
            self._read_document()
        except TableReadError:
            if is_named_so or n_objects:
                return True
            raise
        return False

    def _read_document(self) -> None:
        repeats = _Repeats()
        text = self.data.decode(self.encoding, "replace")
        try:
            self._document = _document_of(text, repeats)
        except RecursionError as error:
            raise TableReadError(f"{self.shown} is nested more deeply than can be read.") from error
        except json.JSONDecodeError as error:
            raise TableReadError(
                f"{self.shown} is no readable JSON: {error.msg} in line {error.lineno:,}, column "
                f"{error.colno:,}."
            ) from error
        self._n_repeats = repeats.n_objects


class _TooWideError(Exception):
    """The columns are too many, or almost all cells are missing."""


class _SameNameError(Exception):
    """A key of a row is named as one inside an object of it."""


class _Repeats:
    """Makes objects of pairs, and counts those that have a key twice."""

    def __init__(self) -> None:
        self.n_objects = 0

    def object_of(self, pairs: list[tuple[str, object]]) -> dict[str, object]:
        members = dict(pairs)
        self.n_objects += len(members) < len(pairs)
        return members


def starts_as_json(data: bytes, *, is_sure: bool = False) -> bool:
    r"""Return whether a text begins with an array of objects, or a line that is an object.

    Examples
    --------
    >>> starts_as_json(b'{"a": 1}\n{"a": 2}'), starts_as_json(b'[\n {"a": 1}]')
    (True, True)
    >>> starts_as_json(b"{a},b")
    False
    """
    begin = data[:_FIRST_BYTES].removeprefix(codecs.BOM_UTF8).lstrip()
    if is_sure and not _OBJECTS.match(begin):
        return False
    if begin.startswith(b"["):
        return begin[1:].lstrip().startswith(b"{")
    line = begin.partition(b"\n")[0].decode("utf-8", errors="replace")
    return line.startswith("{") and isinstance(_value(line, _Repeats()), dict)


def read_json(text: str) -> object:
    """Read a JSON document; whole numbers too long for Python are returned as text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        return json.loads(text, parse_int=_whole_number)


def _loads(text: str, repeats: _Repeats) -> object:
    """Read JSON of a table: as `read_json`, with ``NaN`` as null."""
    try:
        return json.loads(text, object_pairs_hook=repeats.object_of, parse_constant=_constant)
    except json.JSONDecodeError:
        raise
    except ValueError:
        repeats.n_objects = 0
        return json.loads(
            text,
            object_pairs_hook=repeats.object_of,
            parse_constant=_constant,
            parse_int=_whole_number,
        )


def _document_of(text: str, repeats: _Repeats) -> object:
    """Read JSON as `_loads`, and what people take for it: see `_sequence`."""
    try:
        return _loads(text, repeats)
    except json.JSONDecodeError:
        for mended in (text, _SURPLUS_COMMA.sub(lambda match: match[1] or "", text)):
            repeats.n_objects = 0
            try:
                return _sequence(mended, repeats)
            except json.JSONDecodeError:
                continue
        raise


def _sequence(text: str, repeats: _Repeats) -> object:
    """Read objects or arrays that follow each other without being items of an array.

    Tools write objects so, each over several lines, or all in one; a comma may follow each.

    Examples
    --------
    >>> _sequence('{"a": 1},{"a": 2}', _Repeats())
    [{'a': 1}, {'a': 2}]
    """
    decoder = json.JSONDecoder(
        object_pairs_hook=repeats.object_of, parse_constant=_constant, parse_int=_whole_number
    )
    values: list[object] = []
    start = _BETWEEN.match(text, 0).end()  # type: ignore[union-attr]
    while start < len(text):
        value, end = decoder.raw_decode(text, start)
        values.append(value)
        start = _BETWEEN.match(text, end).end()  # type: ignore[union-attr]
    if len(values) == 1:
        return values[0]
    if not values or {type(value) for value in values} not in ({dict}, {list}):
        raise json.JSONDecodeError("Extra data", text, 0)
    return values


def _constant(name: str) -> float | None:
    return None if name == "NaN" else math.inf if name == "Infinity" else -math.inf


def _whole_number(digits: str) -> int | str:
    try:
        return int(digits)
    except ValueError:
        return digits


def _value(line: str, repeats: _Repeats) -> object:
    try:
        return _loads(line, repeats)
    except (ValueError, RecursionError):
        return None


def flat(row: Record, depth: int, *, by_path: bool = False) -> Record:
    """Return a row whose values that are objects became columns of their own.

    Examples
    --------
    >>> flat({"name": "Eva", "address": {"city": "Oslo", "at": {"x": 1}}}, 1)
    {'name': 'Eva', 'address.city': 'Oslo', 'address.at': {'x': 1}}
    >>> flat({"a.b": 1, "a": {"b": 2}}, 1, by_path=True)
    {'a.b': 1, (('a', 'b'), 'a.b'): 2}
    """
    if not depth or not any(type(value) is dict for value in row.values()):
        return row
    cells: dict[Key, object] = {}
    _flatten(row, "", depth, cells, () if by_path else None)
    return cells


def _flatten(
    row: Mapping[Key, object],
    before: str,
    depth: int,
    cells: dict[Key, object],
    path: tuple[Key, ...] | None,
) -> None:
    for key, value in row.items():
        name = f"{before}{key if isinstance(key, str) else key[1]}" if before else key
        key_path = None if path is None else (*path, key)
        if type(value) is dict and value and depth:
            inner = name if isinstance(name, str) else name[1]
            _flatten(value, f"{inner}.", depth - 1, cells, key_path)
            continue
        column = (key_path, name) if before and key_path is not None else name
        if column in cells:
            raise _SameNameError
        cells[column] = value or None if type(value) is dict else value


class _Builder:
    """Columns that may appear late: what came before is filled with nulls."""

    def __init__(self, rows: JsonRows, max_cell_bytes: int):
        self.rows, self.max_cell_bytes = rows, max_cell_bytes
        self.pieces: dict[Key, list[pa.StringArray]] = {}
        self.n_rows = self.n_too_big = 0

    def add(self, rows: list[Record]) -> None:
        for key in dict.fromkeys(key for row in rows for key in row):
            if key not in self.pieces:
                self.pieces[key] = [pa.nulls(self.n_rows, pa.string())]
        self.rows.check(self.n_rows + len(rows), len(self.pieces))
        for key, pieces in self.pieces.items():
            texts = strings([_text(row.get(key)) for row in rows])
            piece, n_too_big = empty_to_null(texts, self.max_cell_bytes)
            self.n_too_big += n_too_big
            pieces.append(piece)
        self.n_rows += len(rows)

    def table(self, notes: list[str]) -> Table:
        if self.n_too_big:
            notes.append(too_big_note(self.n_too_big, self.max_cell_bytes))
        names = [clean_name(name) for name in key_names(self.pieces)]
        columns = [pa.concat_arrays(pieces) for pieces in self.pieces.values()]
        return Table(names, columns, self.rows.encoding, None, notes)


def key_names(keys: Iterable[Key]) -> list[str]:
    """Return the names of columns, as UTF-8 can hold them."""
    names = (key if isinstance(key, str) else key[1] for key in keys)
    return [name.encode("utf-8", "replace").decode("utf-8") for name in names]


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
