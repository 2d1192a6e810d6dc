"""What is in an index: counts, bytes, and what was left out and why."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.build.report import REPORT_FILE, BuildReport
from pexeso.errors import InputError
from pexeso.lake.catalog import Catalog
from pexeso.parts.base import OfParts
from pexeso.parts.metadata import require_contents
from pexeso.registry import choices, registered
from pexeso.store.local.reader import Store

_NUMBERS = re.compile(r"\d[\d,.]*")


@dataclass(frozen=True)
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
    files_left_out, columns_left_out : dict of str to int
        How many for which reason; the numbers in a reason are those of one example.
    of_parts : dict
        What each part tells of itself: see `pexeso.parts.semantic.info.info` and
        `pexeso.parts.token_sets.info.info`.
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
    files_left_out: dict[str, int]
    columns_left_out: dict[str, int]


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
        files_left_out=count_reasons(tables["reason"]),
        columns_left_out=count_reasons(columns["reason"]),
        of_parts={name: told for part in registered() for name, told in part.info(store).items()},
    )


def left_out(catalog: Catalog) -> tuple[dict[str, int], dict[str, int]]:
    """Count the files and the columns that an index is without, each by reason."""
    files, columns = (read(["reason"])["reason"] for read in (catalog.tables, catalog.columns))
    return count_reasons(files), count_reasons(columns)


def last_report(store: Store) -> BuildReport:
    """Return the report of the last build, append or compact."""
    for folder in reversed(store.manifest.catalogs):
        if folder.file(REPORT_FILE) is not None:
            return BuildReport.from_dict(store.catalog_document(folder, REPORT_FILE))
    raise InputError(
        f"The index '{store.path}' holds no report of how it was built. Build it again to have one."
    )


def count_reasons(reasons: pa.ChunkedArray) -> dict[str, int]:
    """Count reasons that differ in numbers and quoted names only as one, most frequent first."""
    counts = pc.value_counts(pc.drop_null(reasons))
    examples: dict[str, str] = {}
    totals: Counter[str] = Counter()
    for reason, count in sorted((item["values"], item["counts"]) for item in counts.to_pylist()):
        kind = _NUMBERS.sub("#", reason)
        examples.setdefault(kind, reason)
        totals[kind] += count
    return {
        examples[kind]: total
        for kind, total in sorted(totals.items(), key=lambda item: (-item[1], item[0]))
    }
