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
from decimal import Decimal
from itertools import islice

import pyarrow as pa

from pexeso.errors import TableReadError
from pexeso.lake.readers.encoding import ENCODED_TWICE, Encoding, detect_json_encoding, encoded_once
from pexeso.lake.readers.table import (
    ReadingBudget,
    Table,
    check_width,
    clean_name,
    empty_to_null,
    strings,
    too_big_note,
)

# What a column is known by: its name, and where names may repeat also its position or the keys that
# lead to it.
Key = str | tuple[int | tuple[object, ...], str]
Record = Mapping[Key, object]

_DEPTH = 3
_FACTS_AND_RECORDS = 2
_USUAL_NAMES = frozenset(
    ("data", "records", "rows", "results", "items", "features", "values", "entries", "docs")
)
_BESIDE = "what stands beside the array of rows was left out"
_WAY_OUT = "a table is an array of objects or of rows, or an object of equally long columns"

# Of a file, to see by its first line whether it is JSON lines.
_FIRST_BYTES = 1 << 20
# Rows that are made into columns at a time.
ROWS_A_CHUNK = 4096
_MAX_DEPTH = 8
_OBJECTS = re.compile(rb'(?:\[\s*)?\{\s*"(?:[^"\\]|\\.)*"\s*:')
_BETWEEN = re.compile(r"[\s,\x1e]*")
# A text, or a comma behind the last item, which only hands and careless programs write.
#
# A text that never ends is one as well: it would be looked through again from each of its marks.
_SURPLUS_COMMA = re.compile(r'("(?:[^"\\]|\\.)*"?)|,(?=\s*[\]}])', re.DOTALL)
_LINES_ENDS = (".jsonl", ".ndjson")


def document_records(shown: str, document: object, notes: list[str]) -> Iterator[Record]:
    if isinstance(document, list):
        return _array_records(shown, document, notes)
    if isinstance(document, dict):
        return _object_records(shown, document, notes)
    raise _no_table(shown, "it is a single value")


def _no_table(shown: str, reason: str) -> TableReadError:
    return TableReadError(f"{shown} holds no table: {reason}; {_WAY_OUT}.")


def _array_records(shown: str, items: list[object], notes: list[str]) -> Iterator[Record]:
    if not items:
        raise TableReadError(f"{shown} is empty: its array has no item.")
    if (records := _beside_facts(items)) is not None:
        items = records
        notes.append("facts beside the array of objects were left out")
    n_objects = sum(isinstance(item, dict) for item in items)
    n_arrays = sum(isinstance(item, list) for item in items)
    if n_objects > len(items) - n_objects:
        if left_out := len(items) - n_objects:
            notes.append(f"items of the array that are no object were left out: {left_out:,}")
        return (item for item in items if isinstance(item, dict))
    if n_arrays == len(items):
        return _row_records(shown, items)
    if not n_objects and not n_arrays:
        return ({"value": item} for item in items)
    raise _no_table(shown, "its array mixes objects, arrays and single values")


def _beside_facts(items: list[object]) -> list[object] | None:
    """Return the array of objects next to an object of facts; None where none does.

    Services answer so: the first item says how many pages there are.
    """
    if len(items) != _FACTS_AND_RECORDS or sum(isinstance(item, dict) for item in items) != 1:
        return None
    records = next(item for item in items if not isinstance(item, dict))
    is_table = isinstance(records, list) and bool(records)
    return records if is_table and all(isinstance(row, dict) for row in records) else None


def _row_records(
    shown: str, rows: list[list[object]], names: list[str] | None = None
) -> Iterator[Record]:
    if names is None:
        is_header = bool(rows[0]) and all(isinstance(name, str) for name in rows[0])
        names = rows[0] if is_header else []
        rows = rows[1:] if is_header else rows
    width = max([len(names), *map(len, rows)])
    keys = list(enumerate(names + [""] * (width - len(names))))
    if not rows:
        raise TableReadError(f"{shown} is empty: it holds a header and no row.")
    for row in rows:
        yield dict(zip(keys, row, strict=False))


