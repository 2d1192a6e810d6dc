"""The interface of index parts, and the records that a part yields.

Builds, updates, checks and reports use parts only through this interface.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from pexeso.errors import IndexCorruptError, InputError
from pexeso.runtime.formatting import plain
from pexeso.runtime.ranges import Ranges
from pexeso.runtime.shown import Shown, facts_table
from pexeso.store.manifest import FileEntry, FolderEntry

if TYPE_CHECKING:
    import pyarrow as pa

    from pexeso.build.job import BuildJob
    from pexeso.build.parts.sample import LakeSample
    from pexeso.lake.records import ReadTable
    from pexeso.options import BuildOptions
    from pexeso.store.integrity import Problem
    from pexeso.store.local.reader import Store

Batches = Iterator["pa.RecordBatch"]

# Facts and files of a folder of an index.
Filled = tuple[dict[str, Any], list[FileEntry]]

# A folder of which more columns are deleted is rewritten by a compaction.
MAX_DELETED_SHARE = 0.2


@dataclass(frozen=True)
class Written:
    """What a part wrote in a build or an update."""

    folders: Sequence[FolderEntry]  # The new ones, in search order
    # What the manifest is to say of the index besides
    facts: Mapping[str, Any] = field(default_factory=dict)
    fingerprints: Mapping[str, Any] = field(default_factory=dict)
    # After a rewriting: ids of deleted columns that folders which were kept still hold.
    deleted: Ranges = ()
    # After a rewriting of other folders than those that were to be rewritten: their numbers.
    replaced: Sequence[int] | None = None


@dataclass(frozen=True)
class PartEstimate:
    """What a part of an index will cost."""

    fields: Mapping[str, Any]  # What `pexeso.build.diagnostics.estimate.Estimate` says of it.
    n_bytes: int  # On disk
    memory_bytes: int  # Of the largest task
    # By stage, the part's own and the shared ones that it makes longer.
    seconds: Mapping[str, float]
    driver_bytes: int = 0  # Of what the driver does alone


class IndexPart(Protocol):
    """What one kind of question needs on disk.

    The object must be one that tasks of Spark can be sent: an attribute of an importable module.

    Attributes
    ----------
    name : str
        In the manifest.
    choices : tuple of str
        The words of `pexeso.options.BuildOptions.parts` that ask for the part, each resting on
        those before it; empty for a part of every index.
    stages : tuple of str
        Its own stages in a build, in order.
    folders_are : str
        What its folders are called where an update says how many came.
    reads_rows : bool
        Whether it needs whole rows, so that columns must not be read one by one.
    """

    name: str
    choices: tuple[str, ...]
    stages: tuple[str, ...]
    folders_are: str
    reads_rows: bool

    def records(self, tables: Sequence[ReadTable]) -> Iterator[pa.RecordBatch]:
        """Yield the records that the part needs of some tables, in the task that reads them.

        Those of a table may not depend on the tables that are with it.

        Their schema is `pexeso.lake.catalog.SCHEMA`.
        """

    def write(self, job: BuildJob) -> Written:
        """Write folders of the tables that the job has read."""

    def delete(self, store: Store, tables: pa.Array) -> Sequence[FolderEntry]:
        """Return an index's folder entries with the columns of some tables deleted.

        No file changes.
        """

    def worn(self, store: Store, options: BuildOptions) -> list[int]:
        """Return the numbers of the folders that a compaction is to rewrite."""

    def rewrite(self, job: BuildJob, numbers: Sequence[int]) -> Written:
        """Write what holds of some folders of `job.store` into new ones."""

    def check(self, store: Store, progress: Callable[[int, int], None]) -> list[Problem]:
        """Return the problems in the contents of the part.

        `progress` receives the bytes done and the total bytes.
        """

    def info(self, store: Store) -> Mapping[str, Any]:
        """Return what `pexeso.build.diagnostics.info.IndexInfo` says of the part, as plain JSON."""

    def totals(self, folders: Sequence[FolderEntry]) -> Mapping[str, int]:
        """Return what `pexeso.build.updates.Added` says of the part."""

    def estimate(self, sample: LakeSample) -> PartEstimate:
        """Return what the part will hold and cost, by a sample of the lake."""


@dataclass(frozen=True)
class PackagePart:
    """An index part whose methods are functions of a package's modules, imported when used.

    `model` is the position of the model of an index whose part it is: 0 for parts of every index.
    The functions of a package of further models receive it as `model`.
    """

    package: str
    name: str
    choices: tuple[str, ...]
    stages: tuple[str, ...]
    folders_are: str
    model: int = 0
    reads_rows: bool = False

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if method not in _MODULES:
            raise AttributeError(f"An index part has no {method!r}.")
        function = getattr(import_module(f"{self.package}.{_MODULES[method]}"), method)
        return partial(function, model=self.model) if self.model else function


# In which module of a package each method of a part is.
_MODULES = {
    **{method: method for method in ("records", "write", "rewrite", "check", "info", "estimate")},
    **{"delete": "rewrite", "worn": "rewrite", "totals": "info"},
}


# Most counts of a result in its line.
_MAX_COUNTS = 6


@dataclass(frozen=True, kw_only=True, repr=False)
class OfParts(Shown):
    """A result to which each index part adds fields of its own.

    These fields are read as attributes, like the others.
    """

    of_parts: Mapping[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        of_parts = self.__dict__.get("of_parts", {})
        if name not in of_parts:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return of_parts[name]

    def _counts(self) -> dict[str, int]:
        return {name: fact for name, fact in self.to_dict().items() if isinstance(fact, int)}

    def _summary(self) -> str:
        counts = list(self._counts().items())[:_MAX_COUNTS]
        return ", ".join(f"{plain(name)}={count}" for name, count in counts)

    def _shown(self) -> tuple[list[str], list[list[Any]]]:
        return facts_table(self._counts())

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form."""
        document = asdict(self)
        of_parts = document.pop("of_parts")
        return {**document, **of_parts}


