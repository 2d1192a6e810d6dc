"""What derives a table from another: filters, projections, added rows and columns, noise, copies.

Floats are used only in ways that IEEE 754 rounds exactly, so that all machines agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_TRIES = 20
_MOST_PREDICATES, _MOST_NEW_COLUMNS, _MOST_NOISY_COLUMNS = 3, 3, 2
_UNIFORMS = 12
"""So many uniform draws add up to one that is as good as normal."""

Ranks = dict[str, int]
"""Of the columns of a root, how likely a filter is one on them: 1 is the most likely."""


@dataclass(frozen=True, eq=False)
class Derived:
    """A table, what was done, and whether the source holds it (down), it the source (up), or so."""

    table: pa.Table
    steps: tuple[str, ...]
    expected: str


def root_ranks(rng: np.random.Generator, root: pa.Table) -> Ranks:
    """Rank the columns of a root at random."""
    order = rng.permutation(root.num_columns).tolist()
    return {root.column_names[column]: rank + 1 for rank, column in enumerate(order)}


def zipf_draw(rng: np.random.Generator, n: int) -> int:
    """Draw a number below `n`, its rank by Zipf's law with exponent 1.5."""
    ranks = np.arange(1, n + 1, dtype=np.float64)
    # A square root is rounded exactly, a power is not.
    bounds = np.cumsum((2.0**40 / (ranks * np.sqrt(ranks))).astype(np.int64) + 1)
    return int(np.searchsorted(bounds, int(rng.integers(bounds[-1])), side="right"))


def where(rng: np.random.Generator, table: pa.Table, ranks: Ranks) -> Derived:
    """Keep the rows that meet one to three predicates, neither none nor all of them.

    Where no such predicates are found, the rows are shuffled.
    """
    known = {name: rank for name, rank in ranks.items() if name in table.column_names}
    names = sorted(known, key=known.__getitem__)
    for _ in range(_TRIES if table.num_rows > 1 and names else 0):
        mask, predicates = None, []
        for _ in range(int(rng.integers(1, _MOST_PREDICATES + 1))):
            name = names[zipf_draw(rng, len(names))]
            predicate = _predicate(rng, table[name].combine_chunks(), name)
            if predicate is not None:
                mask = predicate[0] if mask is None else pc.and_(mask, predicate[0])
                predicates.append(predicate[1])
        selection = None if mask is None else table.filter(mask)
        if selection is not None and 0 < selection.num_rows < table.num_rows:
            return Derived(selection.combine_chunks(), (" AND ".join(predicates),), "down")
    return shuffle(rng, table, ranks)


def _predicate(
    rng: np.random.Generator, values: pa.Array, name: str
) -> tuple[pa.Array, str] | None:
    """Return which rows meet a predicate that is drawn; None where a column has no value."""
    present = values.drop_null()
    if pa.types.is_floating(values.type):
        present = present.filter(pc.invert(pc.is_nan(present)))
    if not len(present):
        return None
    value = _frequent(rng, present)
    template = f"{name} {{}} {value}"
    ways: list[tuple[str, Callable[..., pa.Array]]] = [("=", pc.equal)]
    if _is_number(values.type) or pa.types.is_temporal(values.type):
        ways += [("<", pc.less), (">", pc.greater), ("BETWEEN", pc.and_)]
    sign, compare = ways[int(rng.integers(len(ways)))]
    if sign != "BETWEEN":
        return pc.fill_null(compare(values, value), False), template.format(sign)
    other = _frequent(rng, present)
    low, high = (other, value) if pc.greater(value, other).as_py() else (value, other)
    both = pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))
    return pc.fill_null(both, False), f"{name} BETWEEN {low} AND {high}"


def _frequent(rng: np.random.Generator, present: pa.Array) -> pa.Scalar:
    """Draw a value, its rank by frequency following Zipf's law; of equals the first comes first."""
    counted = pc.value_counts(present)
    order = np.argsort(-counted.field("counts").to_numpy(), kind="stable")
    return counted.field("values")[int(order[zipf_draw(rng, len(order))])]


