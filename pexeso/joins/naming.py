"""Names of the columns of a joined table.

The user's columns keep their names. Added columns get names that are not in use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count

from pexeso.errors import InputError
from pexeso.joins.options import PROVENANCE, JoinOptions

PREFIX = "match_"


@dataclass(frozen=True)
class JoinedNames:
    """The names of the columns that a join adds."""

    provenance: dict[str, str]
    found_columns: list[str]
    note: str | None = None


def choose_names(
    mine: Sequence[str],
    labels: Sequence[str],
    table: str,
    options: JoinOptions,
    *,
    fold_case: bool = False,
) -> JoinedNames:
    """Choose names for what a join adds, none of which is there already."""
    key: Callable[[str], str] = str.casefold if fold_case else str
    used_names = {key(name) for name in mine}
    requested = [name for name in PROVENANCE if name in options.provenance]
    clashes = [PREFIX + name for name in requested if key(PREFIX + name) in used_names]
    ending = next(
        end
        for end in _endings()
        if not any(key(PREFIX + name + end) in used_names for name in requested)
    )
    provenance = {name: PREFIX + name + ending for name in requested}
    # The names that provenance has where nothing is taken are kept for it: what a column means must
    # not hang on the options.
    used_names |= {key(name) for name in provenance.values()} | {
        key(PREFIX + name) for name in requested
    }
    return JoinedNames(
        provenance,
        _found_names(labels, table, options, used_names, key),
        _note(clashes, provenance),
    )


def _endings() -> Iterable[str]:
    yield ""
    yield from (f"_{number}" for number in count(2))


def _note(clashes: list[str], provenance: dict[str, str]) -> str | None:
    if not clashes:
        return None
    stay = "is a column of your table and stays as it is"
    if len(clashes) > 1:
        stay = "are columns of your table and stay as they are"
    return (
        f"{', '.join(clashes)} {stay}; what the join adds is called "
        f"{', '.join(provenance.values())}."
    )


def _found_names(
    labels: Sequence[str],
    table: str,
    options: JoinOptions,
    reserved: set[str],
    key: Callable[[str], str],
) -> list[str]:
    free = {key(label) for label in labels if key(label) not in reserved}
    used = reserved | free
    names, still_taken = [], []
    for label in labels:
        if key(label) in free:
            free.remove(key(label))  # of labels that Spark takes for one, the first keeps it
            names.append(label)
            continue
        name = _other_name(label, table, options, used, key)
        if name is None:
            still_taken.append(f"{label}{options.suffix}")
            continue
        names.append(name)
        used.add(key(name))
    if still_taken:
        raise InputError(
            f"With the suffix {options.suffix!r} these names are taken as well: "
            f"{', '.join(still_taken)}. Choose another suffix."
        )
    return names


def _other_name(
    label: str, table: str, options: JoinOptions, used: set[str], key: Callable[[str], str]
) -> str | None:
    if options.suffix is not None:
        name = label + options.suffix
        return None if key(name) in used else name
    return next(name for end in _endings() if key(name := f"{table}:{label}{end}") not in used)
