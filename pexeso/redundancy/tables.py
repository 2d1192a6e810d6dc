"""Tables put together from stored pieces: what the graph needs to know, and where the cells are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from pexeso.redundancy.cell_hashes import HALVES, value_hashes
from pexeso.redundancy.column_stats import ColumnStats, merged, scan_stats
from pexeso.redundancy.pieces import StoredPiece, read_columns
from pexeso.redundancy.row_hashes import HashedColumn, row_hashes
from pexeso.redundancy.schema_tokens import Token, canonical_tokens, folded
from pexeso.redundancy.type_families import compatible, family

_WHOLE_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})", re.ASCII)


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    token : Token
        What tables are compared by.
    name : Token
        As the files have it.
    family : str
        Of all files; one of its own where they do not agree.
    """

    token: Token
    name: Token
    family: str
    stats: ColumnStats


@dataclass(frozen=True)
class TableOfPieces:
    """A table as the graph sees it.

    Attributes
    ----------
    constants : sequence of dict of Token to text
        Of each piece, what the names of its folders say: ``year=2020``.
    """

    name: str
    n_rows: int
    n_bytes: int
    columns: tuple[Column, ...]
    pieces: tuple[StoredPiece, ...]
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
    if any(len(set(piece_tokens)) < len(piece_tokens) for piece_tokens in raw):
        raise ValueError("two of its columns have the same name")
    as_they_are = case_sensitive or any(
        len({folded(token) for token in piece_tokens}) < len(piece_tokens) for piece_tokens in raw
    )
    named: dict[Token, Token] = {}
    for piece_tokens in raw:
        for token in piece_tokens:
            named.setdefault(token if as_they_are else folded(token), token)
    tokens = canonical_tokens(list(named), case_sensitive=as_they_are, synonyms=synonyms)
    if len(set(tokens)) < len(tokens):
        raise ValueError("two of its columns stand for the same one")
    columns = []
    for token, (key, name_in_file) in zip(tokens, named.items(), strict=True):
        families, stats = [], []
        for piece, more in zip(pieces, constants, strict=True):
            position = place_in(piece, name_in_file, key == name_in_file and as_they_are)
            if position is not None:
                families.append(piece.facts[position].family)
                stats.append(piece.facts[position].stats)
            else:
                cells = constant(more.get(name_in_file))
                families.append(family(cells.type))
                stats.append(scan_stats(pa.repeat(cells[0], piece.n_rows)))
        common = _common(families, name)
        known = merged(stats) if common in families else ColumnStats()
        columns.append(Column(token, name_in_file, common, known))
    n_rows = sum(piece.n_rows for piece in pieces)
    return TableOfPieces(name, n_rows, n_bytes, tuple(columns), tuple(pieces), tuple(constants))


def constant(text: str | None) -> pa.Array:
    """Return the value of a folder ``name=value`` as Spark reads it, whole numbers as such."""
    if text is None or text == "__HIVE_DEFAULT_PARTITION__":
        return pa.nulls(1)
    return pa.array([int(text) if _WHOLE_NUMBER.fullmatch(text) else text])


def constant_column(text: str, n_rows: int) -> HashedColumn:
    """Return the cells of a column that a folder ``name=value`` tells of."""
    return HashedColumn(value_hashes(constant(text)), np.zeros(n_rows, np.uint8))


def _common(families: Iterable[str], table: str) -> str:
    known = sorted({kind for kind in families if kind != "null"}) or ["null"]
    if all(compatible(known[0], kind) for kind in known[1:]):
        return known[0]
    return f"{' or '.join(known)} in {table}"


def place_of_cells(table: TableOfPieces, tokens: Sequence[Token]) -> list[dict[str, object]]:
    """Return where the cells of some columns are, as plain JSON for `hashes_of_rows`."""
    names = {column.token: column.name for column in table.columns}
    locations = []
    for piece, more in zip(table.pieces, table.constants, strict=True):
        exact = len({folded(column.token) for column in piece.facts}) < len(piece.facts)
        indices = [place_in(piece, names[token], exact) for token in tokens]
        constants = [
            more.get(names[token]) if index is None else None
            for token, index in zip(tokens, indices, strict=True)
        ]
        locations.append(
            {"path": str(piece.path), "number": piece.number, "wanted": indices, "told": constants}
        )
    return locations


def place_in(piece: StoredPiece, name: Token, exact: bool) -> int | None:
    """Return which column of a piece has a name, None where it has none."""
    if exact:
        return next((n for n, column in enumerate(piece.facts) if column.token == name), None)
    low = folded(name)
    return next((n for n, column in enumerate(piece.facts) if folded(column.token) == low), None)


def hashes_of_rows(
    places: Sequence[Mapping[str, object]], tokens: Sequence[str], open_piece: object
) -> np.ndarray:
    """Return the hashes of all rows of a table on some columns: uint64 (n, 2)."""
    hashes = []
    for location in places:
        piece = open_piece(Path(location["path"]), location["number"])
        columns = read_columns(piece, location["wanted"])
        for number, text in enumerate(location["told"]):
            if text is not None:
                columns[number] = constant_column(text, piece.n_rows)
        hashes.append(row_hashes(piece.n_rows, columns, tokens))
    return np.concatenate(hashes) if hashes else np.empty((0, HALVES), np.uint64)


def ordered_tokens(table: TableOfPieces) -> list[Token]:
    """Return the tokens of a table in one order for all tables."""
    return sorted((column.token for column in table.columns), key=name_of)


def name_of(token: Token) -> str:
    """Return a token as a text that stands for it alone."""
    return json.dumps(token, ensure_ascii=False)
