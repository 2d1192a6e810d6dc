"""Registry of the index parts, and the models that have one each.

Each part is named by its import path and imported on first use.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING

from pexeso.errors import InputError

if TYPE_CHECKING:
    from pexeso.build.parts.base import IndexPart

_PATHS = [
    "pexeso.semantic.part:SEMANTIC_PART", "pexeso.sets.part:TOKEN_SETS_PART",
    "pexeso.semantic.part:SECOND_MODEL_PART", "pexeso.semantic.part:THIRD_MODEL_PART",
    "pexeso.composite.part:ROW_KEYS_PART", "pexeso.redundancy.part:ROW_HASHES_PART",
]  # fmt: skip


FILTER_BITS = (64, 128, 256, 512)
ROW_FILTERS = (
    *(f"bloom-{bits}" for bits in FILTER_BITS),
    *(f"xash-{bits}" for bits in FILTER_BITS),
)
"""Filters of rows that an index for composite keys can keep."""

DEFAULT_FILTERS = ("bloom-128", "xash-128")
"""16 bytes a row for each."""

MAX_MODELS = 3
"""So many models can stand in one index: each has a part."""


def load_part(path: str) -> IndexPart:
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)


def register(path: str) -> IndexPart:
    """Add a part after the existing ones: every later build, update, check and report includes it.

    `path` is ``module:attribute``, which other processes can import too.
    """
    part = load_part(path)
    others = registered()
    names = {*(other.name for other in others), *choices()}
    if names & {part.name, *part.choices}:
        raise InputError(
            f"The parts of an index need different names. There are {', '.join(sorted(names))}. "
            f"Got {part.name!r} at '{path}'."
        )
    _PATHS.append(path)
    return part


def unregister(path: str) -> None:
    _PATHS.remove(path)


def registered() -> list[IndexPart]:
    return [load_part(path) for path in _PATHS]


def choices() -> tuple[str, ...]:
    """Return the words by which parts can be asked for."""
    return tuple(word for part in registered() for word in part.choices)


def requested_parts(words: Iterable[str], n_models: int = 1) -> list[IndexPart]:
    """Return the parts of every index, those that a word selects, and those of its models."""
    requested = set(words)
    return [
        part
        for part in registered()
        if getattr(part, "model", 0) < n_models
        and (not part.choices or requested & set(part.choices))
    ]


def model_names(model: str) -> tuple[str, ...]:
    """Return the models that a text names with commas between them."""
    names = tuple(name.strip() for name in model.split(",")) if isinstance(model, str) else ()
    if not all(names) or len(set(names)) < len(names) or not 1 <= len(names) <= MAX_MODELS:
        raise InputError(
            f"model must name 1 to {MAX_MODELS} different models, with commas between them. Got "
            f"{model!r}."
        )
    return names


def require_parts(words: Iterable[str]) -> tuple[str, ...]:
    """Return the words for the parts that an index is to have, those they depend on included."""
    if not isinstance(words, Iterable):
        raise InputError(
            f"parts must be a list of texts, of {', '.join(choices())}. Got {words!r}."
        )
    requested = [words] if isinstance(words, str) else list(words)
    allowed = choices()
    for word in requested:
        if word not in allowed:
            raise InputError(
                f"The parts that an index can have are {', '.join(allowed)}. Got {word!r}."
            )
    included: list[str] = []
    for part in registered():
        named = [position for position, word in enumerate(part.choices) if word in requested]
        included += part.choices[: max(named, default=-1) + 1]
    return tuple(included)


def require_filters(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of filters of rows, of `ROW_FILTERS`, at most one of a kind."""
    several = list(names) if isinstance(names, Iterable) else [names]
    filter_names = [names] if isinstance(names, str) else several
    kinds = [name.partition("-")[0] for name in filter_names if name in ROW_FILTERS]
    if len(kinds) < len(filter_names) or len(set(kinds)) < len(kinds):
        raise InputError(
            f"row_filters are none, or one of each kind among {', '.join(ROW_FILTERS)}. Got "
            f"{', '.join(map(repr, filter_names))}."
        )
    return tuple(filter_names)
