"""Errors of arrays that were changed, told plainly."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pexeso.errors import IndexCorruptError


@contextmanager
def damage_made_plain(where: str) -> Iterator[None]:
    """Turn the error of a tensor operation that was led out of an array into one of ours.

    Compiled loops look at what they read themselves; tensor operations do so too, and raise
    IndexError.
    """
    try:
        yield
    except IndexError as error:
        raise IndexCorruptError(
            f"A file of {where} names a value, column or text that is not there: it was changed. "
            "'pexeso check' tells more."
        ) from error
