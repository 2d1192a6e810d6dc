"""Which tests take part: those marked `long` only in `make test-all`.

A long test has a shorter one beside it that is always run: another case of its parameters, or a
test of one step of what it does.
"""

import os
from collections.abc import Iterable

import pytest

EVERYTHING = os.environ.get("ALL_TESTS") == "1"
"""Whether this is a run of all tests; what begins processes of its own hands it on to them."""


def examples(n: int) -> int:
    """Return how many examples of hypothesis are tried: all in the long run, else a third."""
    return n if EVERYTHING else n // 3


def long_but(short: Iterable[object], values: Iterable[object]) -> list[object]:
    """Return the values of a parameter, all but a few of them marked `long`."""
    short = list(short)
    return [
        value if value in short else pytest.param(value, marks=pytest.mark.long) for value in values
    ]


def long_cases_but(
    short: Iterable[tuple[object, ...]], cases: Iterable[tuple[object, ...]]
) -> list[object]:
    """Return cases of several parameters, all but a few of them marked `long`."""
    short = list(short)
    return [
        case if case in short else pytest.param(*case, marks=pytest.mark.long) for case in cases
    ]
