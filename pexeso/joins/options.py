"""What a join is to give, validated where it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

from pexeso.errors import InputError
from pexeso.lake.columns import find_column
from pexeso.runtime.checks import require_choice, require_flag
from pexeso.runtime.formatting import shown

VALUES = ("nearest", "one-to-one", "all")
HOW = ("left", "inner")
AGGREGATIONS = ("first", "list", "distinct", "count", "mean", "sum", "min", "max")
OF_NUMBERS = ("mean", "sum", "min", "max")
PROVENANCE = ("table", "column", "value", "distance")

# What represents the columns that are not named, in `JoinOptions.aggregate`.
OTHERS = "*"


@dataclass(frozen=True)
class JoinOptions:
    """How a table is joined with a found one: the options of `pexeso.results.matches.Match.join`.

    Columns that `aggregate` maps to ways of `AGGREGATIONS` are named as ``#position`` too.
    """

    values: str = "nearest"
    how: str = "left"
    aggregate: str | Mapping[str, str] | None = None
    suffix: str | None = None
    provenance: Sequence[str] = ("value", "distance")
    many_to_many: bool = False

    def __post_init__(self) -> None:
        require_choice("values", self.values, VALUES)
        require_how(self.how)
        require_flag("many_to_many", self.many_to_many)
        self._check_aggregate()
        if self.suffix is not None and (not isinstance(self.suffix, str) or not self.suffix):
            raise InputError(
                "suffix must be a text that is not empty, such as '_lake'. Got "
                f"{shown(self.suffix)} instead."
            )
        if isinstance(self.provenance, str) or not isinstance(self.provenance, Sequence):
            raise InputError(
                f"provenance must be a sequence out of {', '.join(PROVENANCE)}, such as "
                f"('value', 'distance'). Got {shown(self.provenance)} instead."
            )
        for name in self.provenance:
            require_choice("Each of provenance", name, PROVENANCE)

    def _check_aggregate(self) -> None:
        if self.aggregate is None:
            return
        if isinstance(self.aggregate, str):
            require_choice("aggregate", self.aggregate, AGGREGATIONS)
        elif isinstance(self.aggregate, Mapping):
            for column, way in self.aggregate.items():
                require_choice(f"The way to aggregate {column!r}", way, AGGREGATIONS)
        else:
            raise InputError(
                f"aggregate must be one of {', '.join(AGGREGATIONS)}, or a dictionary from "
                f"columns to these. Got {shown(self.aggregate)} instead."
            )

    def ways(self, names: Sequence[str]) -> list[str] | None:
        """Return how each column of the found table is aggregated."""
        if self.aggregate is None:
            return None
        if isinstance(self.aggregate, str):
            return [self.aggregate] * len(names)
        ways = [self.aggregate.get(OTHERS, "first")] * len(names)
        named: set[int] = set()
        for column, way in self.aggregate.items():
            if column == OTHERS:
                continue
            position = find_column(names, column)
            if position in named:
                raise InputError(
                    f"aggregate names the column {names[position]!r} twice, by name and by "
                    "position."
                )
            named.add(position)
            ways[position] = way
        return ways


def free_name(name: str, is_used: Callable[[str], bool], number: str = "_{}") -> str:
    """Return a name that is not in use: the name itself, or with the first number that is free."""
    numbered = (name + number.format(at) for at in count(2))
    return next(free for free in chain([name], numbered) if not is_used(free))


def require_how(how: object) -> None:
    require_choice("how", how, HOW)


def join_options(given: Mapping[str, Any]) -> JoinOptions:
    unknown = sorted(set(given) - set(JoinOptions.__dataclass_fields__))
    if unknown:
        raise InputError(
            f"Join options are {', '.join(JoinOptions.__dataclass_fields__)}. Got "
            f"{', '.join(unknown)}."
        )
    return JoinOptions(**given)
