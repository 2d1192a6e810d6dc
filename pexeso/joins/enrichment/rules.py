"""Which columns of a found table are worth adding, as named rules, checked where they are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pexeso.errors import InputError
from pexeso.runtime.formatting import plain_scalar, shown

JOIN_COLUMN = "join column"
EMPTY = "empty"
CONSTANT = "constant"
MISSING = "missing"
COPY = "copy"
TARGET = "target"

SAID = {
    JOIN_COLUMN: "it is the column joined on",
    EMPTY: "it has no cell for any of your rows",
    MISSING: "it has no cell for too many of your rows",
    CONSTANT: "it has the same cell in all of your rows that it has one for",
    TARGET: "it says what the target says",
    COPY: "it says what another column says",
}
"""The rules by name, in the order in which they are tried, and what each of them tells of a
column."""


@dataclass(frozen=True)
class EnrichmentRules:
    """When a column of a found table is a number, and when it is left out.

    All shares are of rows of the user's table, in [0, 1].

    Attributes
    ----------
    min_number_fraction : float
        A column holds numbers where at least this share of its cells that are not empty can be read
        as numbers; the other cells are then missing.
    min_coverage : float
        A column that has a cell for a smaller share of the rows is left out: ``missing``.
    min_copy_fraction : float
        Two columns say the same where at least this share of the rows that have a cell in either
        have the same in both: ``copy``.
    min_target_fraction, min_target_correlation, min_target_agreement : float
        A column says what the target says (``target``) where, for the keys that have a cell in
        both, ten at least: (1) for a target of more than ten different numbers, this share of the
        cells is the target's own number; less than `min_copy_fraction`, since some rows may be
        joined wrongly; or (2) for such a target, the ranks of both are correlated as much as this,
        in either direction (Spearman); or (3) for another target, a column with five keys or more a
        value has values that tell the class: this share of the keys of each class, on average, has
        a value that goes with no other.

    Examples
    --------
    >>> EnrichmentRules(min_coverage=2)
    Traceback (most recent call last):
        ...
    pexeso.errors.InputError: min_coverage must be a number in [0, 1]. Got 2 instead.
    """

    min_number_fraction: float = 0.9
    min_coverage: float = 0.5
    min_copy_fraction: float = 0.95
    min_target_fraction: float = 0.5
    min_target_correlation: float = 0.99
    min_target_agreement: float = 0.98

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            number = plain_scalar(value)
            if (
                not isinstance(number, (int, float))
                or isinstance(number, bool)
                or not 0 <= number <= 1
            ):
                raise InputError(f"{name} must be a number in [0, 1]. Got {shown(value)} instead.")
            object.__setattr__(self, name, number)


def split_rules(options: Mapping[str, Any]) -> tuple[EnrichmentRules, dict[str, Any]]:
    """Split keyword arguments into rules of enrichment and the others."""
    names = EnrichmentRules.__dataclass_fields__
    rules = {name: value for name, value in options.items() if name in names}
    return EnrichmentRules(**rules), {
        name: value for name, value in options.items() if name not in names
    }
