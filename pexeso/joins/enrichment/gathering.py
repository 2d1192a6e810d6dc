"""Gathering of columns from found tables, one table at a time.

Columns are read as numbers or as text, and compared. Those worth adding are taken in the order of
the user's rows; of the others the reason why not is kept.

Memory: the columns added so far, at most 80 kB of each more to compare it with (`COMPARED_ROWS`),
and one found table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embed.words import hash_strings
from pexeso.errors import ColumnNotFoundError, PlaceError, TableReadError
from pexeso.joins.aggregation import Groups, aggregated, read_numbers
from pexeso.joins.measures import gain_of_column
from pexeso.joins.options import free_name
from pexeso.lake.frames.columns import arrow_column, column_texts, texts_of_cells
from pexeso.lake.frames.tables import NOT_OF_ARROW
from pexeso.runtime.checks import require_share
from pexeso.runtime.formatting import plain_scalar
from pexeso.store.arrays import take_wide

if TYPE_CHECKING:
    from pexeso.results.matches import Match


NUMBER = "number"
TEXT = "text"

# Most rows by which columns are compared: so many, spread evenly, show whether nine rows in ten
# are the same.
COMPARED_ROWS = 10_000

# A target with more different numbers than this is one of amounts; with fewer, equal numbers in
# two columns may be chance.
FEW_NUMBERS = 10

_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Column:
    """A column of n rows, of numbers or texts, null where there is no cell."""

    kind: str
    cells: pa.Array

    @property
    def filled(self) -> int:
        return len(self.cells) - self.cells.null_count

    @property
    def distinct(self) -> int:
        return pc.count_distinct(self.cells).as_py()

    def take(self, rows: pa.Array) -> Column:
        return Column(self.kind, take_wide(self.cells, rows))


def kind_of(cells: pa.StringArray, min_number_fraction: float) -> str:
    present = len(cells) - cells.null_count
    numbers = read_numbers(cells)
    return (
        NUMBER
        if present and len(cells) - numbers.null_count >= min_number_fraction * present
        else TEXT
    )


def column_of_values(values: Any, min_number_fraction: float) -> Column:
    """Read a column of the user's table.

    Numbers are taken as they are; all else is read through its text, as cells of the lake are.
    """
    numbers = _numbers_of(values)
    if numbers is not None:
        return Column(NUMBER, numbers)
    texts = trimmed(texts_of_cells(values))
    kind = kind_of(texts, min_number_fraction)
    return Column(kind, read_numbers(texts) if kind == NUMBER else texts)


def _numbers_of(values: Any) -> pa.DoubleArray | None:
    """Return a column of a numeric type as float64, or None for other types.

    Values that are not finite become null.
    """
    try:
        array = arrow_column(values)
    except NOT_OF_ARROW:
        return None  # mixed types, of which texts can be made all the same
    if not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        return None
    cells = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    cells = pc.cast(cells, pa.float64(), safe=False)
    return pc.if_else(pc.is_finite(cells), cells, pa.scalar(None, pa.float64()))


def trimmed(cells: pa.StringArray) -> pa.StringArray:
    """Leave out white space around cells, and make those of nothing else null."""
    cells = pc.utf8_trim_whitespace(cells)
    return pc.if_else(pc.equal(cells, ""), pa.scalar(None, cells.type), cells)


def _has_open_mark(column: Column, lists: pa.ChunkedArray) -> bool:
    is_open = pc.match_substring_regex(pc.list_flatten(lists), r"[0-9][.,][0-9]{3}(?:[^0-9]|$)")
    return column.kind == NUMBER and bool(pc.any(is_open).as_py())


def column_of_lists(lists: pa.ListArray, min_number_fraction: float) -> Column:
    """Make one cell of each row's: the mean of numbers, the first text."""
    cells, parents = trimmed(pc.list_flatten(lists)), pc.list_parent_indices(lists)
    present = pc.is_valid(cells)
    cells, parents = cells.filter(present), parents.filter(present).to_numpy(zero_copy_only=False)
    kind = kind_of(cells, min_number_fraction)
    groups = Groups.of(parents)
    values = aggregated(cells, groups, "mean" if kind == NUMBER else "first")
    position = np.full(len(lists), -1, dtype=np.int64)
    position[parents[groups.starts]] = np.arange(len(groups))
    return Column(kind, take_wide(values, pa.array(position, mask=position < 0)))


