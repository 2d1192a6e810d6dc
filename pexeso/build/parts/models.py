"""Several models in one index, and the vectors of their values.

The first is the index's own. Each further one has a part with its partitions, and its files in a
folder of the embedder's; its facts are under the name of its part. Seen as the index of one model
alone, it is searched and kept up like the first.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from embed.protocol import require_unit_or_zero
from embed.registry import has_value_vectors
from embed.stored import ENTRY_BYTES, SINGLE
from pexeso.build.parts.metadata import require_contents
from pexeso.errors import IndexCorruptError, InputError
from pexeso.options import OF_VECTORS, BuildOptions, ColumnRules
from pexeso.registry import MAX_MODELS, model_names
from pexeso.runtime.checks import require_choice
from pexeso.runtime.formatting import plain_scalar, shown
from pexeso.store.files import remove_tree
from pexeso.store.manifest import SEMANTIC, Manifest

if TYPE_CHECKING:
    from embed.protocol import Embedder
    from pexeso.engine.sparse.vectors import SparseVectors
    from pexeso.engine.vector_space import Vectors
    from pexeso.store.local.reader import Store


_SEEN_AS = "model_number"

WEIGHED = ("lexical", "hashing")
"""Models whose words weigh more, the rarer they are in the columns of the index."""

WEIGHED_BY = "weighed_by"
"""The fact that says by which columns the words of a model were weighed; see `held_columns`."""


def part_of(model: int) -> str:
    """Return the name of the part of the model at a position.

    Examples
    --------
    >>> part_of(0), part_of(1)
    ('semantic', 'semantic_2')
    """
    return SEMANTIC if model == 0 else f"{SEMANTIC}_{model + 1}"


def models_of(manifest: Manifest) -> tuple[str, ...]:
    """Return the names of the models that an index holds, the main one first."""
    return model_names(manifest.options["model"])


def options_for_model(options: BuildOptions, model: int) -> BuildOptions:
    """Return the options of a build as if the model at a position were its only one."""
    name = options.models[model]
    unused = [*(OF_VECTORS if name == "lexical" else ())]
    unused += [] if has_value_vectors(name) else ["value_vectors"]
    return replace(options, model=name, **{field: getattr(BuildOptions, field) for field in unused})


def entry_bytes(options: BuildOptions) -> int:
    """Return the bytes of an entry of the vectors of a build's one model.

    Those of a lexical one are sketches, by which its columns are divided.
    """
    return ENTRY_BYTES[SINGLE if options.model == "lexical" else options.vector_precision]


def partition_limits(options: BuildOptions, *, whole: bool) -> dict[str, int | None]:
    """Return how many partitions are wanted, and how large, as `partition.plan` takes it."""
    if whole and options.n_partitions is not None:
        return {"n_partitions": options.n_partitions, "partition_bytes": None}
    return {
        "n_partitions": None,
        "partition_bytes": options.partition_bytes,
        "min_partitions": options.min_partitions if whole else 1,
    }


def number_of_model(store: Store, name: str | None) -> int:
    """Return the position of the model of that name, 0 for None."""
    names = models_of(store.manifest)
    if name is not None and name not in names:
        raise InputError(
            f"The index '{store.path}' does not hold the model {name!r}, but {', '.join(names)}. "
            "Leave the model out for the first of these, or add it (Index.add_model, "
            "pexeso add-model)."
        )
    return 0 if name is None else names.index(name)


def store_of_model(store: Store, model: int) -> Store:
    """Return the store of an index as if the model at a position were its only one."""
    manifest = store.manifest
    names = models_of(manifest)
    if len(names) == 1:
        return store
    options = {**manifest.options, "model": names[model]}
    facts, fingerprints, parts = manifest.facts, manifest.fingerprints, dict(manifest.parts)
    further = {part_of(number): parts.pop(part_of(number), ()) for number in range(1, MAX_MODELS)}
    if model:
        name = part_of(model)
        model_facts, fingerprint = facts.get(name), fingerprints.get(name)
        if type(model_facts) is not dict or type(fingerprint) is not str:
            raise IndexCorruptError(
                f"The manifest of the index tells nothing of its model {names[model]!r}: it was "
                "not written by pexeso. Build the index again."
            )
        common = {key: value for key, value in facts.items() if key not in ("letters", WEIGHED_BY)}
        facts = {**common, **model_facts, _SEEN_AS: model}
        fingerprints = {**fingerprints, "embedder": fingerprint}
        parts[SEMANTIC] = further[name]
    if "letters" in facts and type(options.get("grid")) is dict:
        options["grid"] = {**options["grid"], "metric": "euclidean"}
    seen = replace(manifest, options=options, facts=facts, fingerprints=fingerprints, parts=parts)
    require_contents(seen)
    return replace(store, manifest=seen)


def held_columns(next_column: int, n_columns: int) -> list[int]:
    """Return what identifies the columns that an index holds.

    Ids are given once: where the next one and the number of columns are the same, so are these.
    """
    return [next_column, n_columns]


def stale_models(store: Store) -> list[int]:
    """Return the positions of the models whose words were weighed by other columns.

    Reads the manifest, and the ids of the columns of partitions of which some are deleted.
    """
    models = enumerate(models_of(store.manifest))
    return [number for number, name in models if name in WEIGHED and _is_stale(store, number)]


def _is_stale(store: Store, model: int) -> bool:
    store = store_of_model(store, model)
    facts, entries = store.manifest.facts, store.manifest.partitions
    if any(entry.facts.get("values_without_vector", 0) for entry in entries):
        return False  # words of these count too, and the index does not hold them
    masks = map(store.deleted_mask, range(len(entries)))
    deleted = sum(int(mask.sum()) for mask in masks if mask is not None)
    held = sum(entry.facts["columns"] for entry in entries) - deleted
    return facts.get(WEIGHED_BY) != held_columns(facts.get("next_column", -1), held)


def put_models(store: Store, folder: Path, made: Mapping[int, Path]) -> None:
    """Lay out the models of an index in another folder, some of them made again."""
    remove_tree(folder)
    shutil.copytree(store.embedder_folder, folder)
    further = {part_of(number) for number in range(1, MAX_MODELS)}
    for model, source in made.items():
        target = folder_of_model(folder, model)
        for path in [path for path in target.iterdir() if path.name not in further]:
            remove_tree(path)
        shutil.copytree(source, target, dirs_exist_ok=True)


def embedder_folder(store: Store) -> Path:
    """Return the folder of the model that a store is seen by; see `store_of_model`."""
    model = store.manifest.facts.get(_SEEN_AS, 0)
    return folder_of_model(store.embedder_folder, model if type(model) is int else 0)


def folder_of_model(folder: Path, model: int) -> Path:
    """Return the folder of the model at a position, below that of the main one."""
    return folder if model == 0 else folder / part_of(model)


def written_fields(
    store: Store | None, model: int, facts: Mapping[str, Any], fingerprints: Mapping[str, Any]
) -> dict[str, Any]:
    """Return facts and fingerprints of a model as fields of `pexeso.build.parts.base.Written`."""
    if model == 0:
        return {"facts": facts, "fingerprints": fingerprints}
    name = part_of(model)
    before = {} if store is None else store.manifest.facts.get(name, {})
    return {
        "facts": {name: {**before, **facts}},
        "fingerprints": {name: fingerprints["embedder"]} if fingerprints else {},
    }


def encode_values(embedder: Embedder, values: pa.Array) -> Vectors:
    """Return the vectors of normalised values, each on its own."""
    if getattr(embedder, "kind", None) == "lexical":
        return sparse_vectors(embedder, values)
    import torch

    vectors = np.ascontiguousarray(embedder.embed(values), dtype=np.float32)
    require_unit_or_zero(values, vectors)
    return torch.from_numpy(vectors)


def sparse_vectors(embedder: Embedder, values: pa.Array) -> SparseVectors:
    """Return the vectors of values under a lexical model."""
    from pexeso.engine.sparse.vectors import SparseVectors, letter_space
    from pexeso.lake.normalise.distinctions import marks_of

    words = embedder.encode(values)
    return SparseVectors.from_words(
        letter_space(**embedder.space),
        words.text,
        words.starts,
        words.weights,
        words.offsets,
        words.members,
        marks_of(values.cast(pa.large_string()), embedder.distinctions),
    )


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
        limits = [name for name in unknown if name in ColumnRules.__dataclass_fields__]
        way = f" Give {limits[0]} by rules=pexeso.ColumnRules({limits[0]}=...)." if limits else ""
        raise InputError(f"Build options are {', '.join(names)}. Got {', '.join(unknown)}.{way}")
    return BuildOptions(**with_preset(given, preset))


def _is_same(given: Any, value: str | None) -> bool:
    return given is None if value is None else isinstance(given, str) and given == value


def is_as_published(layout: Mapping[str, Any], embedder: Any) -> bool:
    """Return whether an index is what the preset ``"published"`` builds, however it was built."""
    names = set(_FIXED) - {"value_vectors", "n_axes"}  # the model has the one, pivots no axes
    return embedder in _MEAN_KINDS and all(
        name in layout and layout[name] == _FIXED[name] for name in names
    )
