"""Tables cut into pieces of hashed columns, and pieces as bytes in an Arrow file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from pexeso.lake.readers.plain_arrays import plain
from pexeso.lake.readers.typed import JSON, TypedRows
from pexeso.redundancy.cell_hashes import HALVES
from pexeso.redundancy.column_stats import ColumnStats, scan_stats
from pexeso.redundancy.row_hashes import HashedColumn, hashed_column
from pexeso.redundancy.schema_tokens import Token, leaves
from pexeso.redundancy.type_families import family

CELLS_OF_A_PIECE = 1 << 21
"""Cells of a piece, about; in memory some 100 bytes each while it is made."""

SCHEMA = pa.schema(
    [
        ("table", pa.string()),
        ("first_row", pa.int64()),
        ("n_rows", pa.int64()),
        ("facts", pa.string()),
        ("hashes", pa.large_binary()),
        ("codes", pa.large_binary()),
    ]
)
"""Of a file of pieces, one record batch a piece: the facts are JSON of the columns."""

FIELDS = tuple(SCHEMA.names)

_CODES = {1: np.uint8, 2: np.uint16, 4: np.uint32}
_ALIGNED = 8


@dataclass(frozen=True)
class ColumnFacts:
    """What is known of a column of a piece without its cells.

    Attributes
    ----------
    token : Token
        As the file has it.
    family : str
        See `pexeso.redundancy.type_families.family`.
    n_hashes : int
        Distinct values, or rows.
    code_bytes : int
        Of each row's number of a value; 0 where there are none.
    """

    token: Token
    family: str
    stats: ColumnStats
    n_hashes: int
    code_bytes: int


@dataclass(frozen=True)
class Piece:
    """Some rows of a table: hashed columns."""

    table: str
    first_row: int
    n_rows: int
    facts: tuple[ColumnFacts, ...]
    columns: tuple[HashedColumn, ...]


def pieces_of(table: str, batches: Iterable[TypedRows]) -> Iterator[Piece]:
    """Cut a table into pieces; one without rows comes as one piece."""
    waiting: list[TypedRows] = []
    first = n_waiting = n_cells = 0
    for batch in batches:
        waiting.append(batch)
        n_waiting += batch.n_rows
        n_cells += batch.n_rows * max(1, len(batch.columns))
        if n_cells >= CELLS_OF_A_PIECE:
            yield _piece(table, first, n_waiting, waiting)
            first, waiting, n_waiting, n_cells = first + n_waiting, [], 0, 0
    if n_waiting or not first:
        yield _piece(table, first, n_waiting, waiting)


def _piece(table: str, first_row: int, n_rows: int, batches: Sequence[TypedRows]) -> Piece:
    """Put batches together, and hash their columns; a batch may lack the last ones."""
    names: list[str] = max((batch.names for batch in batches), key=len, default=[])
    is_json = any(batch.is_json for batch in batches)
    columns = []
    for position in range(len(names)):
        arrays = [
            batch.columns[position]
            if position < len(batch.columns)
            else pa.nulls(batch.n_rows, pa.string())
            for batch in batches
            if batch.n_rows or len(batches) == 1
        ] or [batches[0].columns[position]]
        columns.append(_together([plain(array) for array in arrays]))
    facts, hashed = [], []
    for leaf in leaves(names, columns):
        column = hashed_column(leaf.values, is_json=is_json)
        code_bytes = 0 if column.codes is None else column.codes.dtype.itemsize
        facts.append(
            ColumnFacts(
                leaf.token,
                JSON if is_json else family(leaf.values.type),
                scan_stats(leaf.values),
                len(column.hashes),
                code_bytes,
            )
        )
        hashed.append(column)
    return Piece(table, first_row, n_rows, tuple(facts), tuple(hashed))


def _together(arrays: Sequence[pa.Array]) -> pa.Array:
    if len(arrays) == 1:
        return arrays[0]
    chunks = pa.chunked_array(arrays)
    return (
        chunks.unify_dictionaries() if pa.types.is_dictionary(chunks.type) else chunks
    ).combine_chunks()


def write_pieces(path: Path, pieces: Iterable[Piece]) -> int:
    """Write pieces to a file that there is none of yet, and return their number."""
    with open(path, "xb") as file:
        return write_packed(file, (packed(piece) for piece in pieces))


def write_packed(file: BinaryIO | pa.NativeFile, pieces: Iterable[Mapping[str, Any]]) -> int:
    """Write packed pieces, `FIELDS` of each, and return their number."""
    n = 0
    with pa.ipc.new_file(file, SCHEMA) as writer:
        for piece in pieces:
            arrays = [pa.array([piece[field.name]], field.type) for field in SCHEMA]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))
            n += 1
    return n


def packed(piece: Piece) -> dict[str, Any]:
    """Return a piece as `FIELDS`."""
    facts = [
        {
            "token": list(fact.token),
            "family": fact.family,
            "stats": fact.stats.to_json(),
            "hashes": fact.n_hashes,
            "code_bytes": fact.code_bytes,
        }
        for fact in piece.facts
    ]
    hashes = b"".join(
        np.ascontiguousarray(cells.hashes, "<u8").tobytes() for cells in piece.columns
    )
    codes = bytearray()
    for column in piece.columns:
        if column.codes is not None:
            codes += column.codes.tobytes()
            codes += bytes(-len(codes) % _ALIGNED)
    values = (piece.table, piece.first_row, piece.n_rows, json.dumps(facts), hashes, bytes(codes))
    return dict(zip(FIELDS, values, strict=True))


def n_columns(facts: str) -> int:
    """Return the number of columns that the facts of a packed piece tell of."""
    return len(json.loads(facts))


@dataclass(frozen=True)
class StoredPiece:
    """A piece in a file, without its cells.

    Attributes
    ----------
    number : int
        Of its record batch.
    """

    path: Path
    number: int
    table: str
    first_row: int
    n_rows: int
    facts: tuple[ColumnFacts, ...]


def stored_pieces(path: str | os.PathLike[str]) -> list[StoredPiece]:
    """Return what pieces a file has; their cells are not read."""
    with pa.memory_map(os.fspath(path)) as source, pa.ipc.open_file(source) as file:
        pieces = []
        for number in range(file.num_record_batches):
            row = file.get_batch(number).select(["table", "first_row", "n_rows", "facts"])
            [entry] = row.to_pylist()
            facts = tuple(
                ColumnFacts(
                    tuple(fact["token"]),
                    fact["family"],
                    ColumnStats.from_json(fact["stats"]),
                    fact["hashes"],
                    fact["code_bytes"],
                )
                for fact in json.loads(entry["facts"])
            )
            pieces.append(
                StoredPiece(
                    Path(path), number, entry["table"], entry["first_row"], entry["n_rows"], facts
                )
            )
        return pieces


def faults_within(piece: StoredPiece) -> Iterator[str]:
    """Yield what is wrong with the cells of a stored piece, a clause each."""
    with pa.memory_map(os.fspath(piece.path)) as source, pa.ipc.open_file(source) as file:
        row = file.get_batch(piece.number)
        sizes = [len(row.column(name)[0].as_buffer()) for name in ("hashes", "codes")]
    n_hashes = sum(fact.n_hashes for fact in piece.facts)
    n_codes = 0
    for fact in piece.facts:
        n_codes += piece.n_rows * fact.code_bytes
        n_codes += -n_codes % _ALIGNED if fact.code_bytes else 0
    if sizes != [n_hashes * HALVES * 8, n_codes]:
        yield f"piece {piece.number} has {sizes} bytes of hashes and codes, not as many as it says."
        return
    for fact, column in zip(piece.facts, read_columns(piece, range(len(piece.facts))), strict=True):
        if column is None or column.codes is None:
            wrong = fact.n_hashes != piece.n_rows
        else:
            wrong = len(column.codes) > 0 and int(column.codes.max()) >= fact.n_hashes
        if wrong:
            yield f"piece {piece.number} has cells without a hash in the column {fact.token}."


def read_columns(piece: StoredPiece, wanted: Sequence[int | None]) -> list[HashedColumn | None]:
    """Return some columns of a stored piece, by their places; files are memory-mapped."""
    source = pa.memory_map(os.fspath(piece.path))
    batch = pa.ipc.open_file(source).get_batch(piece.number)
    hashes = np.frombuffer(batch.column("hashes")[0].as_buffer(), "<u8").reshape(-1, HALVES)
    codes = batch.column("codes")[0].as_buffer()
    first_hash, first_code, columns = 0, 0, []
    for fact in piece.facts:
        some = hashes[first_hash : first_hash + fact.n_hashes]
        first_hash += fact.n_hashes
        numbers = None
        if fact.code_bytes:
            numbers = np.frombuffer(codes, _CODES[fact.code_bytes], piece.n_rows, first_code)
            first_code += piece.n_rows * fact.code_bytes
            first_code += -first_code % _ALIGNED
        columns.append(HashedColumn(some, numbers))
    return [None if position is None else columns[position] for position in wanted]
