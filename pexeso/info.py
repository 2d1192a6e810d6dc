"""What is in an index: counts, bytes, and what was left out and why."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.contents import require_contents
from pexeso.errors import InputError
from pexeso.lake.catalog import Catalog
from pexeso.options import PARTS
from pexeso.report import REPORT_FILE, BuildReport
from pexeso.store.manifest import FolderEntry
from pexeso.store.reader import Store

_NUMBERS = re.compile(r"\d[\d,.]*")


@dataclass(frozen=True)
class IndexInfo:
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
    values : int
        Distinct normalised values.
    postings : int
        (column, distinct value) pairs.
    model : str
    dimensions : int
    metric : str
    map : str
        The contractive map that was asked for: ``"auto"``, ``"projection"`` or ``"pivots"``.
    cells : str
        ``"blocks"`` or ``"grid"``.
    partitions : list of dict
        ``columns``, ``values``, ``postings``, ``cells``, ``coordinates``, ``map``, ``bytes`` of each; ``map`` is the one in use, and ``choice`` what it was
        chosen from, where it was.
    parts : list of str
        For joins by equal text; see `pexeso.options.PARTS`.
    token_sets : list of dict
        For each shard of these parts ``columns`` (as sets), ``tokens`` (distinct), ``pairs`` (of a column and a token), ``deleted`` (columns among these
        that are not found any more) and ``bytes``.
    bytes : int
        Of all files.
    files_left_out, columns_left_out : dict of str to int
        How many for which reason; the numbers in a reason are those of one example.
    """

    path: str
    lake: str
    written_by: str
    created: str
    files: int
    tables: int
    columns: int
    columns_indexed: int
    values: int
    postings: int
    model: str
    dimensions: int
    metric: str
    map: str
    cells: str
    partitions: list[dict[str, Any]]
    parts: list[str]
    token_sets: list[dict[str, Any]]
    bytes: int
    files_left_out: dict[str, int]
    columns_left_out: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Give the plain JSON form."""
        return asdict(self)


def index_info(store: Store) -> IndexInfo:
    """Summarise an open index; reads the catalog and a small document of each partition."""
    manifest = store.manifest
    require_contents(manifest)
    catalog = Catalog(store.catalog_files)
    tables, columns = catalog.tables(["reason"]), catalog.columns(["reason"])
    grid = manifest.options["grid"]
    return IndexInfo(
        path=str(store.path),
        lake=manifest.facts["lake"],
        written_by=manifest.written_by,
        created=manifest.created,
        files=tables.num_rows,
        tables=tables["reason"].null_count,
        columns=columns.num_rows,
        columns_indexed=columns["reason"].null_count,
        values=manifest.facts["values"],
        postings=manifest.facts["postings"],
        model=manifest.options["model"],
        dimensions=manifest.facts["dimensions"],
        metric=grid["metric"],
        map=grid["map"],
        cells=grid.get("cells", "grid"),
        partitions=[
            {**entry.facts, "bytes": entry.n_bytes, "choice": _choice(store.document(number))}
            for number, entry in enumerate(manifest.partitions)
        ],
        parts=[part for part in PARTS if part in manifest.options.get("parts", [])],
        token_sets=[_shard(entry) for entry in manifest.token_sets],
        bytes=manifest.n_bytes,
        files_left_out=count_reasons(tables["reason"]),
        columns_left_out=count_reasons(columns["reason"]),
    )


def _shard(entry: FolderEntry) -> dict[str, Any]:
    from pexeso.equal_text.shards import deleted_sets, require_shard_facts  # brings numba, which most indexes need not

    require_shard_facts(entry)
    counts = {"columns": entry.facts["sets"], **{name: entry.facts[name] for name in ("tokens", "pairs")}}
    return {**counts, "deleted": len(deleted_sets(entry)), "bytes": entry.n_bytes}


def _choice(document: Any) -> dict[str, Any] | None:
    choice = document.get("choice") if isinstance(document, dict) else None
    return choice if isinstance(choice, dict) else None


def last_report(store: Store) -> BuildReport:
    """Give the report of the last build, append or compact.

    Raises
    ------
    InputError
        The index holds none: a version wrote it that made no reports.
    """
    for folder in reversed(store.manifest.catalogs):
        if folder.file(REPORT_FILE) is not None:
            return BuildReport.from_dict(store.catalog_document(folder, REPORT_FILE))
    raise InputError(f"The index '{store.path}' holds no report of how it was built. Build it again to have one.")


def count_reasons(reasons: pa.ChunkedArray) -> dict[str, int]:
    """Count reasons that differ in numbers and quoted names only as one, most frequent first.

    Examples
    --------
    >>> count_reasons(pa.chunked_array([["1 row, 5 needed", None, "3 rows, 5 needed", "1 row, 5 needed"]]))
    {'1 row, 5 needed': 2, '3 rows, 5 needed': 1}
    """
    counts = pc.value_counts(pc.drop_null(reasons))
    examples: dict[str, str] = {}
    totals: Counter[str] = Counter()
    for reason, count in sorted((item["values"], item["counts"]) for item in counts.to_pylist()):
        kind = _NUMBERS.sub("#", reason)
        examples.setdefault(kind, reason)
        totals[kind] += count
    return {examples[kind]: total for kind, total in sorted(totals.items(), key=lambda item: (-item[1], item[0]))}
