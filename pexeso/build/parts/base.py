"""The interface of index parts, what they yield, and what is the same in all parts in shards.

Builds, updates, checks and reports use parts only through this interface.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pexeso.errors import IndexCorruptError, InputError
from pexeso.lake.catalog import SCHEMA, Catalog
from pexeso.runtime.exchange import BucketWriter, buckets_by_hash, read_bucket
from pexeso.runtime.formatting import Shown, facts_table, plain
from pexeso.runtime.ranges import Ranges, are_ranges, merge_ranges, numbers_in, ranges_of
from pexeso.store.files import read_document
from pexeso.store.io.parquet import n_bytes_of
from pexeso.store.manifest import MANIFEST, META, FileEntry, FolderEntry

if TYPE_CHECKING:
    import pyarrow as pa

    from pexeso.build.job import BuildJob
    from pexeso.build.parts.sample import LakeSample
    from pexeso.build.workers import Attempt, Facts
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
    n_tasks: int = 1  # Of that size, which may run side by side


class IndexPart(Protocol):
    """What one kind of question needs on disk.

    The object must be one that tasks of Spark can be sent: an attribute of an importable module.
    """

    name: str  # In the manifest
    # The words of `BuildOptions.parts` that ask for the part, each resting on those before it; none
    # for a part of every index
    choices: tuple[str, ...]
    stages: tuple[str, ...]  # Its own stages in a build, in order
    folders_are: str  # What its folders are called where an update says how many came
    reads_rows: bool  # Whether it needs whole rows, so that columns must not be read one by one

    def records(self, tables: Sequence[ReadTable]) -> Iterator[pa.RecordBatch]:
        """Yield the records that the part needs of some tables, in the task that reads them.

        Those of a table may not depend on the tables that are with it.

        Their schema is `pexeso.lake.catalog.SCHEMA`.
        """

    def write(self, job: BuildJob) -> Written:
        """Write folders of the tables that the job has read."""

    def delete(
        self, store: Store, tables: pa.Array, columns: Sequence[tuple[str, str]] = ()
    ) -> Sequence[FolderEntry]:
        """Return an index's folder entries with some tables, and some columns of others, deleted.

        Where rows are held whole, the table of such a column is deleted. No file changes.
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
    """A result to which each index part adds fields, which are read as attributes."""

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
    """Select folders to rewrite: those with many deleted columns, and small ones if several are."""
    full_of_deleted, small = [], []
    for number, (entry, share) in enumerate(zip(entries, deleted_shares, strict=True)):
        if share > MAX_DELETED_SHARE:
            full_of_deleted.append(number)
        elif entry.n_bytes < partition_bytes / 2:
            small.append(number)
    worthwhile = len(small) + len(full_of_deleted) > 1 and len(entries) > min_count
    return sorted(full_of_deleted + (small if worthwhile else []))


# The fact of a shard's entry that lists what is not to be found, as ranges (first, end).
DELETED = "deleted"


