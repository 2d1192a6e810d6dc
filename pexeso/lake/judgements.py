"""Judgements of people on pairs of columns and pairs of values, kept beside an index as a table.

``judgements.csv`` lies in the folder of the index and belongs to who judges: no build changes it,
and git can hold it. It has one row a judgement, in the order of entry, and of several on one pair
the last one holds. A row without values judges two columns; with values it judges two values of
these columns, or of all columns where it names none. A pair is the same in both directions.
"""

from __future__ import annotations

import csv
import io
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, fields
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from pexeso.errors import InputError
from pexeso.runtime.formatting import either, shown
from pexeso.runtime.system import EXCLUSIVE, SHARED, lock, open_unlinked, sync
from pexeso.store.files import open_plain, sync_folder, writing
from pexeso.store.manifest import JUDGEMENTS

YES, NO, UNSURE = VERDICTS = ("yes", "no", "unsure")

Column = tuple[str, str]
"""A table and the label of a column. The table is named by its path relative to the lake, and one
outside of the lake by the name of its file."""

ANY: Column = ("", "")
_Side = tuple[Column, str]


@dataclass(frozen=True)
class Judgement:
    """A row of the table.

    Attributes
    ----------
    query_table, query_column, lake_table, lake_column : str
        The two columns; all empty where two values are judged for all columns.
    your_value, lake_value : str
        Both empty where the two columns are judged.
    verdict : {"yes", "no", "unsure"}
        Whether they join, or are the same thing; unsure withdraws an earlier verdict.

    Examples
    --------
    >>> Judgement("orders.csv", "country", "geo/countries.csv", "name", verdict="no").of_values
    False
    """

    query_table: str
    query_column: str
    lake_table: str
    lake_column: str
    your_value: str = ""
    lake_value: str = ""
    verdict: str = UNSURE

    def __post_init__(self) -> None:
        texts = astuple(self)
        if not all(isinstance(text, str) for text in texts):
            raise InputError(f"A judgement is made of texts. Got {shown(texts)}.")
        try:
            "".join(texts).encode("utf-8")
        except UnicodeEncodeError:
            raise InputError(f"A judgement is kept as UTF-8. Got {shown(texts)}.") from None
        if self.verdict not in VERDICTS:
            raise InputError(f"verdict must be {either(VERDICTS)}. Got {shown(self.verdict)}.")
        # Without what was got: who may not see a column may read of a wrong row.
        if any(map(bool, texts[:4])) != all(map(bool, texts[:4])):
            raise InputError("A judgement names both columns, with their tables, or none.")
        if bool(self.your_value) != bool(self.lake_value):
            raise InputError("A judgement has both values, or none where it judges the columns.")
        if not any(texts[:6]):
            raise InputError("A judgement names two columns, two values or both. Got neither.")

    @property
    def query(self) -> Column:
        """The table and label of the query column."""
        return self.query_table, self.query_column

    @property
    def lake(self) -> Column:
        """The table and label of the column of the lake."""
        return self.lake_table, self.lake_column

    @property
    def of_values(self) -> bool:
        """Whether two values are judged, and not the columns."""
        return bool(self.your_value)

    @property
    def pair(self) -> tuple[_Side, ...]:
        """What is judged, the same in both directions."""
        return tuple(sorted([(self.query, self.your_value), (self.lake, self.lake_value)]))


# Of a join that is made although it was rejected.
REJECTED = "A judgement rejects this join, so no search finds it (judgements.csv)."

FIELDS = tuple(field.name for field in fields(Judgement))


@dataclass(frozen=True)
class Judgements:
    """The judgements on pairs of an index; see `read_judgements`.

    Attributes
    ----------
    rows : tuple of Judgement
        In the order in which they were made.
    """

    rows: tuple[Judgement, ...] = ()

    @cached_property
    def latest(self) -> Mapping[tuple[_Side, ...], Judgement]:
        """Of each pair the row that holds."""
        latest: dict[tuple[_Side, ...], Judgement] = {}
        for row in self.rows:
            latest.pop(row.pair, None)
            latest[row.pair] = row
        return latest

    @cached_property
    def columns(self) -> tuple[Judgement, ...]:
        """The rows on pairs of columns that hold and are sure."""
        return tuple(
            row for row in self.latest.values() if not row.of_values and row.verdict != UNSURE
        )

    def verdict(self, judgement: Judgement) -> str | None:
        """Return the verdict that holds on the pair of a judgement; None where there is none."""
        row = self.latest.get(judgement.pair)
        return None if row is None else row.verdict

    def is_open(self, judgement: Judgement) -> bool:
        """Return whether a pair was never judged, or a verdict on it was taken back."""
        return judgement.pair not in self.latest or judgement.pair in self._taken_back

    @cached_property
    def _taken_back(self) -> frozenset[tuple[_Side, ...]]:
        verdicts: dict[tuple[_Side, ...], list[str]] = {}
        for row in self.rows:
            verdicts.setdefault(row.pair, []).append(row.verdict)
        return frozenset(
            pair
            for pair, some in verdicts.items()
            if some[-1] == UNSURE and some[-2:-1] in ([YES], [NO])
        )

    def rejected(self, column: Column | None) -> frozenset[Column]:
        """Return the columns that a column does not join."""
        return self._rejected.get(column, frozenset()) if column else frozenset()

    def value_pairs(self, column: Column | None) -> tuple[tuple[Column, str, str, bool], ...]:
        """Return the judged values of a query column, those for all columns first.

        Each with the column of the lake, or `ANY`, the value of either side, and whether they
        match.
        """
        return (*self._values.get(ANY, ()), *(self._values.get(column, ()) if column else ()))

    @cached_property
    def rejected_pairs(self) -> frozenset[tuple[Column, Column]]:
        """The pairs of columns that do not join, in both directions."""
        return frozenset(
            pair
            for row in self.columns
            if row.verdict == NO
            for pair in _both_ways(row.query, row.lake)
        )

    @cached_property
    def _rejected(self) -> Mapping[Column | None, frozenset[Column]]:
        by_column: dict[Column | None, frozenset[Column]] = {}
        for one, other in self.rejected_pairs:
            by_column[one] = by_column.get(one, frozenset()) | {other}
        return by_column

    @cached_property
    def _values(self) -> Mapping[Column | None, tuple[tuple[Column, str, str, bool], ...]]:
        by_column: dict[Column | None, dict[tuple[Column, str, str], bool]] = {}
        for row in self.latest.values():
            if row.of_values and row.verdict != UNSURE:
                sides = (row.query, row.your_value), (row.lake, row.lake_value)
                for (one, value), (other, match) in _both_ways(*sides):
                    by_column.setdefault(one, {})[other, value, match] = row.verdict == YES
        return {
            column: tuple((*pair, is_match) for pair, is_match in pairs.items())
            for column, pairs in by_column.items()
        }


