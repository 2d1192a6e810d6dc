"""Plain JSON data: what can be written and read back as the very same thing."""

import math
from typing import Any

from pexeso.errors import InputError
from pexeso.store.paths import is_unicode

MAX_DEPTH = 32


def require_json_object(value: Any, name: str) -> None:
    """Accept a dictionary that comes back from JSON exactly as it went in.

    No tuples, NumPy scalars, NaN or keys that are no text; nested at most `MAX_DEPTH` deep.
    """
    if not isinstance(value, dict):
        raise InputError(f"{name} must be a dictionary. Got {type(value).__name__}.")
    _require_json(value, name, MAX_DEPTH)


def _require_json(value: Any, name: str, depth: int) -> None:
    if depth == 0:
        raise InputError(f"{name} must not be nested deeper than {MAX_DEPTH} levels.")
    kind = type(value)
    if kind is dict:
        for key, item in value.items():
            if type(key) is not str or not is_unicode(key):
                raise InputError(f"{name} must have Unicode texts as keys. Got {key!r}.")
            _require_json(item, name, depth - 1)
    elif kind is list:
        for item in value:
            _require_json(item, name, depth - 1)
    elif not _is_json_scalar(value):
        raise InputError(
            f"{name} must hold plain JSON values: dictionaries, lists, Unicode texts, finite numbers, whole numbers of "
            f"64 bits, true, false, None. Got a {kind.__name__}."
        )


def _is_json_scalar(value: Any) -> bool:
    kind = type(value)
    if kind is int:
        return -(2**63) <= value < 2**64
    if kind is float:
        return math.isfinite(value)
    return kind in (bool, type(None)) or (kind is str and is_unicode(value))
