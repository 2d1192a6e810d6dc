"""Columns that tell the rows of a table apart, proposed as keys with evidence for each.

Cells are compared as in `pexeso.lake.tokens`. Rows without any value, and rows that repeat an
earlier one in all columns, are counted and left out: they add no key of their own. A key is
*unique* where each row left has all its values and no two rows have the same; *nearly* where that
holds for a large enough share of the rows. No proposed key holds a smaller one of its kind.

That a column is unique does not make it a key. Measurements are unique too where rows are few, and
join nothing. So columns that are rarely keys come last, those of `RARELY`: first
unique keys without them; then near-keys without them, where no key is unique; then unique keys with
them. Within each, keys of fewer columns come first. Those of equally many are ordered by their last
column, then by the last but one, in the order of preference: texts, dates and years, then whole
numbers, then the others, each from left to right.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import IntEnum
from itertools import combinations, islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.composite import (
    DEFAULT_KEYS,
    DEFAULT_MAX_COLUMNS,
    DEFAULT_NEARLY,
    require_key_options,
)
from pexeso.composite.unique_columns import (
    MISSING,
    UniqueSearch,
    count_tuples,
    first_of_equal_rows,
    width_of,
)
from pexeso.errors import InputError, QueryError
from pexeso.lake.choose import ColumnProfile, ColumnRules, profile_columns
from pexeso.lake.columns import label_columns, spec_of
from pexeso.lake.containers.reader import read_table
from pexeso.lake.frames.tables import ACCEPTED, AsTables, frame_of
from pexeso.lake.readers.options import AS_FOUND, ReadingOptions
from pexeso.lake.tokens import key_texts, texts_of_cells
from pexeso.runtime.formatting import Shown, many, named, percent, plain

_WHOLE = r"^[0-9]+(\.0+)?$"
_MIN_WHOLE = 0.95
_MIN_FILLED = 0.5
_MAX_DIGITS = 18  # Longer numbers, which are no counts of anything, may not fit into 64 bits.

_YEARS = (1000, 2100)


class KeyKind(IntEnum):
    """Kinds of columns, those first that keys are made of."""

    TEXT = 0
    WHOLE = 1
    ROW_NUMBER = 2
    SPREAD = 3
    DECIMAL = 4
    FREE_TEXT = 5
    EMPTY = 6

    @property
    def rank(self) -> int:
        """The kinds that are preferred alike have the same."""
        return min(int(self), int(KeyKind.ROW_NUMBER))


# What a column holds that is rarely one of a key.
RARELY = {
    KeyKind.ROW_NUMBER: "row numbers",
    KeyKind.SPREAD: "spread whole numbers",
    KeyKind.DECIMAL: "decimal or formatted numbers",
    KeyKind.FREE_TEXT: "free text",
    KeyKind.EMPTY: "nothing",
}


def column_kinds(columns: Sequence[pa.StringArray]) -> list[KeyKind]:
    profiles = profile_columns(columns)
    return [
        _kind(position, column, profile)
        for position, (column, profile) in enumerate(zip(columns, profiles, strict=True))
    ]


def _kind(position: int, column: pa.StringArray, profile: ColumnProfile) -> KeyKind:
    if profile.kind == "empty":
        return KeyKind.EMPTY
    if profile.kind != "number":
        is_long = profile.median_tokens > ColumnRules.max_median_tokens
        return KeyKind.FREE_TEXT if is_long else KeyKind.TEXT
    texts = pc.utf8_trim_whitespace(column.drop_null())
    distinct = texts.unique()
    whole = distinct.filter(pc.match_substring_regex(distinct, _WHOLE))
    if len(whole) < _MIN_WHOLE * len(distinct):
        return KeyKind.DECIMAL
    digits = pc.replace_substring_regex(whole, r"\.0+$", "")
    lengths = pc.min_max(pc.utf8_length(digits)).as_py()
    if lengths["max"] > _MAX_DIGITS:
        return KeyKind.WHOLE
    numbers = digits.cast(pa.int64()).to_numpy()
    smallest, largest = int(numbers.min()), int(numbers.max())
    if smallest >= _YEARS[0] and largest <= _YEARS[1]:
        return KeyKind.TEXT
    if _counts_rows(texts, numbers, len(column)):
        return KeyKind.ROW_NUMBER
    is_filled = len(np.unique(numbers)) >= _MIN_FILLED * (largest - smallest + 1)
    if position == 0 or lengths["min"] == lengths["max"] or is_filled:
        return KeyKind.WHOLE
    return KeyKind.SPREAD


def _counts_rows(texts: pa.StringArray, numbers: np.ndarray, n_rows: int) -> bool:
    """Return whether a column without gaps and repeats counts its rows from 0 or 1."""
    return (
        len(texts) == len(numbers) == n_rows
        and numbers[0] in (0, 1)
        and bool((np.diff(numbers) == 1).all())
    )


# What notebooks show of each key.
KEY_FIELDS = ["key", "kind", "uniqueness", "distinct", "repeated", "missing"]

_WORDS = {"unique": "unique", "nearly": "nearly unique"}

MIN_ROWS = 5  # Of fewer rows almost any column is unique.


@dataclass(frozen=True)
class Uniqueness:
    """How far some columns tell the rows of a table apart.

    Attributes
    ----------
    columns : tuple of str
        Labels, in the order of the table; see `pexeso.lake.columns.label_columns`.
    distinct : int
        Distinct tuples of values.
    repeated : int
        Rows whose tuple an earlier row has.
    missing : int
        Rows without a value in one of the columns.
    uniqueness : float
        Distinct tuples as a share of the rows with all values; 0 without any.
    example : tuple of str
        The most frequent tuple where one is repeated, as its first row writes it; else empty.
    example_rows : int
        Rows with that tuple.
    """

    columns: tuple[str, ...]
    distinct: int
    repeated: int
    missing: int
    uniqueness: float
    example: tuple[str, ...]
    example_rows: int


@dataclass(frozen=True, repr=False)
class CandidateKey(Shown, Uniqueness):
    """A proposed key.

    Attributes
    ----------
    kind : {"unique", "nearly"}
    positions : tuple of int
        The columns by their positions in the table, from 0.
    rarely_keys : dict of str to str
        For each of its columns that is rarely one of a key, what it holds.
    smaller : tuple of Uniqueness
        The same of every smaller combination of these columns: why it is no key. The most columns
        come first.
    """

    kind: str
    positions: tuple[int, ...]
    rarely_keys: dict[str, str]
    smaller: tuple[Uniqueness, ...]

    def _summary(self) -> str:
        return f"{plain(self.spec)}, {_WORDS[self.kind]} ({percent(self.uniqueness)})"

    def _shown(self) -> tuple[list[str], list[list[Any]]]:
        return KEY_FIELDS, [_key_row(self)]

    @property
    def spec(self) -> str:
        """The columns as one text, as `pexeso.lake.columns.names_in` reads it."""
        return spec_of(self.columns)


@dataclass(frozen=True, repr=False)
class FoundKeys(AsTables):
    """The keys proposed for a table, the best first.

    Attributes
    ----------
    table : str or None
        Its file.
    rows : int
        All rows of the table.
    empty_rows, duplicate_rows : int
        Those without any value; those equal to an earlier one in all columns. The others count.
    keys : tuple of CandidateKey
    reason : str or None
        Why there is no key.
    notes : tuple of str
        What else is to be known, such as combinations that were not looked at.
    """

    table: str | None
    rows: int
    empty_rows: int
    duplicate_rows: int
    keys: tuple[CandidateKey, ...]
    reason: str | None
    notes: tuple[str, ...]

    # What `to_pandas` and the others tell of each key.
    fields = (*KEY_FIELDS, "columns")

    def _table_rows(self) -> list[dict[str, Any]]:
        rows = [{"key": key.spec, **vars(key)} for key in self.keys]
        return [{name: row[name] for name in self.fields} for row in rows]

    def _field_types(self) -> Mapping[str, pa.DataType]:
        counts = dict.fromkeys(("distinct", "repeated", "missing"), pa.int64())
        texts = dict.fromkeys(("key", "kind"), pa.string())
        return {**texts, **counts, "uniqueness": pa.float64(), "columns": pa.list_(pa.string())}

    def _summary(self) -> str:
        if not self.keys:
            return f"no key: {plain(self.reason or '')}"
        best = named([key.spec for key in self.keys])
        return f"{many(len(self.keys), 'key')} of {many(self.rows, 'row')}: {best}"

    def _shown(self) -> tuple[list[str], list[list[Any]]]:
        return KEY_FIELDS, [_key_row(key) for key in self.keys]

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form."""
        return asdict(self) | {"keys": [{"key": key.spec, **asdict(key)} for key in self.keys]}


