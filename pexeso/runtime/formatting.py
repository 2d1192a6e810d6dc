"""How numbers and texts of users are written for people, wherever they are shown."""

from __future__ import annotations

import unicodedata
from typing import Any

import numpy as np

MAX_SHOWN = 80
"""Longest value shown in an error, in characters."""

MAX_CELL = 72
"""Longest value shown in a table for people, in characters; longer ones are cut, with their
length."""


def percent(share: float) -> str:
    """Write a share; never 100 % or 0 % where it is not."""
    tenths = round(1000 * share)
    if 0 < share < 1:
        tenths = min(max(tenths, 1), 999)
    return f"{tenths / 10:.1f} %"


def figure(number: float) -> str:
    """Return a measure with four digits, large ones as whole numbers.

    Examples
    --------
    >>> figure(0.91829), figure(23943.7)
    ('0.9183', '23,944')
    """
    return f"{number:,.0f}" if number >= 10_000 else f"{number:.4g}"


def plain(text: str, limit: int = MAX_CELL) -> str:
    r"""Convert a text to a safe and short form for display.

    Control characters are escaped. A long text is cut, and its length is added.
    """
    note = f"… ({len(text):,} chars)"
    if len(text) > limit:
        text = text[: max(1, limit - len(note))] + note
    if text.isprintable():
        return text  # none of the characters below is printable
    return "".join(_escaped(letter) if _is_control(letter) else letter for letter in text)


def cell_text(cell: Any) -> str:
    r"""Return the text of a cell; of bytes that are UTF-8, the text that they are.

    Examples
    --------
    >>> cell_text(1.5), cell_text("é".encode()), cell_text(b"\xff")
    ('1.5', 'é', "b'\\xff'")
    """
    if isinstance(cell, bytes):
        try:
            return cell.decode()
        except UnicodeDecodeError:
            pass
    return str(cell)


def is_hidden(letter: str) -> bool:
    r"""Return whether a character is not seen, or changes how those around it are seen.

    Examples
    --------
    >>> is_hidden("a"), is_hidden("\n"), is_hidden("\u200f")
    (False, True, True)
    """
    return not letter.isprintable() and unicodedata.category(letter) != "Zs"


def visible(text: str, limit: int) -> str:
    r"""Write every character that is not seen by its number, and cut a long text, saying so.

    Examples
    --------
    >>> visible("a\u202eb", 80), visible("abcdefgh" * 9, 20)
    ('a\\u202eb', 'abcdefgh… (72 chars)')
    """
    note = f"… ({len(text):,} chars)"
    if len(text) > limit:
        text = text[: max(1, limit - len(note))] + note
    if text.isprintable():
        return text
    return "".join(_escaped(letter) if is_hidden(letter) else letter for letter in text)


def _is_control(letter: str) -> bool:
    # Line separators and marks that turn the direction of writing would spoil what stands around
    # them.
    return (
        unicodedata.category(letter) in ("Cc", "Zl", "Zp", "Cs")
        or letter in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    )


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")


def plain_scalar(value: Any) -> Any:
    """Return a numpy scalar as a number or truth value of Python, and anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def shown(value: Any) -> str:
    """Return how an error shows a value that it refuses, in at most some 80 characters."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"a whole number of {value.bit_length():,} bits"
    text = repr(value).replace("\n", " ")  # of a table
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


def first_line(error: BaseException) -> str:
    r"""Return the first line that an error says, without its full stop; its class if it is mute.

    Examples
    --------
    >>> first_line(ValueError("Too short.\nIn the reader.")), first_line(EOFError())
    ('Too short', 'EOFError')
    """
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(" .") if lines else type(error).__name__


def format_bytes(n_bytes: int) -> str:
    """Write a number of bytes with one decimal in the largest unit that keeps it at 1 or more.

    Parameters
    ----------
    n_bytes
        Number of bytes, 0 or more.
    """
    if n_bytes < 1024:
        return f"{n_bytes} byte" if n_bytes == 1 else f"{n_bytes} bytes"
    step = min((n_bytes.bit_length() - 1) // 10, len(_UNITS) - 1)
    return f"{n_bytes / 1024**step:.1f} {_UNITS[step]}"


def human_bytes(n_bytes: float) -> str:
    """Write a number of bytes for people, in decimal units as disks are sold."""
    if n_bytes < 1000:
        return f"{n_bytes:.0f} bytes"
    for unit in ("kB", "MB", "GB"):
        n_bytes /= 1000
        if n_bytes < 999.95:
            return f"{n_bytes:.1f} {unit}"
    return f"{n_bytes / 1000:,.1f} TB"
