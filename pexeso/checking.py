"""Check a whole index: every byte against its checksum, and then whether what the bytes say can be searched.

Checksums find damage. They are no signature: an index that was written wrong, or made to do harm, has right ones too. So the contents of each
partition are looked at as well, against everything that a search takes for granted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import numpy as np

from embed.registry import load_embedder
from pexeso.contents import require_contents, stored_grid_options
from pexeso.elsewhere import open_store_anywhere
from pexeso.engine.grid_options import LAYOUT_VERSION, GridOptions
from pexeso.engine.validation import check_arrays
from pexeso.equal_text.checking import check_shards
from pexeso.errors import EmbedderError, IndexCorruptError, InputError, MissingPackageError
from pexeso.lake.catalog import Catalog
from pexeso.lake.normalise import Normaliser
from pexeso.places import Place, locate
from pexeso.store.integrity import Problem, check_store
from pexeso.store.paths import MANIFEST
from pexeso.store.reader import Store
from pexeso.store.texts import require_sound

Progress = Callable[[int, int], None]

_COUNTED = ("columns", "values", "postings")


def check_index(path: str | os.PathLike[str] | Place, progress: Progress | None = None) -> list[Problem]:
    """Read an index twice: every byte against its checksum, then every partition, and all token sets, against what a search takes for granted.

    Parameters
    ----------
    path : path, URL or Place
        The index.
    progress : callable, optional
        Called with the bytes checked so far and those to check altogether.

    Returns
    -------
    list of Problem
        As `pexeso.store.integrity.check_store` gives them; then, where every byte is as it was written, those of kind ``content`` and ``version``.
        Where none is a failure, the index is whole.

    Raises
    ------
    IndexNotFoundError
        There is no index at the path.
    """
    done = [0, 0]

    def report(part: int, total: int) -> None:
        done[:] = part, total
        if progress is not None:
            progress(part, 2 * total)

    place = locate(path)
    if isinstance(place, Place):
        from pexeso.store.remote_check import check_remote_store

        problems = check_remote_store(place, report)
    else:
        problems = check_store(place, report)
    if any(problem.is_failure for problem in problems):
        return problems
    begun, total = done

    def report_partitions(part: int, whole: int) -> None:
        if progress is not None:
            progress(begun + total * part // max(1, whole), 2 * total)

    store = open_store_anywhere(place)
    return [*check_model(store), *check_partitions(store, report_partitions), *check_shards(store), *problems]


def check_model(store: Store) -> list[Problem]:
    """Tell what is wrong with the layout, the normaliser and the model of an index whose bytes are as they were written.

    A model that needs a package which is not installed is not looked at.
    """
    manifest, problems = store.manifest, []
    try:
        require_contents(manifest)
    except IndexCorruptError as error:
        return [Problem(MANIFEST, "content", str(error))]
    layout = manifest.options.get("layout", 1)
    if layout != LAYOUT_VERSION:
        sentence = f"'{store.path}' has partitions of layout {layout!r}, and this version reads layout {LAYOUT_VERSION}: build it again."
        problems.append(Problem(MANIFEST, "version", sentence))
    try:
        normaliser = Normaliser.from_json(manifest.options["normaliser"]).fingerprint
        if normaliser != manifest.fingerprints["normaliser"]:
            raise InputError("The rules for normalising values are not those of this version: build the index again.")
    except InputError as error:
        problems.append(Problem(MANIFEST, "version", f"'{store.path}' cannot be searched: {error}"))
    try:
        if load_embedder(store.embedder_folder, verify=True).fingerprint != manifest.fingerprints["embedder"]:
            raise EmbedderError("It is not the one that the index was built with.")
    except EmbedderError as error:
        sentence = f"The model in '{store.embedder_folder}' cannot be used: {error}"
        problems.append(Problem(manifest.embedder.folder, "content", sentence))
    except MissingPackageError:
        pass
    return problems


def check_partitions(store: Store, progress: Progress | None = None) -> list[Problem]:
    """Tell what is wrong with the contents of an index whose bytes are as they were written.

    Parameters
    ----------
    store : Store
        The open index.
    progress : callable, optional
        Called with the bytes of the partitions checked so far, and those of all.

    Returns
    -------
    list of Problem
        Of kind ``content``, in the order of the partitions; empty where all is well.

    Notes
    -----
    Memory: 300 MiB, and the catalog, twice.
    """
    try:
        require_contents(store.manifest)
        options = stored_grid_options(store.manifest)
    except IndexCorruptError as error:
        return [Problem(MANIFEST, "content", str(error))]
    problems: list[Problem] = []
    ids: list[np.ndarray] = []
    total, done = sum(entry.n_bytes for entry in store.manifest.partitions), 0
    for number, entry in enumerate(store.manifest.partitions):
        where = f"'{store.path / entry.folder}'"
        try:
            wrong = list(_check_partition(store, number, options))
            deleted, own = store.deleted_mask(number), np.asarray(store.array(number, "column_ids"))
            ids.append(own if deleted is None else own[~deleted])
        except IndexCorruptError as error:
            wrong = [str(error)]
        problems += [Problem(entry.folder, "content", f"{where} cannot be searched: {each}") for each in wrong]
        done += entry.n_bytes
        if progress is not None:
            progress(done, total)
    return problems or [Problem(MANIFEST, "content", f"'{store.path}' {each}") for each in _check_columns(store, ids)]


def _check_columns(store: Store, ids: list[np.ndarray]) -> Iterator[str]:
    """Hold the columns of the partitions, those that are not deleted, against the catalog."""
    held = np.sort(np.concatenate([np.zeros(0, np.int64), *ids]))
    n_twice = int((held[1:] == held[:-1]).sum())
    if n_twice:
        yield f"holds {n_twice:,} columns more than once."
        return
    try:
        catalog = Catalog(store.catalog_files)
        catalog.tables()
        listed = catalog.columns()["column_id"].drop_null().to_numpy()
    except IndexCorruptError as error:
        yield f"cannot be summed up: {error}"
        return
    for n_more, what in (
        (len(np.setdiff1d(held, listed)), "its catalog does not list"),
        (len(np.setdiff1d(listed, held)), "no partition holds"),
    ):
        if n_more:
            yield f"has {n_more:,} columns that {what}."


def _check_partition(store: Store, number: int, options: GridOptions) -> Iterator[str]:
    arrays = dict(store.partition(number))
    texts = {name: store.texts(number, name) for name in ("values", "texts", "tables", "labels")}
    for name, each in texts.items():
        require_sound(each)
        if each.null_count and name != "texts":
            yield f"{name}: {each.null_count:,} of its texts are missing."
    for name in ("column_ids", "posting_texts"):
        if name not in arrays:
            yield f"The array {name} of a partition is missing."
            return
    wrong = check_arrays(arrays, options, n_texts=len(texts["texts"]))
    yield from wrong
    if wrong:
        return
    counts = {
        "columns": len(arrays["column_ids"]),
        "values": len(arrays["vectors"]),
        "postings": len(arrays["posting_texts"]),
    }
    for name, expected in (("values", "values"), ("tables", "columns"), ("labels", "columns")):
        if len(texts[name]) != counts[expected]:
            yield f"{name}: it holds {len(texts[name]):,} texts for {counts[expected]:,} {expected}."
    facts, document = store.partition_entry(number).facts, store.document(number)
    for name in _COUNTED:
        for place, told in (("manifest.json", facts), ("meta.json", document if isinstance(document, dict) else {})):
            if told.get(name) != counts[name]:
                yield f"{place}: it tells of {told.get(name)!r} {name}, and there are {counts[name]:,}."
