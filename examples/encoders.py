"""Sheets as bytes: delimited text in any dialect and encoding, gzip, JSON lines and Parquet."""

import codecs
import csv
import gzip
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
from facts.sheet import Facts, Sheet


def sheet_bytes(sheet: Sheet) -> bytes:
    """Return what stands in the file of a sheet."""
    if sheet.kind == "parquet":
        return parquet_bytes(sheet.facts)
    text = json_lines(sheet.facts) if sheet.kind == "json" else delimited_text(sheet)
    content = encoded(text, sheet.encoding)
    return gzip.compress(content, mtime=0) if sheet.path.endswith(".gz") else content


def encoded(text: str, encoding: str) -> bytes:
    """Encode a text, with the same bytes on every machine.

    UTF-16 is little-endian with its byte order mark, where Python would use the byte order of the
    machine.
    """
    if encoding == "utf-16":
        return codecs.BOM_UTF16_LE + text.encode("utf-16-le")
    return text.encode(encoding)


def delimited_text(sheet: Sheet) -> str:
    """Return the sheet as delimited text, quoted where a cell needs it."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=sheet.delimiter, lineterminator=sheet.newline)
    writer.writerow(sheet.facts.names)
    writer.writerows(sheet.facts.rows)
    return text.getvalue()


def json_lines(facts: Facts) -> str:
    """Return the rows as one JSON object on each line."""
    columns = typed_columns(facts)
    rows = zip(*columns.values(), strict=True)
    return "".join(
        json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) + "\n" for row in rows
    )


def parquet_bytes(facts: Facts) -> bytes:
    """Return the table as a Parquet file."""
    buffer = io.BytesIO()
    pq.write_table(pa.table(typed_columns(facts)), buffer)
    return buffer.getvalue()


def typed_columns(facts: Facts) -> dict[str, list]:
    """Return the columns with numbers as numbers and empty cells as None.

    A column holds integers where all its full cells are digits, floats where they are decimal
    numbers, and text otherwise.
    """
    columns = {}
    for name in facts.names:
        cells = facts.column(name)
        kind = _kind([cell for cell in cells if cell])
        columns[name] = [kind(cell) if cell else None for cell in cells]
    return columns


def _kind(cells: list[str]) -> type:
    if all(cell.isdecimal() for cell in cells):
        return int
    return float if all(cell.replace(".", "", 1).isdecimal() for cell in cells) else str