def _key_row(key: CandidateKey) -> list[Any]:
    counts = key.distinct, key.repeated, key.missing
    return [key.spec, key.kind, percent(key.uniqueness), *counts]


def find_keys(
    table: Any,
    *,
    max_columns: int = DEFAULT_MAX_COLUMNS,
    nearly: float = DEFAULT_NEARLY,
    k: int = DEFAULT_KEYS,
    reading: ReadingOptions = AS_FOUND,
) -> FoundKeys:
    """Propose keys for a table: the fewest columns that tell its rows apart.

    Parameters
    ----------
    table : path, or table
        See `pexeso.lake.frames.tables.frame_of`.
    max_columns : int
        Most columns of a key, from 1 to 5.
    nearly : float
        In (0, 1]. Where no key is unique, propose those that tell this share of the rows apart,
        each complete; 1: none.
    k : int
        Most keys, from 1 on.
    reading : ReadingOptions
        How to read a file of delimited text; what is not set is found.

    Returns
    -------
    FoundKeys
        Without keys it has the reason.

    Raises
    ------
    TableReadError
        The file cannot be read as a table.
    InputError
        An argument is out of its range, or `table` is none.

    Notes
    -----
    Combinations of the first 1,000 columns by twos and threes are looked at, of 264 by fours and of
    121 by fives, in the order of preference; 200,000,000 rows are read at most for each group of
    keys. The notes of the answer say what was left out. Memory: about 10 bytes a cell, 100 a row,
    and 15 MB where 1,000 columns are combined, not counting the texts.

    Examples
    --------
    >>> table = pa.table({"country": ["fr", "fr", "it", "it", "it"],
    ...                   "year": [2001, 2002, 2001, 2002, 2003]})
    >>> [key.columns for key in find_keys(table).keys]
    [('country', 'year')]
    """
    require_key_options(max_columns, nearly, k)
    return _Table(table, reading).find_keys(max_columns, nearly, k)