def column_by_key(column: Column, key: pa.Int32Array) -> Column:
    """Compute, for each row, the aggregate of the rows of its key."""
    keys = pc.fill_null(key, -1).to_numpy(zero_copy_only=False)
    order = np.argsort(keys, kind="stable")
    order = order[
        (keys[order] >= 0) & column.cells.is_valid().to_numpy(zero_copy_only=False)[order]
    ]
    groups = Groups.of(keys[order])
    if column.kind == TEXT:
        values = column.cells.take(pa.array(order[groups.starts]))
    else:
        numbers = column.cells.to_numpy(zero_copy_only=False)[order]
        means = np.bincount(groups.of_row, weights=numbers, minlength=len(groups)) / np.bincount(
            groups.of_row
        )
        values = pa.array(means.astype(np.float64))
    position = np.full(
        int(keys.max(initial=-1)) + 2, -1, dtype=np.int64
    )  # the last is that of rows without a key
    position[keys[order][groups.starts]] = np.arange(len(groups))
    rows = position[keys]
    return Column(column.kind, take_wide(values, pa.array(rows, mask=rows < 0)))


def compared_rows(n_rows: int) -> np.ndarray:
    """Return the rows, at most `COMPARED_ROWS`, for comparing the columns of a table; int64."""
    return np.linspace(0, n_rows - 1, min(n_rows, COMPARED_ROWS)).astype(np.int64)


@dataclass(frozen=True)
class Compared:
    """Some rows of a column, in a form for quick comparison.

    The values are numbers, or hashes of text in lower case; NaN and 0 where there is no cell.
    """

    kind: str
    values: np.ndarray

    @classmethod
    def of(cls, column: Column) -> Compared:
        cells = column.cells.take(pa.array(compared_rows(len(column.cells))))
        if column.kind == NUMBER:
            return cls(NUMBER, cells.to_numpy(zero_copy_only=False).astype(np.float64))
        encoded = pc.utf8_lower(cells).dictionary_encode()
        hashes = np.append(hash_strings(encoded.dictionary.cast(pa.large_string())), np.uint64(0))
        positions = pc.fill_null(encoded.indices, len(hashes) - 1).to_numpy(zero_copy_only=False)
        return cls(TEXT, hashes[positions])

    @property
    def filled(self) -> np.ndarray:
        return ~np.isnan(self.values) if self.kind == NUMBER else self.values != 0

    def same_in(self, other: Compared) -> np.ndarray:
        if self.kind != other.kind:
            return np.zeros(len(self.values), dtype=bool)
        if self.kind == TEXT:
            return self.filled & (self.values == other.values)
        scale = np.maximum(np.abs(self.values), np.abs(other.values))
        with np.errstate(invalid="ignore"):
            return np.abs(self.values - other.values) <= _TOLERANCE * scale

    def says_the_same(self, other: Compared, min_fraction: float) -> bool:
        either = np.count_nonzero(self.filled | other.filled)
        return bool(either) and np.count_nonzero(self.same_in(other)) >= min_fraction * either


JOIN_COLUMN = "join column"
EMPTY = "empty"
CONSTANT = "constant"
MISSING = "missing"
COPY = "copy"
TARGET = "target"

# The rules by name, in the order in which they are tried, and what each of them says of a
# column.
SAID = {
    JOIN_COLUMN: "it is the column joined on",
    EMPTY: "it has no cell for any of your rows",
    MISSING: "it has no cell for too many of your rows",
    CONSTANT: "it has the same cell in all of your rows that it has one for",
    TARGET: "it says what the target says",
    COPY: "it says what another column says",
}


