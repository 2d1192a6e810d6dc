"""Tables cut into pieces of hashed columns, pieces in Arrow files, and tables put together."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from pexeso.lake.typed.parquet import JSON, TypedRows
from pexeso.lake.typed.value_texts import plain
from pexeso.redundancy.candidates import ColumnStats, merged, scan_stats
from pexeso.redundancy.row_hashes import (
    HALVES,
    HashedColumn,
    hashed_column,
    row_hashes,
    value_hashes,
)
from pexeso.redundancy.schema_tokens import (
    Token,
    canonical_tokens,
    compatible,
    family,
    folded,
    leaves,
)

PIECE_CELLS = 1 << 21  # about; in memory some 100 bytes each while a piece is made

# Of a file of pieces, one record batch a piece: the facts are JSON of the columns.
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

FIELDS = tuple(SCHEMA.names)

_CODES = {1: np.uint8, 2: np.uint16, 4: np.uint32}
_ALIGNED = 8


@dataclass(frozen=True)
class ColumnFacts:
    """What is known of a column of a piece without its cells."""

    token: Token  # As the file has it
    family: str  # See `pexeso.redundancy.schema_tokens.family`
    stats: ColumnStats
    hashes: int = 0  # How many: of distinct values, or rows
    code_bytes: int = 0  # Of each row's number of a value; 0 where there are none

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "stats": self.stats.to_json()}

    @classmethod
    def from_json(cls, fact: Mapping[str, Any]) -> ColumnFacts:
        stats = ColumnStats.from_json(fact["stats"])
        return cls(**{**fact, "token": tuple(fact["token"]), "stats": stats})


@dataclass(frozen=True)
class Piece:
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
        if n_cells >= PIECE_CELLS:
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
    for token, values in leaves(names, columns):
        column = hashed_column(values, is_json=is_json)
        code_bytes = 0 if column.codes is None else column.codes.dtype.itemsize
        kind = JSON if is_json else family(values.type)
        facts.append(ColumnFacts(token, kind, scan_stats(values), len(column.hashes), code_bytes))
        hashed.append(column)
    return Piece(table, first_row, n_rows, tuple(facts), tuple(hashed))


def _together(arrays: Sequence[pa.Array]) -> pa.Array:
    if len(arrays) == 1:
        return arrays[0]
    chunks = pa.chunked_array(arrays)
    if pa.types.is_dictionary(chunks.type):
        chunks = chunks.unify_dictionaries()
    return chunks.combine_chunks()


def write_pieces(path: Path, pieces: Iterable[Piece]) -> None:
    with open(path, "xb") as file:
        write_packed(file, map(packed, pieces))


def write_packed(file: BinaryIO | pa.NativeFile, pieces: Iterable[Mapping[str, Any]]) -> None:
    with pa.ipc.new_file(file, SCHEMA) as writer:
        for piece in pieces:
            arrays = [pa.array([piece[field.name]], field.type) for field in SCHEMA]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))


def packed(piece: Piece) -> dict[str, Any]:
    facts = json.dumps([fact.to_json() for fact in piece.facts])
    hashes = b"".join(
        np.ascontiguousarray(cells.hashes, "<u8").tobytes() for cells in piece.columns
    )
    codes = bytearray()
    for column in piece.columns:
        if column.codes is not None:
            codes += column.codes.tobytes()
            codes += bytes(-len(codes) % _ALIGNED)
    values = (piece.table, piece.first_row, piece.n_rows, facts, hashes, bytes(codes))
    return dict(zip(FIELDS, values, strict=True))


def n_columns(facts: str) -> int:
    return len(json.loads(facts))


@dataclass(frozen=True)
class StoredPiece:
    """A piece in a file, without its cells; `number` is that of its record batch."""

    path: Path
    number: int
    table: str
    first_row: int
    n_rows: int
    facts: tuple[ColumnFacts, ...]


def stored_pieces(path: str | os.PathLike[str]) -> list[StoredPiece]:
    with pa.memory_map(os.fspath(path)) as source, pa.ipc.open_file(source) as file:
        pieces = []
        for number in range(file.num_record_batches):
            row = file.get_batch(number).select(["table", "first_row", "n_rows", "facts"])
            [entry] = row.to_pylist()
            facts = tuple(map(ColumnFacts.from_json, json.loads(entry.pop("facts"))))
            pieces.append(StoredPiece(Path(path), number, **entry, facts=facts))
        return pieces


def faults_within(piece: StoredPiece) -> Iterator[str]:
    """Yield what is wrong with the cells of a stored piece, a clause each."""
    with pa.memory_map(os.fspath(piece.path)) as source, pa.ipc.open_file(source) as file:
        row = file.get_batch(piece.number)
        sizes = [len(row.column(name)[0].as_buffer()) for name in ("hashes", "codes")]
    n_hashes = sum(fact.hashes for fact in piece.facts)
    n_codes = 0
    for fact in piece.facts:
        n_codes += piece.n_rows * fact.code_bytes
        n_codes += -n_codes % _ALIGNED if fact.code_bytes else 0
    if sizes != [n_hashes * HALVES * 8, n_codes]:
        yield f"piece {piece.number} has {sizes} bytes of hashes and codes, not as many as it says."
        return
    for fact, column in zip(piece.facts, read_columns(piece), strict=True):
        if column.codes is None:
            wrong = fact.hashes != piece.n_rows
        else:
            wrong = len(column.codes) > 0 and int(column.codes.max()) >= fact.hashes
        if wrong:
            yield f"piece {piece.number} has cells without a hash in the column {fact.token}."


def read_columns(piece: StoredPiece) -> list[HashedColumn]:
    source = pa.memory_map(os.fspath(piece.path))
    batch = pa.ipc.open_file(source).get_batch(piece.number)
    hashes = np.frombuffer(batch.column("hashes")[0].as_buffer(), "<u8").reshape(-1, HALVES)
    codes = batch.column("codes")[0].as_buffer()
    first_hash, first_code, columns = 0, 0, []
    for fact in piece.facts:
        some = hashes[first_hash : first_hash + fact.hashes]
        first_hash += fact.hashes
        numbers = None
        if fact.code_bytes:
            numbers = np.frombuffer(codes, _CODES[fact.code_bytes], piece.n_rows, first_code)
            first_code += piece.n_rows * fact.code_bytes
            first_code += -first_code % _ALIGNED
        columns.append(HashedColumn(some, numbers))
    return columns


_WHOLE_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})", re.ASCII)


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    token: Token  # What tables are compared by
    name: Token  # As the files have it
    family: str  # Of all files; one of its own where they do not agree
    stats: ColumnStats


@dataclass(frozen=True)
class TableOfPieces:
    """A table as the graph sees it."""

    name: str
    n_rows: int
    n_bytes: int
    columns: tuple[Column, ...]
    pieces: tuple[StoredPiece, ...]
    # sequence of dict of Token to text: Of each piece, what the names of its folders say:
    # ``year=2020``
    constants: tuple[Mapping[Token, str], ...]


def table_of(
    name: str,
    pieces: Sequence[StoredPiece],
    constants: Sequence[Mapping[Token, str]],
    n_bytes: int,
    *,
    case_sensitive: bool = False,
    synonyms: Mapping[Token, Token] | None = None,
) -> TableOfPieces:
    """Put a table together.

    Columns are those of all pieces; where a piece lacks one, its cells are missing there. A name of
    columns in two pieces that differs by case alone is one name, unless a piece has both.
    """
    raw = [
        [*(column.token for column in piece.facts), *more]
        for piece, more in zip(pieces, constants, strict=True)
    ]
    if any(len(set(tokens)) < len(tokens) for tokens in raw):
        raise ValueError("two of its columns have the same name")
    as_they_are = case_sensitive or any(_differ_by_case(tokens) for tokens in raw)
    named: dict[Token, Token] = {}
    for token in (token for tokens in raw for token in tokens):
        named.setdefault(token if as_they_are else folded(token), token)
    tokens = canonical_tokens(list(named), case_sensitive=as_they_are, synonyms=synonyms)
    if len(set(tokens)) < len(tokens):
        raise ValueError("two of its columns stand for the same one")
    positions = [_positions(piece, exact=as_they_are) for piece in pieces]
    columns = []
    for token, (key, name_in_file) in zip(tokens, named.items(), strict=True):
        families, stats = [], []
        for piece, more, columns_of in zip(pieces, constants, positions, strict=True):
            if key in columns_of:
                fact = piece.facts[columns_of[key]]
                families.append(fact.family)
                stats.append(fact.stats)
            else:
                cells = constant(more.get(name_in_file))
                families.append(family(cells.type))
                stats.append(scan_stats(pa.repeat(cells[0], piece.n_rows)))
        common = _common(families, name)
        known = merged(stats) if common in families else ColumnStats()
        columns.append(Column(token, name_in_file, common, known))
    n_rows = sum(piece.n_rows for piece in pieces)
    return TableOfPieces(name, n_rows, n_bytes, tuple(columns), tuple(pieces), tuple(constants))


def _differ_by_case(tokens: Sequence[Token]) -> bool:
    return len(set(map(folded, tokens))) < len(tokens)


def constant(text: str | None) -> pa.Array:
    """Return the value of a folder ``name=value`` as Spark reads it, whole numbers as such."""
    if text is None or text == "__HIVE_DEFAULT_PARTITION__":
        return pa.nulls(1)
    return pa.array([int(text) if _WHOLE_NUMBER.fullmatch(text) else text])


def constant_column(text: str, n_rows: int) -> HashedColumn:
    return HashedColumn(value_hashes(constant(text)), np.zeros(n_rows, np.uint8))


def _common(families: Iterable[str], table: str) -> str:
    known = sorted({kind for kind in families if kind != "null"}) or ["null"]
    if all(compatible(known[0], kind) for kind in known[1:]):
        return known[0]
    return f"{' or '.join(known)} in {table}"


def cell_places(table: TableOfPieces, tokens: Sequence[Token]) -> list[dict[str, Any]]:
    """Return where the cells of some columns are, a place of each piece, for `hashes_of_rows`."""
    names = {column.token: column.name for column in table.columns}
    places = []
    for piece, more in zip(table.pieces, table.constants, strict=True):
        exact = _differ_by_case([column.token for column in piece.facts])
        positions = _positions(piece, exact=exact)
        columns = [
            positions.get(names[token] if exact else folded(names[token])) for token in tokens
        ]
        constants = [
            more.get(names[token]) if column is None else None
            for token, column in zip(tokens, columns, strict=True)
        ]
        place = {"path": str(piece.path), "number": piece.number}
        places.append({**place, "columns": columns, "constants": constants})
    return places


def _positions(piece: StoredPiece, *, exact: bool) -> dict[Token, int]:
    """Return the columns of a piece by their names, which are folded unless `exact`; the first."""
    names = [column.token if exact else folded(column.token) for column in piece.facts]
    return {name: position for position, name in reversed(list(enumerate(names)))}


def hashes_of_rows(
    places: Sequence[Mapping[str, Any]],
    tokens: Sequence[str],
    pieces_in: Callable[[str], Sequence[StoredPiece]],
) -> np.ndarray:
    """Return the hashes of all rows of a table on some columns: uint64 (n, 2)."""
    hashes = [np.empty((0, HALVES), np.uint64)]
    for place in places:
        piece = pieces_in(place["path"])[place["number"]]
        columns = read_columns(piece)
        wanted = [
            constant_column(text, piece.n_rows)
            if text is not None
            else None
            if column is None
            else columns[column]
            for column, text in zip(place["columns"], place["constants"], strict=True)
        ]
        hashes.append(row_hashes(piece.n_rows, wanted, tokens))
    return np.concatenate(hashes)


def ordered_tokens(table: TableOfPieces) -> list[Token]:
    """Return the tokens of a table in one order for all tables."""
    return sorted((column.token for column in table.columns), key=name_of)


def name_of(token: Token) -> str:
    return json.dumps(token, ensure_ascii=False)
