"""JSON lines to a table: one object a line, columns by order of first appearance."""

import codecs
import io
import json
from itertools import islice

import pyarrow as pa

from pexeso.errors import TableReadError
from pexeso.lake.readers.table import (
    Table,
    check_cells,
    check_width,
    clean_name,
    empty_to_null,
    strings,
    too_big_note,
)

_LINES_A_CHUNK = 4096
_FIRST_BYTES = 1 << 20
"""Of a file, to tell by its first line whether it is JSON lines."""


def parse_jsonlines(shown: str, data: bytes, *, max_cell_bytes: int) -> Table:
    """Read JSON objects, one a line; the columns are all their keys, in order of first appearance.

    Strings stay as they are, numbers and nested values are written as JSON, a missing key and
    `null` are empty. Lines that are no JSON object are left out and counted in a note while they
    are the minority.

    Parameters
    ----------
    shown
        The file's name for messages.
    data
        The whole file: UTF-8, with or without byte order mark.
    max_cell_bytes
        Larger cells become null.
    """
    builder = _Builder(shown, max_cell_bytes, len(data))
    text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig", errors="replace", newline="\n")
    n_bad = 0
    while lines := list(islice(text, _LINES_A_CHUNK)):
        objects = [_object(line) for line in lines if not line.isspace()]
        good = [found for found in objects if found is not None]
        n_bad += len(objects) - len(good)
        builder.add(good)
    if n_bad and n_bad >= builder.n_rows:
        raise TableReadError(
            f"{shown} is not JSON lines: {n_bad:,} of {n_bad + builder.n_rows:,} lines hold no "
            "object."
        )
    if not builder.n_rows:
        raise TableReadError(f"{shown} is empty: it holds no JSON object.")
    notes = [f"lines that hold no JSON object were left out: {n_bad:,}"] if n_bad else []
    return builder.table(notes)


def starts_as_jsonlines(data: bytes) -> bool:
    r"""Return whether the first line that is not blank is a whole JSON object.

    Examples
    --------
    >>> starts_as_jsonlines(b'{"a": 1}\n{"a": 2}'), starts_as_jsonlines(b"{a},b")
    (True, False)
    """
    line = data[:_FIRST_BYTES].removeprefix(codecs.BOM_UTF8).lstrip().partition(b"\n")[0]
    return line.startswith(b"{") and _object(line.decode("utf-8", errors="replace")) is not None


def read_json(text: str) -> object:
    """Read a JSON document; whole numbers too long for Python are returned as text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        return json.loads(text, parse_int=_whole_number)


def _whole_number(digits: str) -> int | str:
    try:
        return int(digits)
    except ValueError:
        return digits


def _object(line: str) -> dict[str, object] | None:
    try:
        found = read_json(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


class _Builder:
    """Columns that may appear late: what came before is filled with nulls."""

    def __init__(self, shown: str, max_cell_bytes: int, n_bytes: int):
        self.shown, self.n_bytes = shown, n_bytes
        self.max_cell_bytes = max_cell_bytes
        self.pieces: dict[str, list[pa.StringArray]] = {}
        self.n_rows = self.n_too_big = 0

    def add(self, objects: list[dict[str, object]]) -> None:
        for key in dict.fromkeys(key for found in objects for key in found):
            if key not in self.pieces:
                self.pieces[key] = [pa.nulls(self.n_rows, pa.string())]
        check_width(self.shown, len(self.pieces))
        check_cells(self.shown, self.n_rows + len(objects), len(self.pieces), self.n_bytes)
        for key, pieces in self.pieces.items():
            texts = strings([_text(found.get(key)) for found in objects])
            piece, n_too_big = empty_to_null(texts, self.max_cell_bytes)
            self.n_too_big += n_too_big
            pieces.append(piece)
        self.n_rows += len(objects)

    def table(self, notes: list[str]) -> Table:
        if self.n_too_big:
            notes.append(too_big_note(self.n_too_big, self.max_cell_bytes))
        names = [clean_name(key.encode("utf-8", "replace").decode("utf-8")) for key in self.pieces]
        return Table(
            names,
            [pa.concat_arrays(pieces) for pieces in self.pieces.values()],
            "utf-8",
            None,
            notes,
        )


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
