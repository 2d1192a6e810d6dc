"""Addition of models to an index.

The values that the index holds are embedded by the new models; no table is read again.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from embed.registry import check_model
from pexeso.build.build import workers_for
from pexeso.build.compact import rewrite_catalog
from pexeso.build.job import BuildJob, build_bar
from pexeso.build.parts.models import models_of
from pexeso.build.recorded import options_of
from pexeso.build.report import Update, folder_counts
from pexeso.errors import InputError
from pexeso.options import BuildOptions
from pexeso.registry import MAX_MODELS, model_names
from pexeso.runtime.progress import with_bar
from pexeso.store.io.location import Location
from pexeso.store.local.reader import Store
from pexeso.store.opening import open_store_anywhere, open_writer


@with_bar(build_bar)
def add_model(
    path: str | os.PathLike[str] | Location,
    model: str,
    *,
    dimensions: int | None = None,
    value_vectors: str | None = None,
    master: str | None = None,
    conf: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Update:
    """Add a model to an index, or several with commas between them.

    Answers are those of an index that was built with all of them; those of its present models stay.
    The tables that the new models know are those that the index lists, whatever has become of their
    files. Later updates keep all models up to date.

    Parameters
    ----------
    path : path, URL or Place
        The index.
    model, dimensions, value_vectors
        Of the new models; see `pexeso.options.BuildOptions`. Their metric and the map of their
        filters are those that the index was built with.
    master, conf, progress
        See `pexeso.build_index`.

    Returns
    -------
    Update

    Raises
    ------
    InputError
        The index holds the model already, would hold more than it can, or lacks values that the
        models it holds know nothing about.
    StoredIndexError, OutputError, SparkError, EmbedderError, MissingPackageError
        See `pexeso.errors`. The index is as it was then.
    """
    settings = {"model": model, "dimensions": dimensions, "value_vectors": value_vectors}
    BuildOptions(**settings)  # refuses what no model can be given
    for name in model_names(model):
        check_model(name)
    purpose = f"add model {json.dumps(settings, sort_keys=True)}"
    with open_writer(path, update=True, purpose=purpose) as writer:
        store = open_store_anywhere(path)
        models = (*models_of(store.manifest), *model_names(model))
        _require_room(store, models)
        options = replace(
            options_of(store),
            model=",".join(models),
            dimensions=dimensions,
            value_vectors=value_vectors,
        )
        with workers_for(None, writer, master, conf) as workers:
            job = BuildJob(writer, options, store=store, workers=workers, progress=progress)
            # Folders of an index are kept as they are, so the models there are copied to a new one.
            shutil.copytree(store.embedder_folder, writer.embedder_folder, dirs_exist_ok=True)
            job.stage("catalog", lambda folder, meter: rewrite_catalog(job))
            written = {
                part.name: part.write(job)
                for part in job.parts
                if job.makes_model(getattr(part, "model", 0))
            }
            manifest = job.commit({}, written)
    added = {name: output.folders for name, output in written.items()}
    return Update(manifest.generation, True, of_parts=folder_counts(added))


def _require_room(store: Store, models: tuple[str, ...]) -> None:
    if len(set(models)) < len(models):
        raise InputError(
            f"The index '{store.path}' holds the models {', '.join(models_of(store.manifest))}. "
            f"Got the model {next(name for name in models if models.count(name) > 1)!r} to be "
            "added: name one that it does not hold, or build the index again to make this one anew."
        )
    if len(models) > MAX_MODELS:
        raise InputError(
            f"An index can hold at most {MAX_MODELS} models, and '{store.path}' would hold "
            f"{', '.join(models)}. Leave some out, or build another index."
        )
