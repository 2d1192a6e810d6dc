"""What a manifest records of an index besides its files, checked before it is used.

The store keeps these entries and reads nothing in them. A manifest may come from anywhere, so that
a missing or odd entry is damage, reported in one sentence.

The first of several models is the index's own. Each further one has a part with its partitions, and
its files in a folder of the embedder's; its facts are under the name of its part. Seen as the index
of one model alone, it is searched and kept up like the first.
"""

from __future__ import annotations

import logging
import shutil
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from embed.protocol import Embedder, require_unit_or_zero
from embed.registry import has_value_vectors
from embed.stored import ENTRY_BYTES, SINGLE
from pexeso.engine.vector_space import LAYOUT_VERSION, Vectors, VectorSpace
from pexeso.errors import DeviceError, IndexCorruptError, IndexVersionError, InputError
from pexeso.lake.choose import ColumnRules
from pexeso.lake.normalise.normaliser import VERSION as NORMALISER_VERSION
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.options import DEVICES, OF_VECTORS, TEXTS, BuildOptions
from pexeso.registry import DEFAULT_FILTERS, MAX_MODELS, model_names
from pexeso.runtime.checks import require_choice
from pexeso.runtime.extras import require
from pexeso.runtime.formatting import plain_scalar, shown
from pexeso.store.files import remove_tree
from pexeso.store.local.reader import Store
from pexeso.store.manifest import SEMANTIC, Manifest

if TYPE_CHECKING:
    import torch

    from pexeso.engine.options import PartitionLayoutOptions
    from pexeso.engine.sparse.vectors import SparseVectors


_NEEDED: dict[str, dict[str, type]] = {
    "options": {"grid": dict, "normaliser": str, "model": str},
    "fingerprints": {"embedder": str, "normaliser": str},
    "facts": {"lake": str, "values": int, "postings": int, "dimensions": int},
}
_GRID = {"metric": str, "map": str}
_PARTITION = ("columns", "values", "postings", "cells", "coordinates")


def require_contents(manifest: Manifest) -> None:
    """Refuse a manifest that lacks what searching and summing up an index need."""
    for section, needed in _NEEDED.items():
        _require(getattr(manifest, section), needed, f"its {section}")
    _require(manifest.options["grid"], _GRID, "the options of its partitions")
    for entry in manifest.partitions:
        counts = {name: int for name in _PARTITION if name in entry.facts}
        _require(entry.facts, counts, f"the facts of {entry.folder}")


def stored_grid_options(manifest: Manifest) -> PartitionLayoutOptions:
    from pexeso.engine.options import (
        PartitionLayoutOptions,  # brings torch, which a summary of an index does without
    )

    grid: Any = manifest.options.get("grid")
    try:
        return PartitionLayoutOptions(**grid)
    except (InputError, TypeError, ValueError) as error:
        raise IndexCorruptError(
            f"The manifest of the index has options of its partitions that none can have: {error}"
        ) from error


def stored_normaliser(store: Store) -> Normaliser:
    from pexeso.lake.normalise.aliases import normaliser_from_json  # most commands do without

    return normaliser_from_json(store.manifest.options["normaliser"], store.catalog_files)


def stored_space(manifest: Manifest) -> VectorSpace:
    letters: Any = manifest.facts.get("letters")
    if letters is None:
        require("torch", "An index of dense vectors")
        from pexeso.engine.dense.space import DenseSpace

        return DenseSpace(stored_grid_options(manifest))
    from pexeso.engine.sparse.sparse_space import SparseSpace
    from pexeso.engine.sparse.vectors import LetterSpace

    try:
        return SparseSpace(LetterSpace(**letters))
    except (InputError, TypeError) as error:
        raise IndexCorruptError(
            f"The manifest of the index records a lexical space that none can have: {error}"
        ) from error


def _require(fields: dict[str, Any], needed: dict[str, type], where: str) -> None:
    for name, kind in needed.items():
        if type(fields.get(name)) is not kind:
            raise IndexCorruptError(
                f"The manifest of the index has no {kind.__name__} {name!r} among {where}: it "
                "was not written by pexeso. Build the index again."
            )


def described(options: BuildOptions) -> dict[str, Any]:
    """Return what an index records of the options that it was built with, as plain JSON."""
    # They bring torch, for which nobody waits who has misspelt a folder.
    from pexeso.engine.options import PartitionLayoutOptions

    return {
        **({} if options.as_of is None else {"as_of": options.as_of}),
        **({} if options.values == TEXTS else {"values": options.values}),
        "model": options.model,
        "grid": vars(PartitionLayoutOptions(**options.grid())),
        "layout": LAYOUT_VERSION,
        "n_partitions": options.n_partitions,
        "min_partitions": options.min_partitions,
        "partition_bytes": options.partition_bytes,
        "rules": options.rules.to_dict(),
        "normaliser": options.normaliser.to_json(),
        "max_table_bytes": options.max_table_bytes,
        "parts": list(options.parts),
        "row_filters": list(options.row_filters),
        "seed": options.seed,
    }


