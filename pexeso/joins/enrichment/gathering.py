"""Gathering of columns from found tables, one table at a time.

Columns worth adding are taken in the order of the user's rows; of the others the reason why not is
kept.

Memory: the columns added so far, at most 80 kB of each more to compare it with (`COMPARED_ROWS`),
and one found table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import ColumnNotFoundError, PlaceError, TableReadError
from pexeso.joins.enrichment.columns import (
    FEW_NUMBERS,
    NUMBER,
    Column,
    Compared,
    column_by_key,
    column_of_lists,
    column_of_values,
    compared_rows,
    trimmed,
)
from pexeso.joins.enrichment.rules import (
    CONSTANT,
    COPY,
    EMPTY,
    JOIN_COLUMN,
    MISSING,
    SAID,
    TARGET,
    EnrichmentRules,
)
from pexeso.joins.measures.correlation import gain_of_column
from pexeso.lake.frames.columns import column_texts
from pexeso.store.io.wide_offsets import take_wide

OWN_TABLE = "it holds a copy of every other column of yours: your own table, or a version of it"


class FoundTable(Protocol):
    """A column of the lake that the user's key can be joined with, such as `pexeso.Match`."""

    @property
    def table(self) -> str:
        """Path of the table, relative to the lake."""

    @property
    def column(self) -> str:
        """The column's name."""

    @property
    def joinability(self) -> float:
        """Share of the user's key that it joins."""

    @property
    def join(self) -> Callable[..., Any]:
        """Join a table as `pexeso.results.matches.Match.join` does."""


@dataclass(frozen=True)
class AddedColumn:
    """A column that was added, and where it is from.

    Attributes
    ----------
    name : str
        In the enriched table.
    table, column : str
        Of the lake.
    key : str
        The column of that table that was joined on.
    joinability : float
        Share of the user's rows with a match there, as the search counted it.
    kind : {"number", "text"}
        The mean of numbers, or the first text that is not empty.
    coverage : float
        Share of the user's rows with a cell.
    distinct : int
        Different cells.
    gain : float or None
        What it tells of the target beyond chance, in bits, times the unit of the target where that
        is an amount; see `pexeso.joins.measures.correlation`. None without a target.
    """

    name: str
    table: str
    column: str
    key: str
    joinability: float
    kind: str
    coverage: float
    distinct: int
    gain: float | None = None


@dataclass(frozen=True)
class LeftOutColumn:
    """A column of a found table that was not added.

    Attributes
    ----------
    table, column : str
    rule : str
        One of `pexeso.joins.enrichment.rules.SAID`.
    detail : str
        A sentence.
    """

    table: str
    column: str
    rule: str
    detail: str


@dataclass(frozen=True)
class JoinedTable:
    """A found table.

    Attributes
    ----------
    table, key : str
        The table, and its column that was joined on.
    joinability : float
    added : int
        How many of its columns were added.
    reason : str or None
        Why the table was left out as a whole.
    """

    table: str
    key: str
    joinability: float
    added: int = 0
    reason: str | None = None


@dataclass
class _Mine:
    """The user's table, as found columns are compared with it."""

    texts: pa.StringArray
    key: pa.Int32Array
    others: dict[str, list[Compared]]
    key_column: Compared
    target: Compared | None
    of_key: np.ndarray
    target_column: Column | None = None

    def gain_of(self, column: Column) -> float | None:
        """Return what a found column tells of the target beyond chance."""
        target = self.target_column
        if target is None:
            return None
        keys = pc.fill_null(self.key, -1).to_numpy(zero_copy_only=False)
        return gain_of_column(
            target.cells,
            column.cells,
            keys.astype(np.int64),
            numeric_target=target.kind == NUMBER and target.distinct > FEW_NUMBERS,
            numeric_column=column.kind == NUMBER,
        )


@dataclass
class Gathered:
    """What was gathered so far."""

    names: list[str]
    cells: list[pa.Array] = field(default_factory=list)
    added: list[AddedColumn] = field(default_factory=list)
    left_out: list[LeftOutColumn] = field(default_factory=list)
    tables: list[JoinedTable] = field(default_factory=list)
    compared: dict[str, Compared] = field(default_factory=dict)

    def order_by_gain(self) -> None:
        """Put columns that tell most of the target first."""
        order = sorted(range(len(self.added)), key=lambda at: -(self.added[at].gain or 0.0))
        self.added = [self.added[at] for at in order]
        self.cells = [self.cells[at] for at in order]