def _object_records(shown: str, document: dict[str, object], notes: list[str]) -> Iterator[Record]:
    kind = document.get("type")
    if kind == "Topology":
        raise _no_table(shown, "it is a map (TopoJSON)")
    if kind == "Feature" and isinstance(document.get("properties"), dict):
        return _feature_records([document], notes)
    features = document.get("features")
    if kind == "FeatureCollection" and isinstance(features, list) and features:
        return _feature_records([item for item in features if isinstance(item, dict)], notes)
    if (rows := _split(shown, document)) is not None:
        described = any(isinstance(name, dict) for name in document.get("columns") or ())
        if described or document.keys() - {"columns", "data"}:
            notes.append(_BESIDE)
        return rows
    if (records := _only_records(shown, document)) is not None:
        if not _is_alone(document, records):
            notes.append(_BESIDE)
        return _array_records(shown, records, notes)
    if document and all(isinstance(value, list) for value in document.values()):
        return _column_records(shown, document)
    if (rows := _keyed_records(document)) is not None:
        return rows
    raise _no_table(shown, "it is one object, such as settings are" if document else "it is {}")


def _feature_records(features: list[dict[str, object]], notes: list[str]) -> Iterator[Record]:
    notes.append("shapes on the map were left out")
    for feature in features:
        properties = feature.get("properties")
        identity = {"id": feature["id"]} if "id" in feature else {}
        yield {**identity, **(properties if isinstance(properties, dict) else {})}


def _split(shown: str, document: dict[str, object]) -> Iterator[Record] | None:
    rows = document.get("data")
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows) or not rows:
        return None
    names = document.get("columns")
    meta = document.get("meta")  # open data portals put the names there
    view = meta.get("view") if isinstance(meta, dict) else None
    if names is None and isinstance(view, dict):
        names = view.get("columns")
    if not isinstance(names, list) or not names:
        return None
    texts = [name.get("name") if isinstance(name, dict) else name for name in names]
    return _row_records(shown, rows, ["" if text is None else str(text) for text in texts])


def _only_records(shown: str, document: dict[str, object]) -> list[object] | None:
    """Return the one array of objects in an object, or in objects of it; None if there is none.

    The least nested counts, and of several of these the one with a usual name such as ``data``.
    """
    level: dict[str, object] = dict(document)
    for _ in range(_DEPTH):
        arrays = {
            name: value
            for name, value in level.items()
            if isinstance(value, list) and value and all(isinstance(item, dict) for item in value)
        }
        usual = [name for name in arrays if name.rpartition(".")[2].lower() in _USUAL_NAMES]
        if len(arrays) == 1 or len(usual) == 1:
            return arrays[usual[0] if usual else next(iter(arrays))]
        if arrays:
            names = ", ".join(map(repr, list(arrays)[:5]))
            if not all(isinstance(value, list | dict) for value in document.values()):
                raise TableReadError(
                    f"{shown} is one object with {len(arrays):,} lists in it: {names}; write such "
                    "objects as JSON lines, or save each list that is a table as a file of its own."
                )
            raise TableReadError(
                f"{shown} holds {len(arrays):,} tables, and a JSON file is read as one: save each "
                f"of {names} as a file of its own."
            )
        level = {
            f"{name}.{inner}": inner_value
            for name, value in level.items()
            if isinstance(value, dict)
            for inner, inner_value in value.items()
        }
    return None


def _is_alone(document: object, records: list[object]) -> bool:
    while isinstance(document, dict) and len(document) == 1:
        (document,) = document.values()
    return document is records


def _column_records(shown: str, document: dict[str, object]) -> Iterator[Record]:
    lengths = {len(values) for values in document.values() if isinstance(values, list)}
    if len(lengths) > 1:
        raise _no_table(shown, "its arrays have different lengths")
    if not lengths - {0}:
        raise TableReadError(f"{shown} is empty: its arrays have no item.")
    names = list(document)
    for values in zip(*document.values(), strict=True):
        yield dict(zip(names, values, strict=True))


def _keyed_records(document: dict[str, object]) -> Iterator[Record] | None:
    """Return the rows of an object of objects: alike ones by key, or columns by row number."""
    inner = [value for value in document.values() if isinstance(value, dict)]
    if not inner or len(inner) < len(document):
        return None
    keys = dict.fromkeys(key for value in inner for key in value)
    numbers = [str(number) for number in range(len(keys))]
    if keys and list(keys) == numbers:
        return ({name: value.get(n) for name, value in document.items()} for n in numbers)
    if len(inner) < 2 or 2 * sum(map(len, inner)) < len(inner) * len(keys):
        return None
    return ({(0, "key"): key, **value} for key, value in document.items())


def parse_json(data: bytes, budget: ReadingBudget, *, max_cell_bytes: int) -> Table:
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
    return JsonRows(data, budget).table(max_cell_bytes)