@dataclass(frozen=True)
class EnrichmentRules:
    """When a column of a found table is a number, and when it is left out.

    All shares are of rows of the user's table, in [0, 1].

    Attributes
    ----------
    min_number_fraction : float
        A column holds numbers where at least this share of its cells that are not empty can be read
        as numbers; the other cells are then missing.
    min_coverage : float
        A column that has a cell for a smaller share of the rows is left out: ``missing``.
    min_copy_fraction : float
        Two columns say the same where at least this share of the rows that have a cell in either
        have the same in both: ``copy``.
    min_target_fraction, min_target_correlation, min_target_agreement : float
        A column says what the target says (``target``) where, for the keys that have a cell in
        both, ten at least: (1) for a target of more than ten different numbers, this share of the
        cells is the target's own number; less than `min_copy_fraction`, since some rows may be
        joined wrongly; or (2) for such a target, the ranks of both are correlated as much as this,
        in either direction (Spearman); or (3) for another target, a column with five keys or more a
        value has values that show the class: this share of the keys of each class, on average, has
        a value that goes with no other.

    Examples
    --------
    >>> EnrichmentRules(min_coverage=2)
    Traceback (most recent call last):
        ...
    pexeso.errors.InputError: min_coverage must be a number in [0, 1]. Got 2 instead.
    """

    min_number_fraction: float = 0.9
    min_coverage: float = 0.5
    min_copy_fraction: float = 0.95
    min_target_fraction: float = 0.5
    min_target_correlation: float = 0.99
    min_target_agreement: float = 0.98

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            require_share(name, value, zero=True)
            object.__setattr__(self, name, plain_scalar(value))


def split_rules(options: Mapping[str, Any]) -> tuple[EnrichmentRules, dict[str, Any]]:
    names = EnrichmentRules.__dataclass_fields__
    rules = {name: value for name, value in options.items() if name in names}
    return EnrichmentRules(**rules), {
        name: value for name, value in options.items() if name not in names
    }


OWN_TABLE = (
    "it holds a copy of every other column of your table: the table itself, or a version of it"
)


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
        What it says of the target beyond chance, in bits, times the unit of the target where that
        is an amount; see `pexeso.joins.measures`. None without a target.
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

    table, column: str; rule: str, one of `pexeso.joins.enrichment.gathering.SAID`; detail: str, a
    sentence.
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
    names: list[str]
    cells: list[pa.Array] = field(default_factory=list)
    added: list[AddedColumn] = field(default_factory=list)
    left_out: list[LeftOutColumn] = field(default_factory=list)
    tables: list[JoinedTable] = field(default_factory=list)
    compared: dict[str, Compared] = field(default_factory=dict)


def gather(
    columns: dict[str, Any],
    key: str,
    target: str | None,
    matches: Iterable[Match],
    rules: EnrichmentRules,
    *,
    exclude_self: bool = True,
) -> Gathered:
    own_table = _read_mine(columns, key, target, rules)
    gathered = Gathered(list(columns))
    first_error = None
    for match in matches:
        found_column = match.table, match.column, match.joinability
        # Without a name, so that no found column must give way.
        own_keys = pa.table({"": own_table.texts})
        try:
            lists = match.join(own_keys, 0, aggregate="list", provenance=())
        except (TableReadError, PlaceError, ColumnNotFoundError) as error:
            first_error = first_error or error
            gathered.tables.append(JoinedTable(*found_column, reason=str(error)))
            continue
        columns_by_key = zip(lists.column_names[1:], lists.columns[1:], strict=True)
        added = {
            name: column_of_lists(cells.combine_chunks(), rules.min_number_fraction)
            for name, cells in columns_by_key
        }
        # All of a column says which mark is the decimal one, not the cells of your keys alone.
        if marked := [name for name in added if _has_open_mark(added[name], lists.column(name))]:
            ways = dict.fromkeys(marked, "mean")
            means = match.join(own_keys, 0, aggregate=ways, provenance=())
            added |= {name: Column(NUMBER, means.column(name).combine_chunks()) for name in marked}
        added = {name: column.take(own_table.key) for name, column in added.items()}
        compared = {name: Compared.of(column) for name, column in added.items()}
        if exclude_self and _is_own(own_table, list(compared.values()), rules):
            gathered.tables.append(JoinedTable(*found_column, reason=OWN_TABLE))
            continue
        n_before = len(gathered.added)
        _add_columns(gathered, match, added, compared, own_table, rules)
        n_added = len(gathered.added) - n_before
        gathered.tables.append(JoinedTable(*found_column, n_added))
    if first_error is not None and all(table.reason for table in gathered.tables):
        raise first_error
    if target is not None:
        pairs = list(zip(gathered.added, gathered.cells, strict=True))
        pairs.sort(key=lambda pair: -(pair[0].gain or 0.0))
        gathered.added, gathered.cells = [one for one, _ in pairs], [cells for _, cells in pairs]
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