def require_part(store: Store, word: str, purpose: str) -> None:
    if word not in parts_of(store):
        raise InputError(
            f"The index '{store.path}' has no part for {purpose}. Add it with 'pexeso add-part "
            f"{store.path} {word}', or build indexes with it from the start: 'pexeso index LAKE "
            f"INDEX --include {word}'."
        )


def parts_of(store: Store) -> Sequence[str]:
    parts = store.manifest.options.get("parts", [])
    return parts if isinstance(parts, list) else []


def problems_of(
    store: Store, entries: Sequence[FolderEntry], check: Callable[[FolderEntry], Iterable[str]]
) -> list[Problem]:
    from pexeso.store.integrity import Problem

    problems = []
    for entry in entries:
        try:
            wrong = list(check(entry))
        except IndexCorruptError as error:
            wrong = [str(error)]
        where = f"'{store.path / entry.folder}'"
        problems += [
            Problem(entry.folder, "content", f"{where} cannot be searched: {clause}")
            for clause in wrong
        ]
    return problems


def worn_folders(
    entries: Sequence[FolderEntry],
    deleted_shares: Sequence[float],
    partition_bytes: int,
    *,
    min_count: int = 1,
) -> list[int]:
    """Select the folders to rewrite: those with many deleted columns, and small ones.

    Small folders are selected only if there are several, and more than `min_count` folders in all.
    """
    full_of_deleted, small = [], []
    for number, (entry, share) in enumerate(zip(entries, deleted_shares, strict=True)):
        if share > MAX_DELETED_SHARE:
            full_of_deleted.append(number)
        elif entry.n_bytes < partition_bytes / 2:
            small.append(number)
    worthwhile = len(small) + len(full_of_deleted) > 1 and len(entries) > min_count
    return sorted(full_of_deleted + (small if worthwhile else []))