class JsonRows:
    def __init__(self, data: bytes, budget: ReadingBudget) -> None:
        self.shown, self.data, self.budget = budget.shown, data, budget
        encoding = detect_json_encoding(data)
        self.encoding, self._notes = encoding.name, [encoding.note] if encoding.note else []
        if encoding == Encoding("utf-8") and (once := encoded_once(data)) is not data:
            self.data = once
            self._notes.append(ENCODED_TWICE)
        self.depth, self.by_path = _MAX_DEPTH, False
        self._document: object = None
        self._n_repeats = 0
        self.is_lines = self._is_lines()

    def table(self, max_cell_bytes: int) -> Table:
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

        Rows are gone through before, for how deep the columns may go and what distinguishes them.
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
                self._check(n_rows, len(names))
        except _TooWideError:
            self.depth = 0

    def _table(self, max_cell_bytes: int) -> Table:
        notes = list(self._notes)
        columns: dict[Key, list[pa.StringArray]] = {}
        n_rows = n_too_big = 0
        for rows in self._chunks(notes):
            for key in dict.fromkeys(key for row in rows for key in row):
                if key not in columns:  # what came before is filled with nulls
                    columns[key] = [pa.nulls(n_rows, pa.string())]
            self._check(n_rows + len(rows), len(columns))
            for key, pieces in columns.items():
                texts = strings([_text(row.get(key)) for row in rows])
                piece, n_nulled = empty_to_null(texts, max_cell_bytes)
                n_too_big += n_nulled
                pieces.append(piece)
            n_rows += len(rows)
        if not self.depth:
            notes.append("objects inside objects stay JSON: they have too many different keys")
        elif self.by_path:
            notes.append("keys that are named as others inside objects are columns of their own")
        if n_too_big:
            notes.append(too_big_note(n_too_big, max_cell_bytes))
        names = [clean_name(name) for name in key_names(columns)]
        arrays = [pa.concat_arrays(pieces) for pieces in columns.values()]
        return Table(names, arrays, self.encoding, None, notes)

    def _check(self, n_rows: int, n_columns: int) -> None:
        try:
            check_width(self.shown, n_columns)
            self.budget.check_cells(n_rows, n_columns, len(self.data))
        except TableReadError as error:
            raise _TooWideError(str(error)) from error

    def _chunks(self, notes: list[str]) -> Iterator[list[Record]]:
        repeats = _Repeats()
        if self.is_lines:
            records = self._lines(notes, repeats)
        else:
            records = iter(document_records(self.shown, self._document, notes))
        while rows := list(islice(records, ROWS_A_CHUNK)):
            self.budget.check_seconds()
            yield [flat(row, self.depth, by_path=self.by_path) for row in rows]
        n_repeats = repeats.n_objects + (0 if self.is_lines else self._n_repeats)
        if n_repeats:
            notes.append(f"objects with a key twice were read with its last value: {n_repeats:,}")

    def _text(self) -> Iterator[str]:
        stream = io.BytesIO(self.data)
        return io.TextIOWrapper(stream, encoding=self.encoding, errors="replace", newline="\n")

    def _lines(self, notes: list[str], repeats: _Repeats) -> Iterator[Record]:
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
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        return json.loads(text, parse_int=_whole_number)


def _loads(text: str, repeats: _Repeats) -> object:
    options = {
        "object_pairs_hook": repeats.object_of,
        "parse_constant": _constant,
        "parse_float": _float,
    }
    try:
        return json.loads(text, **options)
    except json.JSONDecodeError:
        raise
    except ValueError:
        repeats.n_objects = 0
        return json.loads(text, **options, parse_int=_whole_number)


def _document_of(text: str, repeats: _Repeats) -> object:
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

    >>> _sequence('{"a": 1},{"a": 2}', _Repeats())
    [{'a': 1}, {'a': 2}]
    """
    decoder = json.JSONDecoder(
        object_pairs_hook=repeats.object_of,
        parse_constant=_constant,
        parse_float=_float,
        parse_int=_whole_number,
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


def _float(digits: str) -> float | str:
    """Return a number as a float, or its digits where another number has the same float."""
    value = float(digits)
    text = repr(value)
    is_same = text == digits or math.isinf(value) or Decimal(text) == Decimal(digits)
    return value if is_same else digits


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
    """Return a row whose values that are objects became columns of their own."""
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


def key_names(keys: Iterable[Key]) -> list[str]:
    names = (key if isinstance(key, str) else key[1] for key in keys)
    return [name.encode("utf-8", "replace").decode("utf-8") for name in names]


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