def choose_key(table: Any, **options: Any) -> CandidateKey:
    """Return the first key that `find_keys` proposes, if it has no columns that are rarely keys."""
    proposal = find_keys(table, k=1, **options)
    reason = proposal.reason
    if proposal.keys:
        key = proposal.keys[0]
        if not key.rarely_keys:
            return key
        held = ", ".join(f"{column!r} ({what})" for column, what in key.rarely_keys.items())
        reason = f"the best combination, {key.spec}, has columns that are rarely keys: {held}."
    where = "the table" if proposal.table is None else f"'{proposal.table}'"
    raise QueryError(
        f"No key was found for {where}: {reason} Name the columns of the key yourself."
    )


class _Table:
    def __init__(self, table: Any, reading: ReadingOptions) -> None:
        self.file, names, self.columns = _columns_of(table, reading)
        self.labels = label_columns(names)
        self.n_rows = len(self.columns[0]) if self.columns else 0
        codes = np.empty((len(self.columns), self.n_rows), np.int32)
        for position, column in enumerate(self.columns):
            numbers = key_texts(column).dictionary_encode().indices
            codes[position] = numbers.fill_null(MISSING).to_numpy()
        filled_rows = np.flatnonzero((codes != MISSING).any(axis=0))
        self.n_empty = self.n_rows - len(filled_rows)
        codes = codes[:, filled_rows]
        # Columns of many values first: they leave few rows to compare.
        n_values = codes.max(axis=1, initial=MISSING)
        first = first_of_equal_rows(codes[np.argsort(-n_values, kind="stable")])
        self.codes, self.rows = codes[:, first], filled_rows[first]
        self.n_duplicates = len(filled_rows) - len(first)

    def find_keys(self, max_columns: int, nearly: float, k: int) -> FoundKeys:
        notes: list[str] = []
        keys: list[CandidateKey] = []
        reason = self._why_not()
        if reason is None:
            keys = list(islice(self._keys(max_columns, nearly, notes), k))
            reason = None if keys else _none(max_columns, nearly, is_whole=not notes)
        counts = self.n_rows, self.n_empty, self.n_duplicates
        return FoundKeys(self.file, *counts, tuple(keys), reason, tuple(notes))

    def _why_not(self) -> str | None:
        if not self.n_rows:
            return "the table has no rows."
        if not len(self.rows):
            return "no cell of the table has a value."
        if len(self.rows) < MIN_ROWS:
            return (
                f"the table has too few rows to tell, {len(self.rows)} that differ; at least "
                f"{MIN_ROWS} are needed."
            )
        return None

    def _keys(self, max_columns: int, nearly: float, notes: list[str]) -> Iterator[CandidateKey]:
        kinds = column_kinds(self.columns)
        order = sorted(range(len(kinds)), key=lambda position: (kinds[position].rank, position))
        n_usual = sum(kind not in RARELY for kind in kinds)
        codes, n = self.codes[order], self.codes.shape[1]

        def keys_of(search: UniqueSearch, kind: str, begin: int = 0) -> Iterator[CandidateKey]:
            for size in range(1, max_columns + 1):
                _note_width(search, size, notes)
                for columns in search.of_size(size, begin):
                    yield self._key(kind, [order[column] for column in columns], kinds)
            if not search.is_whole:
                notes.append(
                    f"{search.compared:,} combinations were compared for {_WORDS[kind]} keys, in "
                    "the order of preference; those behind them were not looked at."
                )

        exact = UniqueSearch(codes[:n_usual], n)
        yield from keys_of(exact, "unique")
        needed = max(1, int(np.ceil(nearly * n - 1e-9)))
        if not exact.keys and needed < n:
            yield from keys_of(UniqueSearch(codes[:n_usual], needed), "nearly")
        if exact.is_whole:  # else they might hold a smaller one that was not looked at
            others = UniqueSearch(codes, n)
            others.keys += exact.keys
            yield from keys_of(others, "unique", n_usual)

    def _key(self, kind: str, columns: list[int], kinds: list[KeyKind]) -> CandidateKey:
        positions = tuple(sorted(columns))
        rarely = {
            self.labels[position]: RARELY[kinds[position]]
            for position in positions
            if kinds[position] in RARELY
        }
        smaller = tuple(
            self._uniqueness(part)
            for size in range(len(positions) - 1, 0, -1)
            for part in combinations(positions, size)
        )
        return CandidateKey(
            **vars(self._uniqueness(positions)),
            kind=kind,
            positions=positions,
            rarely_keys=rarely,
            smaller=smaller,
        )

    def _uniqueness(self, positions: tuple[int, ...]) -> Uniqueness:
        counts = count_tuples(self.codes, positions)
        example: tuple[str, ...] = ()
        if counts.repeated:
            row = int(self.rows[counts.row])
            cells = (self.columns[position].slice(row, 1) for position in positions)
            example = tuple(texts_of_cells(cell)[0].as_py().strip() for cell in cells)
        return Uniqueness(
            columns=tuple(self.labels[position] for position in positions),
            distinct=counts.distinct,
            repeated=counts.repeated,
            missing=counts.missing,
            uniqueness=counts.distinct / max(1, counts.distinct + counts.repeated),
            example=example,
            example_rows=counts.same if counts.repeated else 0,
        )


