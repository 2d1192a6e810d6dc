"""How many operators a program needs at least to write some keys, told from the letters alone."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache

from pexeso.transform.programs.program import lower, upper

_BETWEEN = "\0"
"""Stands between cells; it is no letter, so that no key has it."""

_WORD = re.compile(r"[^\W_]+")

PieceStart = tuple[int, int, int]
"""Number of the cell, of the word in it, and of the character in that; -1 where none holds it."""


def least_pieces(
    rows: Sequence[Sequence[str | None]], keys: Sequence[str], *, constants: bool = True
) -> list[int]:
    """Return for each example in how few pieces its key can be put together.

    A piece stands in a cell of the row, or in the keys of all examples. Only letters and digits
    count, in any casing: signs may be constants, and replacements leave them out. So a program that
    writes the key has at least so many operators.

    Parameters
    ----------
    constants : bool
        Whether what all keys hold may be a piece; without it each letter that no cell holds is one.

    Examples
    --------
    >>> least_pieces([["Kelly Moore"], ["Ann Lee"]], ["kmoore@a.us", "alee@a.us"])
    [3, 3]
    """
    plain = [_letters(key) for key in keys]
    counts = []
    for row, key in zip(rows, plain, strict=True):
        held = _BETWEEN.join(_letters(cell) for cell in row if cell)
        counts.append(_count(key, held, plain if constants else None))
    return counts


def piece_starts(row: Sequence[str | None], key: str) -> tuple[PieceStart, ...]:
    """Return where the pieces of a row begin that a key can be put together from.

    The key is covered from the left by the longest pieces of single words, in any casing. A letter
    or digit that no cell holds is a piece of its own. Keys that one rule wrote mostly have equal
    starts, and keys that look alike by chance have different ones.

    Examples
    --------
    >>> piece_starts(["2024-05-17"], "17/05/2024")
    ((0, 2, 0), (0, 1, 0), (0, 0, 0))
    >>> piece_starts(["Kelly", "Moore"], "kmoore")
    ((0, 0, 0), (1, 0, 0))
    """
    words: list[str] = []
    named: list[tuple[int, int]] = []
    for cell, text in enumerate(row):
        of_cell = _WORD.findall(lower(upper(text))) if text else []
        words += of_cell
        named += [(cell, number) for number in range(len(of_cell))]
    begins = [0]
    for word in words:
        begins.append(begins[-1] + len(word) + len(_BETWEEN))
    held, letters = _BETWEEN.join(words), _letters(key)
    starts: list[PieceStart] = []
    at = 0
    while at < len(letters):
        end, position = at + 1, held.find(letters[at])
        while position >= 0 and end < len(letters):
            longer = held.find(letters[at : end + 1], position)
            if longer < 0:
                break
            position, end = longer, end + 1
        word = bisect_right(begins, position) - 1
        starts.append((*named[word], position - begins[word]) if position >= 0 else (-1, -1, -1))
        at = end
    return tuple(starts)


@lru_cache(maxsize=4096)
def _letters(text: str) -> str:
    """Return the letters and digits of a text, equal in all casings."""
    return "".join(filter(str.isalnum, lower(upper(text))))


def _count(key: str, held: str, keys: Sequence[str] | None) -> int:
    """Return the number of the longest pieces, taken from the left: no cover has fewer."""
    pieces = at = 0
    while at < len(key):
        end = at + 1
        if key[at:end] in held:
            while end < len(key) and key[at : end + 1] in held:
                end += 1
            reach = end
        else:
            reach = at
        while keys and reach < len(key) and all(key[at : reach + 1] in other for other in keys):
            reach += 1
        if reach == at:
            if keys:
                return len(key) + 1
            reach += 1
        at = reach
        pieces += 1
    return pieces