def project(rng: np.random.Generator, table: pa.Table, ranks: Ranks) -> Derived:
    """Filter rows, then keep 40 to 100 % of the columns."""
    filtered = where(rng, table, ranks)
    min_kept = max(1, -(-table.num_columns * 2 // 5))
    n_kept = int(rng.integers(min_kept, table.num_columns + 1))
    columns = rng.permutation(table.num_columns)[:n_kept].tolist()
    names = [table.column_names[column] for column in columns]
    steps = (*filtered.steps, f"keep {n_kept} columns")
    return Derived(filtered.table.select(names), steps, "down")


def add_rows(rng: np.random.Generator, table: pa.Table, ranks: Ranks) -> Derived:
    """Add 1 to 30 % of rows, each value from its column, drawn independently of the others."""
    if not table.num_rows:
        return shuffle(rng, table, ranks)
    n_added = max(1, table.num_rows * int(rng.integers(1, 31)) // 100)
    columns = [
        column.combine_chunks().take(pa.array(rng.integers(0, table.num_rows, n_added)))
        for column in table.columns
    ]
    added = pa.Table.from_arrays(columns, schema=table.schema)
    whole = pa.concat_tables([table, added]).combine_chunks()
    return Derived(whole, (f"add {n_added} rows",), "up")


def add_cols(rng: np.random.Generator, table: pa.Table, ranks: Ranks) -> Derived:
    """Add one to three columns a·x + b·y of numbers, a and b in [-2, 2]."""
    numbers = _number_columns(table)
    if not numbers:
        return shuffle(rng, table, ranks)
    steps = []
    for _ in range(int(rng.integers(1, _MOST_NEW_COLUMNS + 1))):
        x, y = (numbers[int(rng.integers(len(numbers)))] for _ in range(2))
        a, b = (int(number) / 100 for number in rng.integers(-200, 201, 2))
        name = _free_name(table)
        left, right = (pc.multiply(_doubles(table[column]), k) for column, k in ((x, a), (y, b)))
        table = table.append_column(name, pc.add(left, right))
        steps.append(f"{name} = {a} * {x} + {b} * {y}")
    return Derived(table, tuple(steps), "up")


def noise(
    rng: np.random.Generator, table: pa.Table, ranks: Ranks, *, keep_range: bool | None = None
) -> Derived:
    """Add normal noise to 10 to 100 % of the cells of one or two columns of numbers.

    Its deviation is 5 % of the column's.
    """
    numbers = [name for name in _number_columns(table) if not pa.types.is_decimal(table[name].type)]
    if not numbers or not table.num_rows:
        return shuffle(rng, table, ranks)
    clip = bool(rng.integers(2)) if keep_range is None else keep_range
    n_columns = min(len(numbers), int(rng.integers(1, _MOST_NOISY_COLUMNS + 1)))
    steps = []
    for column in rng.permutation(len(numbers))[:n_columns].tolist():
        name = numbers[column]
        share = int(rng.integers(10, 101))
        hit = rng.integers(0, 100, table.num_rows) < share
        changed = _noisy(rng, table[name].combine_chunks(), hit, clip)
        table = table.set_column(table.column_names.index(name), name, changed)
        steps.append(f"noise on {share} % of {name}{', range kept' if clip else ''}")
    return Derived(table, tuple(steps), "none")


def _noisy(rng: np.random.Generator, values: pa.Array, hit: np.ndarray, clip: bool) -> pa.Array:
    present = values.is_valid().to_numpy(zero_copy_only=False)
    numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
    finite = present & np.isfinite(numbers)
    known = numbers[finite]
    # Whole numbers are added up exactly, and the sum of floats is rounded once.
    uniforms = rng.integers(0, 1 << 32, (_UNIFORMS, len(numbers))).sum(axis=0)
    normal = (uniforms - (_UNIFORMS << 31)) / (1 << 32)
    if not len(known):
        return values
    wide = known.astype(np.float64)
    mean = math.fsum(wide.tolist()) / len(wide)
    deviation = math.sqrt(math.fsum(((wide - mean) * (wide - mean)).tolist()) / len(wide))
    change = normal * (0.05 * deviation)
    if numbers.dtype.kind in "iu":
        change = np.rint(change).astype(numbers.dtype)
    changed = (numbers + change).astype(numbers.dtype)
    if clip:
        changed = np.clip(changed, known.min(), known.max())
    changed = np.where(hit & finite, changed, numbers)
    return pa.array(changed, values.type, mask=~present)


def shuffle(rng: np.random.Generator, table: pa.Table, ranks: Ranks) -> Derived:
    """Return the same rows and columns in another order."""
    columns = rng.permutation(table.num_columns).tolist()
    names = [table.column_names[column] for column in columns]
    rows = rng.permutation(table.num_rows)
    shuffled = table.select(names).take(pa.array(rows, pa.int64())).combine_chunks()
    return Derived(shuffled, ("shuffle",), "both")


def combo(rng: np.random.Generator, table: pa.Table, ranks: Ranks) -> Derived:
    """Do two or three of the others, one after the other."""
    steps: tuple[str, ...] = ()
    for _ in range(int(rng.integers(2, 4))):
        single = SINGLE[list(SINGLE)[int(rng.integers(len(SINGLE)))]]
        derived = single(rng, table, ranks)
        table, steps = derived.table, steps + derived.steps
    return Derived(table, steps, "none")


SINGLE: dict[str, Callable[[np.random.Generator, pa.Table, Ranks], Derived]] = {
    "where": where,
    "project": project,
    "add_rows": add_rows,
    "add_cols": add_cols,
    "noise": noise,
    "shuffle": shuffle,
}

CHANGES = {**SINGLE, "combo": combo}
"""By name, all that a table may be derived by."""


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)


def _number_columns(table: pa.Table) -> list[str]:
    return [field.name for field in table.schema if _is_number(field.type)]


def _doubles(values: Any) -> Any:
    return pc.cast(values, pa.float64(), safe=False)


def _free_name(table: pa.Table) -> str:
    used_names = {name.lower() for name in table.column_names}
    return next(f"sum_{at}" for at in range(len(used_names) + 1) if f"sum_{at}" not in used_names)
