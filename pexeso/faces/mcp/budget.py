"""Answers of a bounded length: texts are made visible and cut, lists come in pages."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from pexeso.errors import InputError
from pexeso.runtime.formatting import visible

DEFAULT_TOKENS = 4000
MAX_TOKENS = 20_000
MIN_TOKENS = 1000

# Bytes of an answer's JSON, as UTF-8, that count as one token.
#
# English has four and more; letters of other scripts, numbers and escapes have fewer letters to a
# token, but more bytes to a letter.
BYTES_PER_TOKEN = 3

# Longest text of the lake in an answer, in characters; longer ones are cut, with their length.
MAX_TEXT = 160

# Characters of a text and items of a list, where one entry alone would be too long.
_TIGHTER = ((MAX_TEXT, 30), (60, 12), (24, 6), (12, 2))


def written(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def count_tokens(document: Any) -> int:
    """Estimate the tokens of an answer, rather too many than too few.

    Examples
    --------
    >>> count_tokens({"a": [1, 2]})
    4
    """
    return -(-len(written(document).encode("utf-8", "backslashreplace")) // BYTES_PER_TOKEN)


def require_tokens(max_tokens: int) -> int:
    if not MIN_TOKENS <= max_tokens <= MAX_TOKENS:
        raise InputError(f"max_tokens is {MIN_TOKENS:,} to {MAX_TOKENS:,}. Got {max_tokens}.")
    return max_tokens


def readable(value: Any, cap: int = MAX_TEXT, items: int = 30, keep: Sequence[str] = ()) -> Any:
    r"""Return plain JSON with texts visible and of `cap` characters, and lists of `items` at most.

    Examples
    --------
    >>> readable({"cell": "a\x07" + "b" * 90, "id": "t:c"}, 20)
    {'cell': 'a\\x07bbbbbb… (92 chars)', 'id': 't:c'}
    """
    return value if _is_readable(value, cap, items) else _shortened(value, cap, items, keep)


def _is_readable(value: Any, cap: int, items: int) -> bool:
    """Return whether nothing is to be changed: for most entries, this is all the work."""
    if isinstance(value, tuple):
        return False
    pending = [value]
    for one in pending:
        kind = type(one)
        if kind is str:
            if len(one) > cap or not one.isprintable():
                return False
        elif kind is dict or kind is list:
            if len(one) > items:
                return False
            pending += one
            if kind is dict:
                pending += one.values()
        elif not (one is None or kind in (bool, int) or (kind is float and math.isfinite(one))):
            return False
    return True


def _shortened(value: Any, cap: int, items: int, keep: Sequence[str]) -> Any:
    if isinstance(value, str):
        return value if len(value) <= cap and value.isprintable() else visible(value, cap)
    if isinstance(value, dict):
        return {
            _shortened(str(name), cap, items, keep): inner
            if name in keep
            else readable(inner, cap, items, keep)
            for name, inner in list(value.items())[:items]
        }
    if isinstance(value, list | tuple):
        return [readable(entry, cap, items, keep) for entry in value[:items]]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | None) else visible(str(value), cap)


def page(
    frame: dict[str, Any],
    name: str,
    entries: Sequence[Any],
    *,
    total: int | None = None,
    offset: int,
    limit: int,
    max_tokens: int,
    present: Callable[[Any], Any] = lambda entry: entry,
    keep: Sequence[str] = (),
    items: int | None = None,
) -> dict[str, Any]:
    """Return a page of a list, with as many entries as the answer has space for."""
    if offset < 0 or limit < 1:
        raise InputError(f"offset is at least 0 and limit at least 1. Got {offset} and {limit}.")
    if total is None:
        total, entries = len(entries), entries[offset:]
    # The longest form that the numbers can take.
    facts = {"total": total, "offset": offset, "next_offset": total, "truncated": False}
    left = max_tokens - count_tokens({**frame, name: [], **facts}) - 1
    page_entries: list[Any] = []
    for entry in entries[:limit]:
        plain = present(entry)
        for n_characters, n_items in _TIGHTER if not page_entries else _TIGHTER[:1]:
            shown = readable(plain, n_characters, items or n_items, keep)
            cost = count_tokens(shown) + 1
            if cost <= left:
                break
        if cost > left and page_entries:
            break
        page_entries.append(shown)
        left -= cost
        if left <= 0:
            break
    after = offset + len(page_entries)
    facts |= {"next_offset": after if after < total else None, "truncated": after < total}
    return {**frame, name: page_entries, **facts}