def _both_ways(one: Any, other: Any) -> tuple[tuple[Any, Any], ...]:
    return ((one, other), (other, one))


NONE = Judgements()


def read_judgements(index: str | os.PathLike[str]) -> Judgements:
    """Return the judgements kept in the folder of an index, read again where the file changed.

    Parameters
    ----------
    index : path

    Returns
    -------
    Judgements
        None of them where the file does not exist.

    Raises
    ------
    InputError
        A row is no judgement, or the file cannot be read.

    Examples
    --------
    >>> read_judgements("no.pexeso").rows
    ()
    """
    path = os.path.join(os.fspath(index), JUDGEMENTS)
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return NONE
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    return _read(path, status.st_mtime_ns, status.st_size, status.st_ino)


@lru_cache(maxsize=8)
def _read(path: str, _modified: int, _size: int, _file: int) -> Judgements:
    rows: Any = None
    try:
        with io.TextIOWrapper(open_plain(Path(path)), "utf-8-sig", newline="") as file:
            lock(file.fileno(), SHARED, wait=True)  # until half a row is a whole one
            rows = csv.reader(file, strict=True)
            return Judgements(tuple(_judgements(rows)))
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    except (ValueError, csv.Error, InputError) as error:
        line = 1 if rows is None else max(rows.line_num, 1)
        raise InputError(
            f"'{path}', line {line}: {str(error).rstrip('.')}. Correct or remove the row; the "
            f"columns are {','.join(FIELDS)}."
        ) from error


def _unreadable(path: str, reason: str) -> InputError:
    return InputError(f"The judgements '{path}' cannot be read: {reason}. It is a CSV file.")


def _judgements(rows: Iterator[list[str]]) -> Iterator[Judgement]:
    header = next(rows, list(FIELDS))
    if tuple(header) != FIELDS:
        raise ValueError(f"the header is {shown(','.join(header))}")
    for row in rows:
        if len(row) not in (0, len(FIELDS)):
            raise ValueError(f"a row has {len(FIELDS)} cells. Got {len(row)}")
        if row:
            yield Judgement(*row)


def record_judgements(index: str | os.PathLike[str], judgements: Iterable[Judgement]) -> None:
    """Append judgements to the table of an index.

    Several processes may do so at the same time: rows are written whole, one process at a time.

    Parameters
    ----------
    index : path
    judgements : iterable of Judgement

    Raises
    ------
    InputError
        The table has a row that is no judgement: nothing is added to it.
    OutputError
        The file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> record_judgements(folder, [Judgement("a.csv", "city", "b.csv", "town", verdict="no")])
    >>> read_judgements(folder).rejected(("b.csv", "town"))
    frozenset({('a.csv', 'city')})
    """
    read_judgements(index)
    path = Path(index, JUDGEMENTS)
    stream = io.StringIO(newline="")
    table = csv.writer(stream, lineterminator="\n")
    table.writerows(astuple(judgement) for judgement in judgements)
    with writing(path):
        descriptor = open_unlinked(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        with open(descriptor, "r+b", buffering=0) as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(None, "it is no plain file", os.fspath(path))
            lock(descriptor, EXCLUSIVE, wait=True)
            size = file.seek(0, os.SEEK_END)
            begin = "" if size else f"{','.join(FIELDS)}\n"
            if size:
                file.seek(size - 1)
                begin = "" if file.read(1) == b"\n" else "\n"
            data = (begin + stream.getvalue()).encode("utf-8")
            try:
                while data:
                    data = data[file.write(data) :]
                sync(descriptor)
            except OSError:
                file.truncate(size)  # else half a row would stay
                raise
        if not size:
            sync_folder(path.parent)