def gather(
    columns: dict[str, Any],
    key: str,
    target: str | None,
    matches: Iterable[FoundTable],
    rules: EnrichmentRules,
    *,
    exclude_self: bool = True,
) -> Gathered:
    """Gather columns from found tables.

    With a target, columns that tell most of it come first.

    Returns
    -------
    Gathered
        `cells` has an array of length n for each of `added`.
    """
    own_table = _read_mine(columns, key, target, rules)
    gathered = Gathered(list(columns))
    first_error = None
    for match in matches:
        try:
            lists = match.join(
                pa.table({"": own_table.texts}), 0, aggregate="list", provenance=()
            )  # without a name, so that no found column must give way
        except (TableReadError, PlaceError, ColumnNotFoundError) as error:
            first_error = first_error or error
            gathered.tables.append(
                JoinedTable(match.table, match.column, match.joinability, reason=str(error))
            )
            continue
        _take(
            gathered,
            match,
            dict(_columns_of(lists, own_table.key, rules)),
            own_table,
            rules,
            exclude_self,
        )
    if first_error is not None and all(table.reason for table in gathered.tables):
        raise first_error
    if target is not None:
        gathered.order_by_gain()
    return gathered


def _read_mine(
    columns: dict[str, Any], key: str, target: str | None, rules: EnrichmentRules
) -> _Mine:
    encoded = column_texts(columns[key]).dictionary_encode()
    # Rows of one key that differ in case alone are joined alike, here and by the lake.
    by_case = (
        pc.utf8_lower(trimmed(encoded.dictionary)).dictionary_encode().indices.take(encoded.indices)
    )
    others: dict[str, list[Compared]] = {}
    for name, values in columns.items():
        if name != key:
            column = column_of_values(values, rules.min_number_fraction)
            others[name] = [Compared.of(column), Compared.of(column_by_key(column, by_case))]
    own_key = Compared.of(Column("text", take_wide(trimmed(encoded.dictionary), encoded.indices)))
    own_target = None if target is None else others[target][1]
    keys = by_case.take(pa.array(compared_rows(len(by_case))))
    _, of_key = np.unique(pc.fill_null(keys, -1).to_numpy(zero_copy_only=False), return_index=True)
    of_target = (
        None if target is None else column_of_values(columns[target], rules.min_number_fraction)
    )
    return _Mine(
        encoded.dictionary, encoded.indices, others, own_key, own_target, of_key, of_target
    )


def _columns_of(
    lists: pa.Table, key: pa.Int32Array, rules: EnrichmentRules
) -> Iterator[tuple[str, Column]]:
    for name, cells in list(zip(lists.column_names, lists.columns, strict=True))[1:]:
        by_key = column_of_lists(cells.combine_chunks(), rules.min_number_fraction)
        yield name, by_key.take(key)


def _take(
    gathered: Gathered,
    match: FoundTable,
    columns: dict[str, Column],
    own_table: _Mine,
    rules: EnrichmentRules,
    exclude_self: bool,
) -> None:
    compared = {name: Compared.of(column) for name, column in columns.items()}
    if exclude_self and _is_own(own_table, list(compared.values()), rules):
        gathered.tables.append(
            JoinedTable(match.table, match.column, match.joinability, reason=OWN_TABLE)
        )
        return
    n_before = len(gathered.added)
    joined = {f"{match.table}:{match.column}": compared[match.column]}
    for name, column in columns.items():
        reason = _why_not(column, compared[name], {**gathered.compared, **joined}, own_table, rules)
        if name == match.column:
            reason = JOIN_COLUMN, f"{SAID[JOIN_COLUMN]}."
        if reason is not None:
            gathered.left_out.append(LeftOutColumn(match.table, name, *reason))
            continue
        new = _free_name(f"{match.table}:{name}", gathered.names)
        coverage = column.filled / len(column.cells)
        gathered.names.append(new)
        gathered.cells.append(column.cells)
        gathered.compared[new] = compared[name]
        gathered.added.append(
            AddedColumn(
                new,
                match.table,
                name,
                match.column,
                match.joinability,
                column.kind,
                coverage,
                column.distinct,
                own_table.gain_of(column),
            )
        )
    gathered.tables.append(
        JoinedTable(match.table, match.column, match.joinability, len(gathered.added) - n_before)
    )


