"""Exact search for the tables that join most keys of several columns (MATE, VLDB 2022).

Cells are numbers of values here, so a row is compared with a key without reading its texts, and a
super key is only one of the ways to sort out rows. Of tables that join equally many keys the one
with the lower number comes first, so every way gives the same answer. Distinct keys count, not
rows; a mapping gives each column of the key a column of its own.
"""

from __future__ import annotations

from pexeso.errors import InputError

DEFAULT_MAX_COLUMNS = 3
DEFAULT_NEARLY = 0.98
DEFAULT_KEYS = 10
LARGEST_KEY = 5  # Most columns of a key that can be looked for.


def require_key_options(max_columns: int, nearly: float, k: int) -> None:
    """Raise InputError where an argument of `candidate_keys.find_keys` is out of its range."""
    for name, value, largest in (("max_columns", max_columns, LARGEST_KEY), ("k", k, None)):
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or value < 1 or (largest is not None and value > largest):
            allowed = "1 or more" if largest is None else f"from 1 to {largest}"
            raise InputError(f"{name} must be a whole number, {allowed}. Got {value!r}.")
    number = isinstance(nearly, int | float) and not isinstance(nearly, bool)
    if not number or not 0 < nearly <= 1:
        raise InputError(f"nearly must be a number above 0, up to 1. Got {nearly!r}.")