class ShardedPart:
    """An index part whose folders are shards; a package's modules do what differs.

    ``records``: ``records``. ``open``: ``open_shard``, whose shards have ``folder``, ``deleted``,
    ``numbers_of_tables`` and ``stored``, and ``check_shard``. ``write``: ``sizes`` of some rows
    under a name, ``shards_needed`` for these, ``write_shard`` and ``estimate``.
    """

    package: str
    name: str
    choices: tuple[str, ...]
    stages: tuple[str, ...]  # Two: of laying the rows out, and of building shards
    folders_are: str
    reads_rows: bool = False
    # What is laid out for a shard: names, each with the kind of its records and their fields
    rows: tuple[tuple[str, str, tuple[str, ...]], ...]
    divided_by: tuple[str, ...]  # The fields whose equal values stay in one shard
    # Facts of a shard; the first counts what its numbers, those of deleted ones too, are of
    counts: tuple[str, ...]
    # Names that an update reports, each with the fact that is summed over shards
    summed: tuple[tuple[str, str], ...]
    content: str
    form: str | None = None

    def _module(self, name: str) -> Any:
        return import_module(f"{self.package}.{name}")

    def records(self, tables: Sequence[ReadTable]) -> Iterator[pa.RecordBatch]:
        return self._module("records").records(tables)

    def estimate(self, sample: LakeSample) -> PartEstimate:
        return self._module("write").estimate(sample)

    def entries(self, store: Store) -> tuple[FolderEntry, ...]:
        return store.manifest.parts.get(self.name, ())

    def facts_hold(self, facts: Mapping[str, Any]) -> bool:
        return all(type(facts.get(name)) is int and facts[name] >= 0 for name in self.counts)

    def require_facts(self, entry: FolderEntry) -> None:
        """Refuse an entry whose facts cannot be those of a shard, or that has another form."""
        facts = entry.facts
        deleted = facts.get(DELETED, [])
        if not self.facts_hold(facts) or not are_ranges(deleted, facts[self.counts[0]]):
            raise IndexCorruptError(
                f"The manifest of the index does not tell of '{entry.folder}' what a folder of "
                f"{self.content} holds: it was not written by pexeso. Build the index again."
            )
        if self.form is not None and facts.get("form") != self.form:
            raise IndexCorruptError(
                f"The cells in '{entry.folder}' have the form {facts.get('form')!r}, and this "
                f"version of pexeso compares the form {self.form!r}: build the index again."
            )

    def write_options(self, options: BuildOptions) -> dict[str, Any]:
        """Return what ``write_shard`` receives by name."""
        return {}

    def write(self, job: BuildJob) -> Written:
        files = {name: job.record_files(kind) for name, kind, _ in self.rows}
        items = [(name, path) for name, paths in files.items() for path in paths]
        read = partial(read_records, fields={name: fields for name, _, fields in self.rows})
        return self._divide_and_write(job, items, read, n_bytes_of(path for _, path in items))

    def rewrite(self, job: BuildJob, numbers: Sequence[int]) -> Written:
        if not numbers:
            return Written([])
        items = [(name, number) for number in numbers for name, _, _ in self.rows]
        read = partial(self.read_shard, store=job.index)
        entries = [self.entries(job.index)[number] for number in numbers]
        return self._divide_and_write(job, items, read, sum(entry.n_bytes for entry in entries))

    def read_shard(self, item: tuple[str, int], *, store: Store) -> Batches:
        """Read one kind of rows of a shard, without deleted ones."""
        name, number = item
        shard = self._module("open").open_shard(store, self.entries(store)[number])
        for stored in shard.stored(name):
            yield stored.cast(self.schema_of(name))

    def schema_of(self, name: str) -> pa.Schema:
        fields = next(fields for known, _, fields in self.rows if known == name)
        return pa.schema([SCHEMA.field(field).with_nullable(True) for field in fields])

    def _divide_and_write(
        self,
        job: BuildJob,
        items: Sequence[tuple[str, Any]],
        read: Callable[[tuple[str, Any]], Batches],
        n_bytes: int,
    ) -> Written:
        writing = self._module("write")

        def lay_out(folder: Path) -> Facts:
            measure = partial(_measure, read=read, sizes=writing.sizes)
            measured = job.run(measure, items, folder, n_bytes=n_bytes)
            n_buckets = 0
            if measured:
                sizes = [sum(sizes) for sizes in zip(*measured, strict=True)]
                n_buckets = writing.shards_needed(*sizes, job.options)
            if not n_buckets:
                return {"shards": [], "buckets": 0}
            split = partial(
                _split, read=read, by=self.divided_by, n_buckets=n_buckets, schemas=self.schema_of
            )
            counts = job.run(split, items, folder, n_bytes=n_bytes)
            first = self.rows[0][0]
            of_first = [count for (name, _), count in zip(items, counts, strict=True)
                        if name == first]  # fmt: skip
            # Buckets that have rows may be few: shards are numbered without gaps.
            filled = np.flatnonzero(np.sum(of_first, axis=0)).tolist()
            return {"shards": filled, "buckets": n_buckets}

        first, last = self.stages
        laid_out = job.stage(first, lay_out)
        if not laid_out["shards"]:
            return Written([])
        placed = Placed(job.stages.folder(first), laid_out["shards"], laid_out["buckets"])
        fill = partial(writing.write_shard, placed, **self.write_options(job.options))
        return Written(job.write_folders(last, len(placed.buckets), fill, n_bytes=n_bytes))

    def delete(
        self, store: Store, tables: pa.Array, columns: Sequence[tuple[str, str]] = ()
    ) -> list[FolderEntry]:
        """Return the entries of shards without some tables and columns; empty ones drop out."""
        entries = []
        of_columns = pa.array(sorted({table for table, _ in columns}), pa.string())
        for entry in self.entries(store):
            shard = self._module("open").open_shard(store, entry)
            numbers = shard.numbers_of_tables(tables)
            if columns:
                numbers_of = getattr(shard, "numbers_of", None)
                own = numbers_of(columns) if numbers_of else shard.numbers_of_tables(of_columns)
                numbers = np.union1d(numbers, own[own >= 0])
            if len(numbers):
                ranges = merge_ranges(entry.facts.get(DELETED, []), ranges_of(numbers))
                deleted = [list(span) for span in ranges]
                entry = replace(entry, facts={**entry.facts, DELETED: deleted})
            if len(deleted_numbers(entry)) < entry.facts[self.counts[0]]:
                entries.append(entry)
        return entries

    def worn(self, store: Store, options: BuildOptions) -> list[int]:
        entries = self.entries(store)
        shares = [
            len(deleted_numbers(entry)) / max(1, entry.facts[self.counts[0]]) for entry in entries
        ]
        return worn_folders(entries, shares, options.partition_bytes)

    def check(
        self, store: Store, progress: Callable[[int, int], None] | None = None
    ) -> list[Problem]:
        if not self.entries(store):
            return []
        try:
            listed = Catalog(store.catalog_files).tables(["table"])["table"].combine_chunks()
        except IndexCorruptError as error:
            from pexeso.store.integrity import Problem

            return [Problem(MANIFEST, "content", str(error))]
        opening = self._module("open")

        def check_shard(entry: FolderEntry) -> Iterator[str]:
            return opening.check_shard(opening.open_shard(store, entry), entry, listed)

        return problems_of(store, self.entries(store), check_shard)

    def wrong_counts(
        self, folder: Path, entry: FolderEntry, numbers: Iterable[int]
    ) -> Iterator[str]:
        """Compare the counts of a shard, in the order of `counts`, with those recorded of it."""
        document = read_document(folder / META)
        recorded = {MANIFEST: entry.facts, META: document if isinstance(document, dict) else {}}
        counts = dict(zip(self.counts, numbers, strict=True))
        for where, facts in recorded.items():
            for name, number in counts.items():
                if facts.get(name) != number:
                    yield (
                        f"{where}: it records {facts.get(name)!r} {name}, and there are {number:,}."
                    )

    def info(self, store: Store) -> dict[str, Any]:
        """Return what is in the shards, by the manifest alone."""
        shards = []
        for entry in self.entries(store):
            self.require_facts(entry)
            n_deleted = len(deleted_numbers(entry))
            shards.append({**self.shown(entry.facts), "deleted": n_deleted, "bytes": entry.n_bytes})
        return {self.name: shards}

    def shown(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Return what `pexeso info` says of a shard besides its bytes and what is deleted."""
        return {name: facts[name] for name in self.counts}

    def totals(self, folders: Sequence[FolderEntry]) -> dict[str, int]:
        return {name: sum(entry.facts[fact] for entry in folders) for name, fact in self.summed}


def estimated(field: str, sizes: Any, *costs: Any) -> PartEstimate:
    """Return the estimate of a part; without `costs`, that of an index without it."""
    n_bytes, memory_bytes, seconds = costs or (0, 0, {})
    return PartEstimate(
        {field: asdict(sizes)}, n_bytes, memory_bytes, seconds, n_tasks=max(1, sizes.shards)
    )


def unlisted(what: str, names: pa.Array, listed: pa.Array) -> Iterator[str]:
    """Yield what is wrong where some tables of a shard are not those of the catalog."""
    distinct = pc.unique(names).cast(pa.string())
    n_unknown = len(distinct) - (pc.sum(pc.is_in(distinct, value_set=listed)).as_py() or 0)
    if n_unknown:
        yield f"{what} of {n_unknown:,} tables that the catalog does not list."


@dataclass(frozen=True)
class Placed:
    """What tasks laid out for folders of an index: which bucket each of them is made of."""

    folder: Path
    buckets: Sequence[int]
    n_buckets: int

    def read(
        self, name: str, number: int, schema: pa.Schema, names: Sequence[str] | None = None
    ) -> pa.Table:
        bucket = self.buckets[number]
        return read_bucket(self.folder / name, bucket, self.n_buckets, schema, names)


def read_rows(placed: Placed, name: str, number: int, columns: Sequence[str]) -> pa.Table:
    schema = pa.schema([SCHEMA.field(column).with_nullable(True) for column in columns])
    return placed.read(name, number, schema)


def read_records(item: tuple[str, Path], *, fields: Mapping[str, Sequence[str]]) -> Batches:
    name, path = item
    yield from pq.ParquetFile(path).iter_batches(_BATCH_ROWS, columns=list(fields[name]))


_BATCH_ROWS = 1 << 16

_Read = Callable[[tuple[str, Any]], Batches]


def _measure(
    item: tuple[str, Any], attempt: Attempt, *, read: _Read, sizes: Callable[..., tuple[int, ...]]
) -> tuple[int, ...]:
    totals = [sizes(item[0], batch) for batch in read(item)] or [sizes(item[0], None)]
    return tuple(sum(sizes) for sizes in zip(*totals, strict=True))


def _split(
    item: tuple[str, Any],
    attempt: Attempt,
    *,
    read: _Read,
    by: Sequence[str],
    n_buckets: int,
    schemas: Callable[[str], pa.Schema],
) -> np.ndarray:
    name, _ = item
    with BucketWriter(attempt.path(name, "part.arrow"), n_buckets, schemas(name)) as writer:
        for batch in read(item):
            columns = [batch.column(field) for field in by]
            writer.add(batch, buckets_by_hash(n_buckets, *columns))
    return writer.counts


def deleted_numbers(entry: FolderEntry) -> np.ndarray:
    """Return the numbers of what is deleted in a shard, int64, ascending."""
    return numbers_in(entry.facts.get(DELETED, []))