def _is_own(own_table: _Mine, compared: Sequence[Compared], rules: EnrichmentRules) -> bool:
    """Return whether a found table holds a copy of the user's table.

    Each column of the user's that is not constant, the key apart, must have a copy among
    `compared`; there must be at least one such column.
    """
    telling = [forms for forms in own_table.others.values() if _is_telling(forms[0])]
    return bool(telling) and all(
        any(
            candidate.says_the_same(form, rules.min_copy_fraction)
            for candidate in compared
            for form in forms
        )
        for forms in telling
    )


def _is_telling(column: Compared) -> bool:
    values = column.values[column.filled]
    return bool(len(values)) and bool((values != values[0]).any())


def _why_not(
    column: Column,
    compared: Compared,
    added: dict[str, Compared],
    own_table: _Mine,
    rules: EnrichmentRules,
) -> tuple[str, str] | None:
    """Return the rule and a sentence why a column is left out, or None if it is worth adding."""
    n_rows = len(column.cells)
    if not column.filled:
        return EMPTY, f"{SAID[EMPTY]}."
    if column.filled < rules.min_coverage * n_rows:
        return (
            MISSING,
            f"{SAID[MISSING]}: it covers {column.filled / n_rows:.0%}, less than "
            f"{rules.min_coverage:.0%}.",
        )
    if column.distinct < 2:
        return CONSTANT, f"{SAID[CONSTANT]}: {str(pc.first(column.cells).as_py())!r}."
    if own_table.target is not None and tells_target(
        compared, own_table.target, own_table.of_key, rules
    ):
        return TARGET, f"{SAID[TARGET]}: with it a model would be told what it is to predict."
    # Pairs, not a dictionary: a column of yours may be called as one that is added, or "the key".
    for name, others in (
        ("the key", [own_table.key_column]),
        *own_table.others.items(),
        *((added_name, [one]) for added_name, one in added.items()),
    ):
        if any(compared.says_the_same(other, rules.min_copy_fraction) for other in others):
            return COPY, f"{SAID[COPY]}: {name}."
    return None


def _free_name(name: str, used_names: Sequence[str]) -> str:
    endings = ("" if number == 1 else f"_{number}" for number in count(1))
    return next(free for ending in endings if (free := name + ending) not in used_names)


LEAST_KEYS = 10
KEYS_A_VALUE = 5


def tells_target(
    column: Compared, target: Compared, of_key: np.ndarray, rules: EnrichmentRules
) -> bool:
    """Return whether a column gives the target away, as `EnrichmentRules` says.

    Each key counts once: all rows of one have the same cell, and among few keys any column would
    seem to tell a target that hangs on the key.

    Parameters
    ----------
    of_key : int64 (k,)
        A row of each key, among those compared.
    """
    rows = of_key[(column.filled & target.filled)[of_key]]
    if len(rows) < LEAST_KEYS:
        return False
    target_values, column_values = target.values[rows], column.values[rows]
    if target.kind == NUMBER and len(np.unique(target_values)) > FEW_NUMBERS:
        same = np.count_nonzero(column.same_in(target)[rows])
        return column.kind == NUMBER and (
            same >= rules.min_target_fraction * len(target_values)
            or abs(_rank_correlation(target_values, column_values)) >= rules.min_target_correlation
        )
    return _tells_class(column_values, target_values, rules.min_target_agreement)


def _rank_correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Return Spearman's correlation, 0 where either is constant."""
    from scipy.stats import rankdata

    ranks = np.stack([rankdata(one), rankdata(other)])
    ranks -= ranks.mean(axis=1, keepdims=True)
    spread = np.sqrt((ranks**2).sum(axis=1).prod())
    return float((ranks[0] * ranks[1]).sum() / spread) if spread > 0 else 0.0


def _tells_class(values: np.ndarray, classes: np.ndarray, min_agreement: float) -> bool:
    value_names, value = np.unique(values, return_inverse=True)
    class_names, of_class = np.unique(classes, return_inverse=True)
    if len(class_names) < 2 or len(values) < KEYS_A_VALUE * len(value_names):
        return False
    counts = np.zeros((len(value_names), len(class_names)))
    np.add.at(counts, (value, of_class), 1)
    # A value goes with the class that most of its rows have. The share is of each class, so that a
    # frequent class alone is no agreement.
    best = counts.argmax(axis=1)
    right = np.bincount(best, weights=counts.max(axis=1), minlength=len(class_names)) / counts.sum(
        axis=0
    )
    return bool(right.mean() >= min_agreement)