def _add_columns(
    gathered: Gathered,
    match: Match,
    columns: dict[str, Column],
    compared: dict[str, Compared],
    own_table: _Mine,
    rules: EnrichmentRules,
) -> None:
    """Add the columns of a found table that are worth it, and the reasons why others are not."""
    joined = {f"{match.table}:{match.column}": compared[match.column]}
    for name, column in columns.items():
        reason = _why_not(column, compared[name], {**gathered.compared, **joined}, own_table, rules)
        if name == match.column:
            reason = JOIN_COLUMN, f"{SAID[JOIN_COLUMN]}."
        if reason is not None:
            gathered.left_out.append(LeftOutColumn(match.table, name, *reason))
            continue
        new = free_name(f"{match.table}:{name}", gathered.names.__contains__)
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


def _is_own(own_table: _Mine, compared: Sequence[Compared], rules: EnrichmentRules) -> bool:
    telling = []
    for forms in own_table.others.values():
        values = forms[0].values[forms[0].filled]
        if len(values) and (values != values[0]).any():
            telling.append(forms)
    return bool(telling) and all(
        any(
            candidate.says_the_same(form, rules.min_copy_fraction)
            for candidate in compared
            for form in forms
        )
        for forms in telling
    )


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
    if own_table.target is not None and reveals_target(
        compared, own_table.target, own_table.of_key, rules
    ):
        return TARGET, f"{SAID[TARGET]}: with it a model would be given what it is to predict."
    # Pairs, not a dictionary: your column may be called as one that is added, or "the key".
    for name, others in (
        ("the key", [own_table.key_column]),
        *own_table.others.items(),
        *((added_name, [one]) for added_name, one in added.items()),
    ):
        if any(compared.says_the_same(other, rules.min_copy_fraction) for other in others):
            return COPY, f"{SAID[COPY]}: {name}."
    return None


LEAST_KEYS = 10
KEYS_A_VALUE = 5


def reveals_target(
    column: Compared, target: Compared, of_key: np.ndarray, rules: EnrichmentRules
) -> bool:
    """Return whether a column gives the target away, as `EnrichmentRules` says.

    Each key counts once: all rows of one have the same cell, and among few keys any column would
    seem to show a target that depends on the key.
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
    return _reveals_class(column_values, target_values, rules.min_target_agreement)


def _ranks(numbers: np.ndarray) -> np.ndarray:
    """Return the rank of each number; equal ones share the mean of theirs."""
    _, position, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[position]


def _rank_correlation(one: np.ndarray, other: np.ndarray) -> float:
    ranks = np.stack([_ranks(one), _ranks(other)])
    ranks -= ranks.mean(axis=1, keepdims=True)
    spread = np.sqrt((ranks**2).sum(axis=1).prod())
    return float((ranks[0] * ranks[1]).sum() / spread) if spread > 0 else 0.0


def _reveals_class(values: np.ndarray, classes: np.ndarray, min_agreement: float) -> bool:
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
