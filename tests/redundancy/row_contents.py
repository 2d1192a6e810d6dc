"""Tables read as plain Python values that are equal exactly when the cells are.

Nothing of pexeso is used: this is the other side of a comparison. The rules are those of the
specification: nulls are equal, NaN is equal to NaN and -0.0 to 0.0, whole numbers and decimals are
numbers, floats are doubles, timestamps are instants whatever their unit and zone, and a type of one
family is never equal to one of another. A cell of a CSV file is text and an empty one is missing; a
cell of JSON lines is its JSON text with sorted keys, where 1 and 1.0 differ.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pexeso.errors import InputError

ARRAY = None
"""The part of a token that stands for the elements of an array."""

NAN = ("NaN",)
"""What every NaN is read as, since NaN is not equal to itself."""

Token = tuple[str | None, ...]
Family = str | tuple[Any, ...]
Leaf = tuple[Token, Family, list[Any]]

_DELIMITED = {".csv": ",", ".tsv": "\t"}
_DELIMITERS = (",", "\t", ";", "|")
_PART = "part-"
_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_MILLISECONDS_A_DAY = timedelta(days=1) // timedelta(milliseconds=1)


@dataclass(frozen=True, eq=False)
class Content:
    n_rows: int
    columns: dict[Token, list[Any]]
    families: dict[Token, Family]


@dataclass(frozen=True, eq=False)
class Contents:
    """The tables of a lake."""

    tables: dict[str, Content] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def read_contents(folder: Path) -> Contents:
    """Read all CSV, TSV, Parquet and JSON lines files of a folder.

    Rows that are shorter or longer than the header are padded and cut.
    """
    contents = Contents()
    for name, files in _table_files(folder):
        leaves = _read(files)
        if not leaves:
            contents.left_out[name] = "no columns"
            continue
        try:
            contents.tables[name] = _content(leaves)
        except InputError as error:
            contents.left_out[name] = str(error)
    return contents


def _content(leaves: list[Leaf]) -> Content:
    tokens = [token for token, _, _ in leaves]
    folded = [tuple(part and part.lower() for part in token) for token in tokens]
    if len(set(folded)) == len(folded):
        tokens = folded
    if len(set(tokens)) < len(tokens):
        raise InputError("repeated names")
    return Content(
        len(leaves[0][2]),
        {token: cells for token, (_, _, cells) in zip(tokens, leaves, strict=True)},
        {token: family for token, (_, family, _) in zip(tokens, leaves, strict=True)},
    )


def _table_files(folder: Path) -> Iterator[tuple[str, list[Path]]]:
    for inside, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        files = [Path(inside) / name for name in sorted(names) if _ending(Path(name))]
        files = [path for path in files if not path.name.startswith(".")]
        if files and all(path.name.startswith(_PART) for path in files):
            yield Path(inside).relative_to(folder).as_posix(), files
        else:
            yield from ((path.relative_to(folder).as_posix(), [path]) for path in files)


def _ending(path: Path) -> str | None:
    ending = Path(path.name.lower().removesuffix(".gz")).suffix
    return ending if ending in {*_DELIMITED, ".parquet", ".jsonl", ".ndjson"} else None


def _read(files: list[Path]) -> list[Leaf]:
    ending = _ending(files[0])
    if ending == ".parquet":
        parts = [pq.ParquetFile(path).read() for path in files]
        alike = all(part.schema.names == parts[0].schema.names for part in parts)
        # By name where columns have another order; that does not take repeated names.
        return _table_leaves(
            pa.concat_tables(parts, promote_options="none" if alike else "default")
        )
    if ending in _DELIMITED:
        rows = [_delimited(path, _DELIMITED[ending]) for path in files]
        header = rows[0][0]
        return _text_leaves(header, [row for part in rows for row in part[1]], "string")
    return _json_leaves([line for path in files for line in _text(path).split("\n")])


def _text(path: Path) -> str:
    packed = path.name.lower().endswith(".gz")
    data = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
    return data.decode("utf-8-sig")


def _delimited(path: Path, delimiter: str) -> tuple[list[str], list[list[str]]]:
    csv.field_size_limit(max(csv.field_size_limit(), path.stat().st_size + 1))
    text = _text(path)
    while text.startswith("# "):  # a comment above the header
        text = text.partition("\n")[2]
    rows = _regular_rows(text, delimiter)
    header = [name.strip() for name in rows[0]] if rows else []
    width = len(header)
    body = rows[1:]
    longer = [len(row) for row in body if len(row) > width]
    if 2 * len(longer) > len(body):
        # Most rows have cells beyond the header: columns without names.
        header = header + [""] * (Counter(longer).most_common(1)[0][0] - width)
    width = len(header)
    return header, [(row + [""] * width)[:width] for row in body]


def _regular_rows(text: str, delimiter: str) -> list[list[str]]:
    """Read rows by another delimiter, or without quoting, where more are regular then."""
    first = next((line for line in text.splitlines() if line), "")
    if delimiter not in first:
        delimiter = max((delimiter, *_DELIMITERS), key=first.count)
    quoted, plain = (
        _rows_of(text, delimiter, quoting) for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_NONE)
    )
    return max(quoted, plain, key=lambda rows: sum(len(row) == len(rows[0]) for row in rows))


def _rows_of(text: str, delimiter: str, quoting: int) -> list[list[str]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting)
    return [row for row in reader if row]


def _text_leaves(header: list[str], rows: list[list[str]], family: Family) -> list[Leaf]:
    columns = zip(*rows, strict=True) if rows else ([] for _ in header)
    return [
        ((name,), family, [cell or None for cell in cells])
        for name, cells in zip(header, columns, strict=True)
    ]


def _json_leaves(lines: list[str]) -> list[Leaf]:
    objects = [json.loads(line) for line in lines if line.strip()]
    names = dict.fromkeys(name for record in objects for name in record)
    return [
        ((name,), "json", [_json_cell(record.get(name)) for record in objects]) for name in names
    ]


def _json_cell(value: Any) -> str | None:
    return None if value is None else json.dumps(value, sort_keys=True, ensure_ascii=False)


def _table_leaves(table: pa.Table) -> list[Leaf]:
    leaves: list[Leaf] = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        chunks = column.chunks or [pa.array([], column.type)]
        parts = [list(_leaves(chunk, (name,))) for chunk in chunks]
        for leaf in zip(*parts, strict=True):
            token, family, _ = leaf[0]
            leaves.append((token, family, [cell for _, _, cells in leaf for cell in cells]))
    return leaves


def _leaves(values: pa.Array, path: Token) -> Iterator[Leaf]:
    values = _decoded(values)
    kind = values.type
    if pa.types.is_struct(kind) and kind.num_fields:
        for at, child in enumerate(values.flatten()):
            yield from _leaves(child, (*path, kind.field(at).name))
    elif _is_list(kind) and _holds_struct(kind.value_type):
        lengths = pc.list_value_length(values).to_pylist()
        for token, family, cells in _leaves(values.flatten(), (*path, ARRAY)):
            yield token, ("array", family), _regrouped(lengths, cells)
    else:
        family, cells = _cells(values)
        yield (*path, ARRAY) if _is_list(kind) else path, family, cells


def _cells(values: pa.Array) -> tuple[Family, list[Any]]:
    """Return the family of an array and its cells, a struct among them as one."""
    values = _decoded(values)
    kind = values.type
    if pa.types.is_struct(kind):
        names = [kind.field(at).name for at in range(kind.num_fields)]
        by_name = sorted(range(len(names)), key=names.__getitem__)  # fields have no order
        parts = values.flatten()
        fields = [_cells(parts[at]) for at in by_name]
        families = [family for family, _ in fields]
        family = ("struct", *zip((names[at] for at in by_name), families, strict=True))
        rows = zip(*(cells for _, cells in fields), strict=True) if fields else [()] * len(values)
        whole = zip(values.is_valid().to_pylist(), rows, strict=True)
        return family, [row if valid else None for valid, row in whole]
    if pa.types.is_map(kind):
        (keys, key_cells), (items, item_cells) = _cells(values.keys), _cells(values.items)
        entries = list(zip(key_cells, item_cells, strict=True))
        offsets, valid = values.offsets.to_pylist(), values.is_valid().to_pylist()
        # The offsets of a slice count from the whole array, as its keys and items do.
        return ("map", keys, items), [
            frozenset(Counter(entries[offsets[row] : offsets[row + 1]]).items()) if known else None
            for row, known in enumerate(valid)
        ]
    if _is_list(kind):
        family, cells = _cells(values.flatten())
        return ("array", family), _regrouped(pc.list_value_length(values).to_pylist(), cells)
    return _plain(values)


def _plain(values: pa.Array) -> tuple[Family, list[Any]]:
    types, kind = pa.types, values.type
    for family, has in (
        ("int", types.is_integer),
        ("decimal", types.is_decimal),
        ("boolean", types.is_boolean),
        ("null", types.is_null),
    ):
        if has(kind):
            return family, values.to_pylist()
    if types.is_floating(kind):
        # NaN alone is not equal to itself.
        return "float", [NAN if cell != cell else cell for cell in values.to_pylist()]
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "string", values.to_pylist()
    if kind in (pa.binary(), pa.large_binary(), pa.binary_view()) or types.is_fixed_size_binary(
        kind
    ):
        return "binary", values.to_pylist()
    if types.is_timestamp(kind):
        family = "timestamp_ntz" if kind.tz is None else "timestamp"
        return family, _scaled(values.cast(pa.int64()), _NANOSECONDS[kind.unit])
    if types.is_time(kind):
        whole = pa.int32() if types.is_time32(kind) else pa.int64()
        return "time", _scaled(values.cast(whole), _NANOSECONDS[kind.unit])
    if types.is_date32(kind):
        return "date", _scaled(values.cast(pa.int32()), _MILLISECONDS_A_DAY)
    if types.is_date64(kind):
        return "date", values.cast(pa.int64()).to_pylist()
    if types.is_duration(kind):
        return str(kind), values.cast(pa.int64()).to_pylist()
    return str(kind), values.to_pylist()


def _scaled(values: pa.Array, factor: int) -> list[int | None]:
    return [None if cell is None else cell * factor for cell in values.to_pylist()]


def _regrouped(lengths: list[int | None], cells: list[Any]) -> list[tuple[Any, ...] | None]:
    left = iter(cells)
    return [None if length is None else tuple(islice(left, length)) for length in lengths]


def _decoded(values: pa.Array) -> pa.Array:
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_run_end_encoded(values.type):
        values = pc.run_end_decode(values)
    return values


def _is_list(kind: pa.DataType) -> bool:
    types = pa.types
    return (
        types.is_list(kind)
        or types.is_large_list(kind)
        or types.is_fixed_size_list(kind)
        or types.is_list_view(kind)
        or types.is_large_list_view(kind)
    )


def _holds_struct(kind: pa.DataType) -> bool:
    return pa.types.is_struct(kind) or (_is_list(kind) and _holds_struct(kind.value_type))
