"""Options of a build and of a search, checked where they are made."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from embed.registry import check_choices
from embed.stored import HALF, check_precision
from pexeso.engine.options import CELLS, MAPS, MAX_AXES, MAX_CODE_BITS, METRICS, PIVOT_CHOICES
from pexeso.errors import InputError
from pexeso.lake.choose import ColumnRules
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.registry import DEFAULT_FILTERS, model_names, require_filters, require_parts
from pexeso.runtime.checks import (
    require_choice,
    require_instance,
    require_options,
)
from pexeso.runtime.formatting import plain_scalar, shown
from pexeso.store.io.table_history import plain_state

if TYPE_CHECKING:
    from pexeso.semantic.thresholds.advice import Advice

OF_VECTORS = (
    "dimensions", "vector_precision", "metric", "map", "n_axes", "cells", "n_pivots", "n_levels",
    "pivot_choice",
)  # fmt: skip
KERNELS = ("auto", "compiled", "torch", "triton")
COUNTS = ("exact", "decide")
VALUES, ROWS = JOINABILITY_OF = ("values", "rows")
TEXTS, HASHED = VALUE_FORMS = ("texts", "hashed")
DEVICES = ("auto", "cpu", "cuda")
METHODS = ("semantic", "overlap", "containment", "transform", "all")
"""By similar values, by equal values, by a learned program, by all of these."""

LEMMAS = ("L1", "L2", "L3", "L4", "L5", "L6", "L7", "QB")

DEFAULT_MAX_DISTANCE = 0.06
USUAL_MAX_DISTANCES = {"lexical": 0.4, "hashing": 0.35, "fasttext": 0.22, "sentence": 0.34}
"""Default of `max_distance` by the sort of an index's model, `DEFAULT_MAX_DISTANCE` for the others,
whose values are plain means of word vectors: these lie closer together."""

USUAL_BY_MODEL = ", ".join(
    f"{usual} for {model}"
    for model, usual in {**USUAL_MAX_DISTANCES, "other models": DEFAULT_MAX_DISTANCE}.items()
)

DEFAULT_MIN_JOINABILITY = 0.5
DEFAULT_COLUMNS = 20
"""Columns that a search gives where it is not asked for a number: `k`."""

ALL = "all"
"""What `k` is where every column is wanted."""

DEFAULT_MIN_CONTAINMENT = 0.7

_CHOICES = {
    "metric": METRICS, "pivot_choice": PIVOT_CHOICES, "map": ("auto", *MAPS), "cells": CELLS,
}  # fmt: skip
_BOUNDS: dict[str, tuple[int, int | None]] = {
    "n_axes": (1, MAX_AXES),
    "n_pivots": (1, MAX_CODE_BITS),
    "n_levels": (1, MAX_CODE_BITS),
    "min_partitions": (1, None),
    "partition_bytes": (1 << 20, None),
    "max_table_bytes": (1, None),
    "seed": (0, (1 << 31) - 1),
    "dimensions": (2, 4096),
    "n_partitions": (1, None),
}
_PARTS_OF_HASHES = ("overlap", "containment", "bands")
_MAY_BE_NONE = ("n_axes", "n_levels", "dimensions", "n_partitions")

MAX_BYTES = 1 << 63
_BYTES = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class BuildOptions:
    """How an index is built.

    Attributes
    ----------
    model : str
        ``"lexical"`` (spelling, in a sparse space), ``"hashing"`` (spelling, as dense vectors),
        ``"fasttext"`` (trained on the lake), the path of a fastText ``.bin`` or of a GloVe text
        file, or ``"sentence:NAME"`` for a sentence-transformers model. Several have commas between
        them: a search takes one, by default the first. Options up to `pivot_choice` are for models
        of vectors, and refused with ``"lexical"`` alone.
    dimensions : int or None
        Of the vectors, 2 to 4,096; None: what the model has, 256 for hashing and 100 for fasttext.
    value_vectors : {"weighted", "mean"} or None
        How words make up a value with a fastText model (None: weighted) or a file of word vectors
        (None: mean); refused with others. See `embed.registry.create_embedder`.
    vector_precision : {"half", "single"}
        Of vectors: rounded to float16, half the bytes, or float32; see `embed.stored`.
    metric : {"euclidean", "angular"}
    map : {"auto", "projection", "pivots"}
        The contractive map that filters rest on: the leading principal axes and the rest, or the
        paper's pivots. ``"auto"`` takes what costs least on a sample of a partition's own columns.
    n_axes : int or None
        Axes of the projection, 1 to 127. None: as many as cost least.
    cells : {"blocks", "grid"}
        What the mapped space is cut into: equal blocks, or the paper's grid, with its map and size.
    n_pivots : int
        The paper's |P|.
    n_levels : int or None
        The paper's m; at most 62 over the number of coordinates. None: what costs least.
    pivot_choice : {"pca", "random"}
    n_partitions : int or None
        How many; None: as many as `partition_bytes` asks for, and at least `min_partitions`.
    min_partitions : int
    partition_bytes : int
        Most bytes of one partition, as estimated before it is built; at least 1 MiB.
    rules : ColumnRules
        Which columns can be join keys.
    normaliser : Normaliser
    aliases : str or None
        A table with a header and two columns: an alias, and what it means. Cells and query
        values that are aliases, once normalised, are read as that by every search.
    as_of : str, int or None
        State of Delta and Iceberg tables that is indexed, also by later updates: a moment, or the
        number of a version or snapshot; see `pexeso.ReadingOptions`. Other tables are read as they
        are. A table that has no such state is left out.
    max_table_bytes : int
        Larger files (unpacked) are left out: a table is read whole by one task.
    values : {"texts", "hashed"}
        How values are held: as texts, or as hashes with the key of this process
        (`pexeso.lake.hashed_values`), which are found by equal values alone.
    parts : tuple of str
        Further parts: ``"overlap"`` and ``"containment"`` for joins by equal values,
        ``"bands"`` of signatures, ``"composite"`` for keys of several columns, ``"redundancy"``.
    row_filters : tuple of str
        Filters of rows that composite keys are searched with; `pexeso.registry.require_filters`.
    seed : int
        Of every sample and random choice.
    """

    model: str = "lexical"
    dimensions: int | None = None
    value_vectors: str | None = None
    vector_precision: str = HALF
    metric: str = "euclidean"
    map: str = "auto"
    n_axes: int | None = None
    cells: str = "blocks"
    n_pivots: int = 5
    n_levels: int | None = 6
    pivot_choice: str = "pca"
    n_partitions: int | None = None
    min_partitions: int = 1
    partition_bytes: int = 1 << 30
    rules: ColumnRules = field(default_factory=ColumnRules)
    normaliser: Normaliser = field(default_factory=Normaliser)
    aliases: str | None = None
    as_of: str | int | None = None
    max_table_bytes: int = 1 << 30
    values: str = TEXTS
    parts: tuple[str, ...] = ()
    row_filters: tuple[str, ...] = DEFAULT_FILTERS
    seed: int = 0

    def __post_init__(self) -> None:
        make_plain(self)
        object.__setattr__(self, "parts", require_parts(self.parts))
        object.__setattr__(self, "row_filters", require_filters(self.row_filters))
        check_choices(self.models, self.value_vectors)
        check_precision(self.vector_precision)
        require_instance("rules", self.rules, ColumnRules)
        require_instance("normaliser", self.normaliser, Normaliser)
        if self.aliases is not None:
            path = os.fspath(self.aliases) if isinstance(self.aliases, str | os.PathLike) else None
            if not isinstance(path, str) or not path:
                raise InputError(
                    f"aliases must be the path or URL of a table. Got {shown(self.aliases)}."
                )
            object.__setattr__(self, "aliases", path)
        if self.as_of is not None:
            object.__setattr__(self, "as_of", plain_state(self.as_of))
        for name, allowed in _CHOICES.items():
            require_choice(name, getattr(self, name), allowed)
        for name, bounds in _BOUNDS.items():
            value = getattr(self, name)
            if value is None and name in _MAY_BE_NONE:
                continue
            if name.endswith("partitions"):
                value = _small_enough(name, value)
            whole_number(name, value, *bounds)
        if self.cells == "grid":
            self._check_grid()
        require_choice("values", self.values, VALUE_FORMS)
        if self.values == HASHED:
            self._check_hashed()
        for name in OF_VECTORS if self.models == ("lexical",) else ():
            if (value := getattr(self, name)) != getattr(BuildOptions, name):
                raise InputError(
                    f"{name} is for models of vectors, and the model 'lexical' has none. Got "
                    f"{name}={shown(value)}: leave it out, or name a model, such as 'hashing'."
                )

    @property
    def models(self) -> tuple[str, ...]:
        return model_names(self.model)

    def _check_hashed(self) -> None:
        if not self.parts:
            object.__setattr__(self, "parts", require_parts(["containment"]))
        refused = [name for name in self.parts if name not in _PARTS_OF_HASHES]
        refused += [name for name in self.models if name != "lexical"]
        refused += ["aliases"] if self.aliases or self.normaliser.aliases else []
        if refused:
            raise InputError(
                f"An index of hashed values has the parts {', '.join(_PARTS_OF_HASHES)} alone, no "
                f"models and no aliases, which hold texts. Got {', '.join(refused)}."
            )

    def _check_grid(self) -> None:
        if self.map == "auto" or (self.map == "projection" and self.n_axes is None):
            raise InputError(
                "The cells of a grid need the map to be given, and n_axes with a projection."
            )
        name, n_coordinates = "n_pivots", self.n_pivots
        if self.map == "projection" and self.n_axes is not None:
            name, n_coordinates = "n_axes + 1", self.n_axes + 1
        n_levels = self.n_levels or 1
        if n_coordinates * n_levels > MAX_CODE_BITS:
            raise InputError(
                f"{name} times n_levels must be at most {MAX_CODE_BITS}. Got {n_coordinates} * "
                f"{n_levels}; with {n_coordinates} coordinates n_levels can be at most "
                f"{MAX_CODE_BITS // n_coordinates}."
            )

    def with_aliases_read(self) -> BuildOptions:
        if self.aliases is None:
            return self
        from pexeso.lake.normalise.aliases import AliasedNormaliser, read_aliases

        aliases = read_aliases(self.aliases, self.normaliser)
        normaliser = AliasedNormaliser(self.normaliser, aliases)
        return replace(self, normaliser=normaliser, aliases=None)

    def grid(self) -> dict[str, Any]:
        names = (*OF_VECTORS[1:], "seed")
        options = {name: getattr(self, name) for name in names}
        if self.cells == "grid" and self.n_axes is None:
            del options["n_axes"]
        if self.models == ("lexical",):
            del options["vector_precision"]
        return options


@dataclass(frozen=True)
class SearchOptions:
    """What is searched for, and how.

    Attributes
    ----------
    max_distance : float
        Largest distance of two values that match, inclusive, as a fraction in [0, 1] of the largest
        distance there is (the paper's tau as a ratio).
    min_joinability : float or None
        Smallest share in (0, 1] of the query column that must have a match, inclusive (the paper's
        T). None: any match will do.
    joinability_of : {"values", "rows"}
        What the share is one of: the distinct values of the query column, normalised and not
        empty; or its rows, where a value counts as often as it occurs and empty cells count.
    k : int, "all" or None
        The k best columns. None: `DEFAULT_COLUMNS` of an index, and all of an executor. Without
        `min_joinability` as many as there are, however few values match.
    counts : {"exact", "decide"}
        ``"decide"`` stops counting a column once it is sure to be joinable; its joinability is then
        a lower bound. Ignored without `min_joinability`.
    exact : bool
        Compare everything with everything in float64: slow, the same answer.
    ignore_missing : bool
        Leave what cannot match (values unknown to the model, empty rows) out of the query column's
        size.
    exclude_table : str or None
        A table of the lake that must not be found.
    lemmas : tuple of str
        The filters in use, among L1 to L7 and QB; the answer does not depend on them.
    advice : Advice or None
        What chose `max_distance`, where a search was asked for it with ``auto=True`` or
        ``min_precision``.

    Examples
    --------
    >>> SearchOptions(max_distance=2.0)
    Traceback (most recent call last):
        ...
    pexeso.errors.InputError: max_distance must be a number in [0, 1]. Got 2.0 instead. It is a \
fraction of the largest distance: usual are 0.4 for lexical, 0.35 for hashing, 0.22 for fasttext, \
0.34 for sentence, 0.06 for other models.
    """

    max_distance: float = DEFAULT_MAX_DISTANCE
    min_joinability: float | None = DEFAULT_MIN_JOINABILITY
    joinability_of: str = VALUES
    k: int | str | None = None
    counts: str = "exact"
    exact: bool = False
    ignore_missing: bool = False
    exclude_table: str | None = None
    lemmas: tuple[str, ...] = LEMMAS
    advice: Advice | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        make_plain(self)
        usual = f"It is a fraction of the largest distance: usual are {USUAL_BY_MODEL}."
        shares = {"max_distance": (self.max_distance, usual, True)}
        if self.min_joinability is not None:
            usual = f"{DEFAULT_MIN_JOINABILITY} is a usual value."
            meaning = f"It is the share of your values that must match: {usual}"
            shares["min_joinability"] = (self.min_joinability, meaning, False)
        if not isinstance(self.exclude_table, str | None):
            raise InputError(f"exclude_table must be one table. Got {shown(self.exclude_table)}.")
        require_k(self.k)
        choices = {
            "counts": (self.counts, COUNTS),
            "joinability_of": (self.joinability_of, JOINABILITY_OF),
        }
        require_options(
            shares, {"exact": self.exact, "ignore_missing": self.ignore_missing}, choices
        )
        if isinstance(self.lemmas, str) or not isinstance(self.lemmas, Iterable):
            raise InputError(f"lemmas must be a list of texts. Got {shown(self.lemmas)} instead.")
        object.__setattr__(self, "lemmas", tuple(self.lemmas))
        if self.lemmas != LEMMAS:
            for lemma in self.lemmas:
                require_choice("Each of lemmas", lemma, LEMMAS)

    @property
    def are_lower_bounds(self) -> bool:
        return self.counts == "decide" and self.min_joinability is not None

    @property
    def limit(self) -> int | None:
        """How many columns a search of an index finds at most; None for all."""
        if self.k is None:
            return DEFAULT_COLUMNS
        return None if self.k == ALL else int(self.k)

    def with_limit(self, k: int | None) -> SearchOptions:
        """Return the same options for the k best columns, or all; nothing is checked again."""
        options = copy(self)
        object.__setattr__(options, "k", k)
        return options

    def to_dict(self) -> dict[str, Any]:
        """Return the options that shape the answer, as plain JSON."""
        names = (
            "max_distance", "min_joinability", "joinability_of", "k", "counts", "exact",
            "ignore_missing", "exclude_table",
        )  # fmt: skip
        chosen = {name: getattr(self, name) for name in names}
        return chosen if self.advice is None else {**chosen, "advice": self.advice.to_dict()}


def search_options(given: Mapping[str, Any]) -> SearchOptions:
    """Create search options from keyword arguments.

    Without `k` it is `DEFAULT_COLUMNS`. A number `k` without `min_joinability` selects the k best
    columns, however low their joinability.

    Examples
    --------
    >>> search_options({"k": 5}).min_joinability is None, search_options({}).min_joinability
    (True, 0.5)
    >>> search_options({}).k, search_options({"k": "all"}).min_joinability
    (20, 0.5)
    """
    unknown = sorted(set(given) - set(SearchOptions.__dataclass_fields__))
    if unknown:
        names = [name for name in SearchOptions.__dataclass_fields__ if name != "advice"]
        raise InputError(
            f"Search options are {', '.join((*names, 'auto', 'min_precision'))}. Got "
            f"{', '.join(unknown)}."
        )
    k = given.get("k")
    if k is None:
        return SearchOptions(**{**given, "k": DEFAULT_COLUMNS})
    if isinstance(k, str) or "min_joinability" in given:
        return SearchOptions(**given)
    return SearchOptions(**given, min_joinability=None)


def require_k(k: Any) -> None:
    """Raise InputError unless `k` is a whole number of columns, ``"all"``, or None."""
    if k is None or (isinstance(k, str) and k == ALL):
        return
    if isinstance(k, int) and k.bit_length() > 63:
        _small_enough("k", k)
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:
        raise InputError(
            "k must be a whole number of at least 1, or 'all' for every column that there is. Got "
            f"{shown(k)} instead."
        )


def columns_wanted(k: Any) -> int | None:
    """Return how many columns `k` means; None for all."""
    k = plain_scalar(k)
    require_k(k)
    return DEFAULT_COLUMNS if k is None else None if k == ALL else k


def require_min_containment(min_containment: Any) -> None:
    """Raise InputError if a share of values is not a number in (0, 1]."""
    if not _is_number(min_containment) or not 0 < min_containment <= 1:
        raise InputError(
            f"min_containment must be a number above 0 and at most 1. Got {min_containment!r} "
            "instead. It is the share of your distinct values that a column must have: "
            f"{DEFAULT_MIN_CONTAINMENT} is a usual value."
        )


def parse_bytes(text: str | int) -> int:
    """Read a number of bytes such as ``8GiB``, ``500 MB`` or ``1048576``."""
    text = plain_scalar(text)
    is_number = isinstance(text, int) and not isinstance(text, bool) and text < MAX_BYTES
    match = _BYTES.fullmatch(str(text)) if is_number or isinstance(text, str) else None
    if match is not None:
        number, prefix, binary = match.groups()
        n_bytes = float(number) * (1024 if binary else 1000) ** " kmgt".index(prefix.lower() or " ")
        if n_bytes < MAX_BYTES:
            return int(n_bytes)
    raise InputError(
        "A size must be a number with a unit, such as 8GiB, 500MB or 1048576, and below 8 EiB. Got "
        f"{shown(text)} instead."
    )


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return isinstance(value, int) or math.isfinite(value)  # an int may be too large for isfinite


def whole_number(name: str, value: Any, minimum: int, maximum: int | None = None) -> int:
    """Return an option that is a whole number within bounds as Python's; refuse any other."""
    number = plain_scalar(value)
    is_whole = isinstance(number, int) and not isinstance(number, bool)
    if not is_whole or number < minimum or (maximum is not None and number > maximum):
        upper = "" if maximum is None else f" and at most {maximum:,}"
        raise InputError(
            f"{name} must be a whole number of at least {minimum:,}{upper}. Got {shown(value)} "
            "instead."
        )
    return number


def make_plain(options: Any) -> None:
    """Replace numpy scalars in the fields of options by Python numbers for JSON."""
    for name, value in vars(options).items():
        if isinstance(value, np.generic):
            object.__setattr__(options, name, value.item())


def _small_enough(name: str, value: Any) -> Any:
    """Return an option as a plain value; JSON readers and Arrow refuse numbers of over 64 bits."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int) and value.bit_length() > 63:
        raise InputError(f"{name} must be a whole number below 2^63. Got {shown(value)} instead.")
    return value
