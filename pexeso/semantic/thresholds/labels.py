"""Labelled pairs: two values that are the same thing or not, or two columns that join or not."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pexeso.errors import InputError, PexesoError, QueryError
from pexeso.lake.containers.reader import read_table
from pexeso.lake.readers.options import AS_FOUND, ReadingOptions
from pexeso.results.query import QueryColumn, read_query

VALUE_HEADER = ("query_value", "lake_value", "same")
COLUMN_HEADER = ("query_column", "lake_column", "same")
YES, NO = ("yes", "y", "true", "1"), ("no", "n", "false", "0")
MAX_ERRORS_SHOWN = 3


@dataclass(frozen=True)
class ValueLabel:
    """Two texts, and whether they are the same thing."""

    query: str
    value: str
    same: bool


@dataclass(frozen=True)
class ColumnLabel:
    """A query column and a column of the lake, by table and name, and whether they join."""

    query: QueryColumn
    table: str
    column: str
    same: bool


Labels = Sequence[ValueLabel] | Sequence[ColumnLabel]


def read_labels(path: str | os.PathLike[str], *, reading: ReadingOptions = AS_FOUND) -> Labels:
    r"""Read a table of labelled pairs.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "labels.csv"
    >>> _ = path.write_text("query_value,lake_value,same\nOslo,OSLO,yes\nOslo,Rome,no\n")
    >>> first, second = read_labels(path)
    >>> first
    ValueLabel(query='Oslo', value='OSLO', same=True)
    >>> second
    ValueLabel(query='Oslo', value='Rome', same=False)
    """
    table = read_table(os.fspath(path), options=reading)
    names = tuple(name.strip().lower() for name in table.names)
    if names not in (VALUE_HEADER, COLUMN_HEADER):
        raise QueryError(
            f"The labels '{path}' must have the header {','.join(VALUE_HEADER)} or "
            f"{','.join(COLUMN_HEADER)}. Got {','.join(table.names)}."
        )
    labels, wrong, queries = [], [], {}
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    for number, (query, value, same) in enumerate(rows, 1):
        try:
            answer = _answer(same)
            if not query or not value:
                raise QueryError("one of the two is empty.")
            if names == VALUE_HEADER:
                labels.append(ValueLabel(query, value, answer))
            else:
                queries.setdefault(query, None)
                queries[query] = queries[query] or read_query(query)
                labels.append(ColumnLabel(queries[query], *_lake_column(value), answer))
        except PexesoError as error:
            wrong.append(f"row {number}: {error}")
    if wrong:
        more = (
            f" And {len(wrong) - MAX_ERRORS_SHOWN:,} more." if len(wrong) > MAX_ERRORS_SHOWN else ""
        )
        raise QueryError(
            f"The labels '{path}' cannot be used: {' '.join(wrong[:MAX_ERRORS_SHOWN])}{more}"
        )
    return labels


def require_labels(labels: Iterable[ValueLabel] | Iterable[ColumnLabel]) -> Labels:
    every = list(labels)
    kinds = {type(label) for label in every}
    if not kinds <= {ValueLabel} and not kinds <= {ColumnLabel}:
        raise InputError(
            "Labels must be all ValueLabel or all ColumnLabel. Got "
            f"{', '.join(sorted(kind.__name__ for kind in kinds))}."
        )
    n_same = sum(label.same for label in every)
    if not 0 < n_same < len(every):
        raise InputError(
            "Labels must be of both kinds: a threshold lies between what is the same and what "
            f"is not. Got {n_same:,} yes and {len(every) - n_same:,} no."
        )
    return every


def _answer(text: str | None) -> bool:
    answer = (text or "").strip().lower()
    if answer not in (*YES, *NO):
        raise QueryError(f"same must be yes or no. Got {text or ''!r}.")
    return answer in YES


def _lake_column(spec: str) -> tuple[str, str]:
    table, colon, column = spec.rpartition(":")
    if not colon or not table:
        raise QueryError(f"a column of the lake is given as TABLE:COLUMN. Got {spec!r}.")
    return table, column
