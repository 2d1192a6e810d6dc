"""What is in an index: counts, bytes, and what was left out and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pexeso.build.diagnostics.reason_listing import ReasonListing
from pexeso.build.parts.base import OfParts
from pexeso.build.parts.metadata import require_contents
from pexeso.build.report import REPORT_FILE, BuildReport
from pexeso.errors import InputError
from pexeso.lake.catalog import Catalog
from pexeso.lake.left_out.groups import ReasonGroup, count_repaired, left_out
from pexeso.registry import choices, registered
from pexeso.store.local.reader import Store


@dataclass(frozen=True, repr=False)
class IndexInfo(OfParts):
    """A summary of an index.

    Attributes
    ----------
    path, lake, written_by, created : str
    files : int
        Files found under the lake.
    tables : int
        Files read as tables.
    columns : int
        Columns of these tables.
    columns_indexed : int
        Columns that can be found.
    aliases : int
        Values that are read as what they stand for.
    parts : list of str
        What the index has beside the semantic search; see `pexeso.registry.choices`.
    bytes : int
        Of all files.
    left_out : tuple of ReasonGroup
        How many tables, and then how many columns, are left out for which reason, with examples;
        each the largest group first.
    repaired : int
        Tables that were repaired while they were read, or read by a guess: those with notes.
    of_parts : dict
        What each part tells of itself: see `pexeso.semantic.part.info.info` and
        `pexeso.sets.part.info.info`.
    """

    path: str
    lake: str
    written_by: str
    created: str
    files: int
    tables: int
    columns: int
    columns_indexed: int
    aliases: int
    parts: list[str]
    bytes: int
    left_out: tuple[ReasonGroup, ...]
    repaired: int

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form."""
        return {**super().to_dict(), "left_out": [group.to_dict() for group in self.left_out]}


def index_info(store: Store) -> IndexInfo:
    """Summarise an open index; reads the catalog and a small document of each partition."""
    manifest = store.manifest
    require_contents(manifest)
    catalog = Catalog(store.catalog_files)
    tables, columns = catalog.tables(["reason"]), catalog.columns(["reason"])
    return IndexInfo(
        path=str(store.path),
        lake=manifest.facts["lake"],
        written_by=manifest.written_by,
        created=manifest.created,
        files=tables.num_rows,
        tables=tables["reason"].null_count,
        columns=columns.num_rows,
        columns_indexed=columns["reason"].null_count,
        aliases=manifest.facts.get("aliases", 0),
        parts=[word for word in choices() if word in manifest.options.get("parts", [])],
        bytes=manifest.n_bytes,
        left_out=left_out(catalog),
        repaired=count_repaired(catalog),
        of_parts={name: value for part in registered() for name, value in part.info(store).items()},
    )


def list_reasons(store: Store, *, notes: bool = False) -> ReasonListing:
    """List all that an index is without, or all notes about what was repaired while reading."""
    require_contents(store.manifest)
    return ReasonListing(Catalog(store.catalog_files), notes=notes)


def last_report(store: Store) -> BuildReport:
    """Return the report of the last build, append or compact."""
    for folder in reversed(store.manifest.catalogs):
        if folder.file(REPORT_FILE) is not None:
            return BuildReport.from_dict(store.catalog_document(folder, REPORT_FILE))
    raise InputError(
        f"The index '{store.path}' holds no report of how it was built. Build it again to have one."
    )
