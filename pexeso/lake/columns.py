"""How a column of a table is named: by its name where that is unambiguous, else by its position."""

import difflib
import re
from collections import Counter
from collections.abc import Sequence

from pexeso.errors import ColumnNotFoundError, TableReadError
from pexeso.runtime.formatting import shown

_POSITION = re.compile(r"#[0-9]+", re.ASCII)
_MAX_NAMES_SHOWN = 20
_MAX_NAMES_COMPARED = 20_000


def label_columns(names: Sequence[str]) -> list[str]:
    """Return a unique label for each column.

    The label is the column's name where that is unique, not empty and not like ``#3``, else ``#``
    and its 0-based position.

    Examples
    --------
    >>> label_columns(["city", "", "year", "year", "#9"])
    ['city', '#1', '#2', '#3', '#4']
    """
    counts = Counter(names)
    return [
        name if name and counts[name] == 1 and not _POSITION.fullmatch(name) else f"#{position}"
        for position, name in enumerate(names)
    ]


def find_column(names: Sequence[str], spec: str) -> int:
    """Return the 0-based position of the column that `spec` means.

    Examples
    --------
    >>> find_column(["city", "year"], "year"), find_column(["city", ""], "#1")
    (1, 1)
    """
    if not isinstance(spec, str):
        raise ColumnNotFoundError(
            "A column is named by a text, such as 'year', or '#3' by its position. Got "
            f"{shown(spec)}. {names_shown(names)}"
        )
    if _POSITION.fullmatch(spec):
        return _at_position(names, spec)
    positions = [position for position, name in enumerate(names) if name == spec]
    if len(positions) == 1:
        return positions[0]
    if not positions:
        raise ColumnNotFoundError(
            f"There is no column {spec!r}{spelling_hint(names, spec)}. {names_shown(names)}"
        )
    listed = ", ".join(f"#{position}" for position in positions)
    if not spec:
        raise ColumnNotFoundError(
            f"An empty name stands for no single column; columns without a name: {listed}."
        )
    raise ColumnNotFoundError(
        f"{len(positions)} columns are named {spec!r}; choose one by its position: {listed}."
    )


def _at_position(names: Sequence[str], spec: str) -> int:
    digits = spec[1:].lstrip("0") or "0"
    # Compared by length first: a number of many thousand digits cannot be converted.
    if len(digits) > 9 or int(digits) >= len(names):
        allowed = f"#0 to #{len(names) - 1}" if names else "none"
        raise ColumnNotFoundError(
            f"There is no column {spec[:20]}; positions count from 0, here {allowed}."
        )
    return int(digits)


def did_you_mean(names: Sequence[str], spec: str) -> str:
    """Return a question that names what is spelled much like `spec`, or an empty text.

    Examples
    --------
    >>> did_you_mean(["zip", "state"], "States")
    "did you mean 'state'?"
    """
    by_lower_case = {name.lower(): name for name in names[:_MAX_NAMES_COMPARED]}
    lower = spec.lower()
    close = [lower]
    if lower not in by_lower_case:
        close = difflib.get_close_matches(lower, by_lower_case, n=3)
    meant = " or ".join(repr(by_lower_case[name]) for name in close)
    return f"did you mean {meant}?" if close else ""


def spelling_hint(names: Sequence[str], spec: str) -> str:
    """Return that question in brackets, as it follows a name in a message, or an empty text."""
    question = did_you_mean(names, spec)
    return f" ({question})" if question else ""


def no_such_table(shown: str, kind: str, name: str, names: Sequence[str]) -> TableReadError:
    """Return the error that a file holds no table of a name, with those that it holds.

    Examples
    --------
    >>> print(no_such_table("book.xlsx", "sheet", "Stop", ["Costs", "Stops"]))
    book.xlsx has no such sheet: 'Stop' (did you mean 'Stops'?). It has 'Costs', 'Stops'.
    """
    return TableReadError(
        f"{shown} has no such {kind}: {name!r}{spelling_hint(names, name)}. It has "
        f"{listed_names(names)}."
    )


def listed_names(names: Sequence[str], limit: int = _MAX_NAMES_SHOWN) -> str:
    """Return the first names in quotation marks, and how many more there are."""
    shown = ", ".join(repr(name) for name in names[:limit]) or "none"
    n_more = len(names) - limit
    return f"{shown}{f' and {n_more:,} more' if n_more > 0 else ''}"


def names_shown(names: Sequence[str]) -> str:
    """Return a sentence that lists the columns there are, by their labels; the first 20.

    Examples
    --------
    >>> names_shown(["city", "year"])
    "The columns are 'city', 'year'."
    """
    return f"The columns are {listed_names(label_columns(names))}."
