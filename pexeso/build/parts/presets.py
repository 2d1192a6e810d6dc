"""Presets of a build: named sets of options for the command line, Python and requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embed.registry import has_value_vectors
from pexeso.errors import InputError
from pexeso.options import BuildOptions
from pexeso.registry import model_names
from pexeso.runtime.checks import require_choice
from pexeso.runtime.formatting import plain_scalar, shown

PUBLISHED = "published"
PRESETS = (PUBLISHED,)

_FIXED: Mapping[str, str | None] = {
    "value_vectors": "mean",
    "vector_precision": "single",
    "metric": "euclidean",
    "map": "pivots",
    "n_axes": None,
    "pivot_choice": "pca",
    "cells": "grid",
    "n_levels": None,
}
"""The system of the PEXESO paper: another value is refused."""

_DEFAULTS: Mapping[str, Any] = {"model": "fasttext", "min_partitions": 10}
"""What may be given otherwise; 10 is the paper's number of partitions for its largest lake."""

_MEAN_KINDS = ("fasttext-mean", "glove")
"""Models of which a value is the mean of the unit vectors of its words."""


def with_preset(given: Mapping[str, Any], preset: str | None) -> dict[str, Any]:
    """Return build options with those of a preset added.

    Examples
    --------
    >>> with_preset({"n_pivots": 3}, "published")["cells"]
    'grid'
    >>> with_preset({"cells": "blocks"}, "published")
    Traceback (most recent call last):
        ...
    pexeso.errors.InputError: The preset 'published' sets cells to 'grid'. Got cells='blocks': leave it out, or leave the preset out.
    """  # noqa: E501  what is printed is one line
    if preset is None:
        return dict(given)
    require_choice("preset", preset, PRESETS)
    for name, value in _FIXED.items():
        if name in given and not _is_same(plain_scalar(given[name]), value):
            raise InputError(
                f"The preset {preset!r} sets {name} to {value!r}. Got {name}={shown(given[name])}: "
                "leave it out, or leave the preset out."
            )
    model = given.get("model")
    if isinstance(model, str) and not has_value_vectors(model_names(model)[0]):
        raise InputError(
            f"The preset {preset!r} takes a model of word vectors: 'fasttext', its default, a "
            f"fastText .bin file or a file of word vectors. Got model={shown(model)}: leave it "
            "out, or leave the preset out."
        )
    return {**_DEFAULTS, **given, **_FIXED}


def build_options(given: Mapping[str, Any], preset: str | None = None) -> BuildOptions:
    """Make the options of a build from those that were given and a preset; see `with_preset`.

    Examples
    --------
    >>> build_options({"n_pivots": 3}, "published").min_partitions
    10
    """
    names = BuildOptions.__dataclass_fields__
    if unknown := sorted(set(given) - set(names)):
        raise InputError(f"Build options are {', '.join(names)}. Got {', '.join(unknown)}.")
    return BuildOptions(**with_preset(given, preset))


def _is_same(given: Any, value: str | None) -> bool:
    return given is None if value is None else isinstance(given, str) and given == value


def is_as_published(layout: Mapping[str, Any], embedder: Any) -> bool:
    """Return whether an index is what the preset ``"published"`` builds, however it was built."""
    names = set(_FIXED) - {"value_vectors", "n_axes"}  # the model has the one, pivots no axes
    return embedder in _MEAN_KINDS and all(
        name in layout and layout[name] == _FIXED[name] for name in names
    )