def options_of(store: Store) -> BuildOptions:
    """Return the options that an index was built with; its aliases are the normaliser's."""
    described = store.manifest.options
    try:
        # A lexical index has no vectors, nor options of them.
        fields = () if described["model"] == "lexical" else BuildOptions.__dataclass_fields__
        grid = {
            name: value for name, value in described["grid"].items() if name in (*fields, "seed")
        }
        names = ("n_partitions", "partition_bytes", "max_table_bytes")
        return BuildOptions(
            **{name: described[name] for name in names},
            **grid,
            model=described["model"],
            min_partitions=described.get("min_partitions", 1),
            parts=described.get("parts", ()),
            row_filters=described.get("row_filters", DEFAULT_FILTERS),
            as_of=described.get("as_of"),
            values=described.get("values", TEXTS),
            rules=ColumnRules.from_dict(described["rules"]),
            normaliser=stored_normaliser(store),
        )
    except (KeyError, TypeError, AttributeError, InputError) as error:
        raise IndexCorruptError(
            f"The manifest of the index does not say how it was built: {error}. Build it again."
        ) from error


_log = logging.getLogger("pexeso.index")


def require_searchable(store: Store) -> None:
    """Refuse an index of another layout or normaliser, or without what a search needs."""
    layout = store.manifest.options.get("layout")
    if layout != LAYOUT_VERSION:
        raise IndexVersionError(
            f"The index '{store.path}' was written by {store.manifest.written_by} with "
            f"partitions of layout {layout}, and this version reads layout "
            f"{LAYOUT_VERSION}. Build it again with this version, or search it with the one that "
            "wrote it."
        )
    require_contents(store.manifest)
    normaliser_of(store)


def choose_device(name: str) -> torch.device:
    torch = require("torch", f"The device {name}")
    kind, _, number = name.partition(":") if isinstance(name, str) else ("", "", "")
    if kind not in DEVICES or (number and (kind != "cuda" or not number.isdigit())):
        raise InputError(
            f"The device must be one of {', '.join(DEVICES)} or cuda:NUMBER. Got {name!r} instead."
        )
    if kind == "cpu":
        return torch.device(name)
    n_devices, reason = _cuda_devices()
    if kind == "auto":
        if not n_devices:
            _log_use_of_the_cpu(reason)
        return torch.device("cuda" if n_devices else "cpu")
    if int(number or 0) >= n_devices:
        raise DeviceError(
            f"The device {name} cannot be used: {reason}. Use the device auto or cpu, or "
            "mend the driver."
            if reason
            else f"There is no device {name}: torch sees {n_devices} CUDA devices. "
            "Use the device auto or cpu, or install a torch with CUDA."
        )
    return torch.device(name)


def _cuda_devices() -> tuple[int, str]:
    """Return how many CUDA devices there are, and what is wrong with their driver, or ''."""
    import torch

    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            n_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    except (RuntimeError, OSError) as error:
        n_devices, problem = 0, str(error)
    else:
        problem = str(caught[-1].message) if caught and not n_devices else ""
    reason = problem.strip().partition("\n")[0].rstrip(".")
    return n_devices, f"the CUDA driver does not work ({reason})" if problem else ""


@cache
def _log_use_of_the_cpu(reason: str) -> None:
    """Log once in a process that `auto` found no CUDA device, or why it can use none."""
    if reason:
        _log.warning("Searches run on the CPU: %s.", reason)
    else:
        _log.info("No CUDA device was found, so searches run on the CPU.")


def normaliser_of(store: Store) -> Normaliser:
    try:
        normaliser = stored_normaliser(store)
        same = normaliser.fingerprint == store.manifest.fingerprints["normaliser"]
    except InputError:
        same = False
    if not same:
        raise IndexVersionError(
            f"The index '{store.path}' was written by {store.manifest.written_by} with other "
            "rules for normalising values than this version's "
            f"(version {NORMALISER_VERSION}). Build it again with this version, or search it "
            "with the one that wrote it."
        )
    return normaliser


_SEEN_AS = "model_number"

# Models whose words weigh more, the rarer they are in the columns of the index.
WEIGHED = ("lexical", "hashing")

# The fact that says by which columns the words of a model were weighed; see `held_columns`.
WEIGHED_BY = "weighed_by"


def part_of(model: int) -> str:
    """Return the name of the part of the model at a position."""
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
    """Return the bytes of an entry of a model's vectors; a lexical one is divided by sketches."""
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
    return folder if model == 0 else folder / part_of(model)


def written_fields(
    store: Store | None, model: int, facts: Mapping[str, Any], fingerprints: Mapping[str, Any]
) -> dict[str, Any]:
    if model == 0:
        return {"facts": facts, "fingerprints": fingerprints}
    name = part_of(model)
    before = {} if store is None else store.manifest.facts.get(name, {})
    return {
        "facts": {name: {**before, **facts}},
        "fingerprints": {name: fingerprints["embedder"]} if fingerprints else {},
    }


def encode_values(embedder: Embedder, values: pa.Array) -> Vectors:
    if getattr(embedder, "kind", None) == "lexical":
        return sparse_vectors(embedder, values)
    import torch

    vectors = np.ascontiguousarray(embedder.embed(values), dtype=np.float32)
    require_unit_or_zero(values, vectors)
    return torch.from_numpy(vectors)


def sparse_vectors(embedder: Embedder, values: pa.Array) -> SparseVectors:
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

# The system of the PEXESO paper: another value is refused.
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

# What may be given otherwise; 10 is the paper's number of partitions for its largest lake.
_DEFAULTS: Mapping[str, Any] = {"model": "fasttext", "min_partitions": 10}

# Models of which a value is the mean of the unit vectors of its words.
_MEAN_KINDS = ("fasttext-mean", "glove")


def with_preset(given: Mapping[str, Any], preset: str | None) -> dict[str, Any]:
    """Return build options with those of a preset added."""
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
    """Make the options of a build from those that were given and a preset; see `with_preset`."""
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
