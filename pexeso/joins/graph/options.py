"""Which edges a join graph has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pexeso.errors import InputError
from pexeso.options import (
    DEFAULT_MAX_DISTANCE,
    DEFAULT_MIN_JOINABILITY,
    SearchOptions,
    columns_wanted,
    make_plain,
)
from pexeso.runtime.checks import require_choice, require_flag

if TYPE_CHECKING:
    from pexeso.store.local.reader import Store

METHODS = OVERLAP, SEMANTIC = ("overlap", "semantic")
"""Names that searches have for them: by equal values, and by values alike."""


@dataclass(frozen=True)
class GraphOptions:
    """Which edges a join graph has.

    Attributes
    ----------
    method : {"overlap", "semantic"} or None
        By equal values, or by values alike. None: the former where the index has token sets.
    min_joinability : float
        In (0, 1]: the share of the distinct values of the left column that match.
    max_distance : float or None
        In [0, 1], of values alike; None: 0 for columns of dates, numbers or codes, else what suits
        the model of the index.
    k : int, "all" or None
        Edges of each left column at most, those of the largest joinability; None: 20.
    fold_copies : bool
        Of columns that are copies of each other (`pexeso.results.copies`) the first by table and
        name stands for all.

    Examples
    --------
    >>> GraphOptions(min_joinability=0)
    Traceback (most recent call last):
        ...
    pexeso.errors.InputError: min_joinability must be a number in (0, 1]. Got 0 instead. It is the \
share of your values that must match: 0.5 is a usual value.
    """

    method: str | None = None
    min_joinability: float = DEFAULT_MIN_JOINABILITY
    max_distance: float | None = None
    k: int | str | None = None
    fold_copies: bool = False

    def __post_init__(self) -> None:
        make_plain(self)
        if self.method is not None:
            require_choice("method", self.method, METHODS)
        require_flag("fold_copies", self.fold_copies)
        if self.min_joinability is None:
            raise InputError("min_joinability must be a number in (0, 1]. Got None instead.")
        if self.max_distance is not None and self.method == OVERLAP:
            raise InputError(
                "max_distance is for values alike, and the method overlap compares equal ones: "
                "leave it out, or take the method semantic."
            )
        # Ranges are those of searches.
        distance = DEFAULT_MAX_DISTANCE if self.max_distance is None else self.max_distance
        SearchOptions(distance, self.min_joinability, k=self.k)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> GraphOptions:
        """Return options given by name; refuse one that there is not."""
        names = cls.__dataclass_fields__
        if unknown := sorted(set(given) - set(names)):
            raise InputError(
                f"Options of a graph are {', '.join(names)}. Got {', '.join(unknown)}."
            )
        return cls(**given)

    @property
    def limit(self) -> int | None:
        """Edges of each left column at most; None for no limit."""
        return columns_wanted(self.k)

    def method_for(self, store: Store) -> str:
        """Return the method, chosen for an index where none was given."""
        if self.method is not None:
            return self.method
        from pexeso.sets.part.open import (
            parts_of,  # brings what opening an index does without
        )

        return OVERLAP if "overlap" in parts_of(store) and self.max_distance is None else SEMANTIC

    def to_dict(self, method: str, max_distance: float | None) -> dict[str, Any]:
        """Return the options as plain JSON, with what was chosen for an index."""
        options: dict[str, Any] = {"method": method, "min_joinability": self.min_joinability}
        if max_distance is not None:
            options["max_distance"] = max_distance
        k = "all" if self.limit is None else self.limit
        return {**options, "k": k, "fold_copies": self.fold_copies}
