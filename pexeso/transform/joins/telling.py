"""Sentences on a join: why there is no program, and which keys repeat in both tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pexeso.errors import InputError
from pexeso.runtime.checks import require_flag
from pexeso.runtime.formatting import shown
from pexeso.transform.joins.sides import Side
from pexeso.transform.programs.describing import in_words

if TYPE_CHECKING:
    from pexeso.transform.joins.joined import TransformJoin

MAX_NAMED = 5
"""Columns that are named; of more their number."""


def why_no_program(joined: TransformJoin) -> str:
    """Return what was tried, and the best program that was not trusted."""
    if joined.n_rows["none"] == 0 and joined.n_rows["fuzzy"] == 0:
        return "all rows are joined by equal values, so that no row is left to learn from"
    several = [len(side.columns) > 1 and side.named for side in (joined.source, joined.target)]
    looked_at = (
        f"{_columns(joined.source, 'the first table')} and "
        f"{_columns(joined.target, 'the second')} were compared"
        f"{'' if any(several) else ' in both directions'}"
    )
    best = joined.rule.best
    if best is None:
        reason = f"{looked_at}, and no rows that share pieces of text are written by one rule"
    else:
        words = in_words(best.program, joined.reading.texts.names)
        written = f"{looked_at}; the best rule found, {words}, writes {best.n_keys} of the other "
        reason = (
            f"{written}column's values, and {best.expected:.1f} would be expected of letters drawn "
            "at random: too few to trust it"
            if best.n_keys < 2 * best.expected
            else f"{written}column's values: too few of them to trust it"
        )
    if joined.max_compared is None:
        return reason
    return (
        f"{reason}; similar values were not joined either, as a column has more than "
        f"{joined.max_compared:,} distinct ones: index one table and use 'pexeso join', or give "
        "fewer rows"
    )


def repeated_key(joined: TransformJoin) -> str:
    """Return the key that has most rows in both tables, and their numbers."""
    n_source, n_target = joined.key_counts
    position = int(np.argmax(np.minimum(n_source, n_target)))
    key = joined.keyed.texts.columns[joined.rule.key_column].values[position].as_py()
    return f"{shown(key)} with {n_source[position]:,} and {n_target[position]:,}"


def require_distinct(joined: TransformJoin, *, many_to_one: bool) -> None:
    """Raise InputError where programs make one key of several values, unless that is asked for.

    Rows would be joined with others than their own.
    """
    require_flag("many_to_one", many_to_one)
    if joined.collapse is not None and not many_to_one:
        raise InputError(
            f"{joined.collapse}: the rule makes one key of several values, so that rows may be "
            "joined with another's. Name other columns, or allow it by many_to_one "
            "(--many-to-one)."
        )


def _columns(side: Side, table: str) -> str:
    names = side.texts.names[:MAX_NAMED]
    more = len(side.texts.names) - len(names)
    return f"{', '.join(map(repr, names))}{f' and {more} more' if more else ''} of {table}"
