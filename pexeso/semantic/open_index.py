"""An open index: one snapshot of its store, and what is opened of it when it is first needed."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pexeso.build.parts.base import parts_of
from pexeso.build.parts.metadata import (
    choose_device,
    embedder_folder,
    number_of_model,
    require_contents,
    store_of_model,
    stored_normaliser,
)
from pexeso.build.visible import open_visible
from pexeso.errors import EmbedderError, InputError, TableReadError
from pexeso.lake.catalog import Catalog
from pexeso.lake.hashed_values import require_key
from pexeso.lake.judgements import NONE, Column, Judgements, read_judgements
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.readers.options import ReadingOptions
from pexeso.lake.readers.table import DEFAULT_MAX_BYTES
from pexeso.lake.rights import LakeView
from pexeso.lake.rows import name_within, read_rows, read_typed_rows
from pexeso.options import DEFAULT_MAX_DISTANCE, USUAL_MAX_DISTANCES
from pexeso.results.query import QueryColumn, query_from_values, split_spec
from pexeso.store.io.location import Location, locate_state

if TYPE_CHECKING:
    import torch

    from embed.protocol import Embedder
    from pexeso.semantic.encoded_query import EncodedQuery
    from pexeso.semantic.partition_loader import PartitionLoader
    from pexeso.sets.part.open import Shard
    from pexeso.store.local.reader import Store


@dataclass(frozen=True)
class OpenOptions:
    """How an index is opened; see `pexeso.open_index`. The memory budget is in bytes."""

    device: str = "auto"
    memory_budget: int | None = None
    kernel: str = "auto"
    model: str | None = None
    keep_files: bool = False
    readings: tuple[str, ...] = ()  # by which joins and explanations read codes too
    visible: Any = None  # see `pexeso.lake.rights.rights`


@dataclass(frozen=True)
class OpenIndex:
    """One snapshot of an index. Later commits leave it as it is.

    Another process that it is sent to opens the same snapshot when it first needs a file of it:
    files that a commit has removed since are missed then.
    """

    whole: Store  # manifest and memory-mapped files, of all models
    options: OpenOptions = OpenOptions()
    seconds: float = field(default=0.0, compare=False)  # that opening took

    def __reduce__(self) -> tuple[Any, ...]:
        # Maps, models and devices are of this process: another one opens its own.
        return OpenIndex, (self.whole, self.options)

    def __copy__(self) -> OpenIndex:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> OpenIndex:
        # It never changes, so that copies of what rests on it share it, and the hold on its files.
        return self

    @cached_property
    def store(self) -> Store:
        """The index as if the model to search by were its only one."""
        return store_of_model(self.whole, number_of_model(self.whole, self.options.model))

    @cached_property
    def device(self) -> torch.device:
        return choose_device(self.options.device)

    @cached_property
    def value_key(self) -> bytes | None:
        """The key of an index of hashed values; its lack is refused. None for one of texts."""
        check = self.store.manifest.facts.get("key")
        return None if check is None else require_key(str(check))

    def require_texts(self) -> None:
        if "key" in self.whole.manifest.facts:
            raise InputError(
                f"The index '{self.whole.path}' holds hashed values, which are found by equal "
                "values alone: search it by overlap or containment (method=, --method)."
            )

    @cached_property
    def loader(self) -> PartitionLoader:
        self.require_texts()
        from pexeso.semantic.partition_loader import loader_of

        options = self.options
        return loader_of(self.store, options.device, options.memory_budget, options.kernel)

    @cached_property
    def normaliser(self) -> Normaliser:
        return stored_normaliser(self.store)

    @cached_property
    def join_normaliser(self) -> Normaliser:
        """The normaliser of joins and explanations, which may read codes by further rules."""
        readings = self.options.readings
        return self.normaliser.switched(on=readings) if readings else self.normaliser

    @cached_property
    def embedder(self) -> Embedder:
        self.require_texts()
        from embed.registry import load_embedder

        folder = embedder_folder(self.store)
        embedder = load_embedder(folder)
        expected = self.store.manifest.fingerprints["embedder"]
        if embedder.fingerprint != expected:
            raise EmbedderError(
                f"The model in '{folder}' is not the one that the index was built with "
                f"(fingerprint {embedder.fingerprint[:12]}, expected {expected[:12]}). Restore "
                "the folder, or build the index again."
            )
        return embedder

    @cached_property
    def shards(self) -> list[Shard]:
        """The open token sets."""
        from pexeso.sets.part.open import open_shards  # a semantic search needs none

        return open_shards(self.store)

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts that the index has."""
        return tuple(parts_of(self.store))

    @cached_property
    def catalog(self) -> Catalog:
        return Catalog(self.store.catalog_files)

    @property
    def lake(self) -> Path | Location:
        """The folder, or the place on another storage, that the index was built from."""
        return locate_state(self.store.manifest.facts["lake"], self.as_of)

    @property
    def as_of(self) -> str | None:
        """The state of tables that keep their history; None for the current one."""
        return self.store.manifest.options.get("as_of")

    def rows(self, table: str) -> pa.Table:
        return read_rows(self.lake, table, **self._reading)

    def typed_rows(self, table: str) -> tuple[pa.Table, list[pa.ChunkedArray] | None]:
        try:
            return read_typed_rows(self.lake, table, **self._reading)
        except TableReadError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise TableReadError(
                    f"'{table}' is no longer in the lake '{self.lake}': bring the index up to date "
                    "(pexeso append)."
                ) from error
            raise

    @property
    def _reading(self) -> dict[str, Any]:
        max_bytes = self.store.manifest.options.get("max_table_bytes", DEFAULT_MAX_BYTES)
        return {"max_bytes": max_bytes, "view": self.view}

    @property
    def view(self) -> LakeView:
        return LakeView(self.as_of, self.whole.rights)

    def reading_of(self, spec: str, reading: ReadingOptions) -> ReadingOptions:
        """Return how a file of the user is read: one of the lake as far as it may be seen."""
        rights = self.whole.rights
        if rights is None:
            return reading
        table = self.table_of(split_spec(spec)[0])
        if table is None or rights.sees_whole(table):
            return reading
        labels = rights.tables.get(table)
        if not labels:
            raise InputError(f"'{spec}' lies in the lake, and is not among what may be seen.")
        return replace(reading, columns=sorted(labels))

    @cached_property
    def usual_max_distance(self) -> float:
        """The `max_distance` of a search that is given none: by the sort of the model."""
        return USUAL_MAX_DISTANCES.get(self.embedder.kind, DEFAULT_MAX_DISTANCE)

    def orders(self, values: Any) -> list[EncodedQuery]:
        """Encode a query; one of dates that do not say what comes first is one for either order."""
        query = self.encode(values)
        # One without a normaliser is of a column of the lake, as it was indexed.
        if query.normaliser is None or query.column.exact_kind != "date":
            return [query]
        other = self.encode(query.column, day_first=True)
        if other.values.equals(query.values):
            return [query]
        return [replace(query, day_first=False), other]

    def encode(self, values: Any, *, day_first: bool | None = None) -> EncodedQuery:
        """Normalise and embed a query column just as the lake was, with the judgements of now."""
        from pexeso.semantic.encoded_query import EncodedQuery, prepare

        query = values
        if not isinstance(values, EncodedQuery):
            column = values if isinstance(values, QueryColumn) else query_from_values(values)
            query = prepare(column, self.normaliser, self.embedder, day_first=day_first)
        judgements = self.judgements
        if not judgements.rows and query.judged is None:
            return query
        from pexeso.semantic.judged import with_judgements

        return with_judgements(query, self.name_of(query.column), judgements, self.embedder)

    @property
    def judgements(self) -> Judgements:
        """What people said until now, whichever snapshot is open; nothing on other storage."""
        path = self.whole.path
        return read_judgements(path) if isinstance(path, Path) else NONE

    def name_of(self, column: QueryColumn) -> Column | None:
        """Return the table and label by which a query column is judged, where it has both."""
        if column.file is None or column.column is None:
            return None
        table = self.table_of(column.file) or PurePath(column.file).name
        return table, column.column

    def table_of(self, file: str | os.PathLike[str]) -> str | None:
        """Return the table name of a file in this lake, or None if it lies outside the lake."""
        name = name_within(self.lake, file)
        return None if name is None else self.catalog.named(name)

    def labels_of(self, table: str) -> list[str]:
        """Return the labels of the columns of a table, in their order."""
        return self.catalog.columns_of(table, ["label"])["label"].to_pylist()


def open_without_models(path: str | os.PathLike[str] | Location) -> OpenIndex:
    """Open an index, read-only, for searches that load no model."""
    store = open_visible(path)
    require_contents(store.manifest)
    opened = OpenIndex(store)
    opened.value_key  # noqa: B018  without its key an index answers nothing
    return opened