def _none(max_columns: int, nearly: float, *, is_whole: bool) -> str:
    size_text = f"up to {max_columns} columns" if max_columns > 1 else "1 column"
    share = "all rows" if nearly == 1 else f"{percent(nearly)} of the rows"
    if is_whole:
        return f"no combination of {size_text} tells {share} apart."
    return f"none of the combinations of {size_text} that were looked at tells {share} apart."


def _note_width(search: UniqueSearch, size: int, notes: list[str]) -> None:
    n_columns, width = search.n_columns, width_of(size)
    note = (
        f"Of combinations of {size} columns those with the last {n_columns - width:,} of "
        f"{n_columns:,} columns, in the order of preference, were not looked at."
    )
    if width < n_columns and note not in notes:
        notes.append(note)


def _columns_of(
    table: Any, reading: ReadingOptions
) -> tuple[str | None, list[str], list[pa.Array]]:
    if isinstance(table, str | os.PathLike):
        read = read_table(table, options=reading)
        return os.fspath(table), read.names, list(read.columns)
    frame = frame_of(table)
    if frame is None:
        raise InputError(
            f"Keys are found for a table: a path, {ACCEPTED}. Got {type(table).__name__}."
        )
    reading.require_none("a table in memory")
    labels = label_columns(frame.names)
    columns = zip(frame.arrow_columns(), labels, strict=True)
    return None, list(frame.names), [_texts(*pair) for pair in columns]


def _texts(column: pa.Array | pa.ChunkedArray, label: str) -> pa.StringArray:
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        return texts_of_cells(column).cast(pa.string())
    except InputError as error:
        raise InputError(f"Column {label!r} cannot be part of a key. {error}") from error
