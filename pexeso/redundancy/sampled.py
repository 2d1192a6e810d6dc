"""Contained tables as R2D2 was published: bounds of footers, then sampled rows (MMP, CLP).

Equal rows have equal hashes, so a row that is not found is not there: no contained table is lost.
That a table passes does not show that it is contained: `ExactCheck` compares all rows of the pairs
that a plan would rest on.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pexeso.errors import InputError, PexesoError
from pexeso.lake.files import TableFile, table_row
from pexeso.lake.typed.parquet import JSON, TypedRows, open_parquet, parquet_rows
from pexeso.redundancy.candidates import Bound, ColumnStats, merged, scan_stats, whole_or_fraction
from pexeso.redundancy.containments import (
    Candidates,
    Clock,
    ContainmentOptions,
    Containments,
    Edge,
    candidates_of,
    count_contained,
    tables_of,
    work_units,
)
from pexeso.redundancy.lake_reading import (
    DEFAULT_MAX_TABLE_BYTES,
    LakeListing,
    LakeRows,
    ReadFile,
    read_files,
    rows_of_file,
    work_in_tasks,
)
from pexeso.redundancy.pieces import (
    ColumnFacts,
    StoredPiece,
    TableOfPieces,
    cell_places,
    constant_column,
    name_of,
    ordered_tokens,
)
from pexeso.redundancy.row_hashes import HALVES, hashed_column, row_hashes
from pexeso.redundancy.schema_tokens import Token, family, is_list, leaf_types, leaves
from pexeso.runtime.formatting import first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# R2D2 (section 5, MMP) takes bounds from the footers of Parquet, once a file. What a footer says
# can be less than it seems: bounds of texts may be cut, INT96 and long texts have none, and one
# of a column of floats is not to be relied on where NaN may be.

_NANOSECONDS = {"milliseconds": 1_000_000, "microseconds": 1000, "nanoseconds": 1}

# Families whose values are looked at where footers say nothing of their bounds.
_SCANNED = ("int", "decimal", "date", "timestamp", "timestamp_ntz")


def facts_of_parquet(shown: str, path: str) -> tuple[int, list[ColumnFacts]]:
    """Return the number of rows of a Parquet file, and what is known of its columns."""
    file = open_parquet(path)
    kinds = dict(leaf_types(file.schema_arrow))
    stats = footer_stats(file)
    blind = {
        token[0]
        for token, kind in kinds.items()
        if len(token) == 1 and family(kind) in _SCANNED and _is_blind(stats[token])
    }
    if blind:
        parts: dict[Token, list[ColumnStats]] = {}
        for batch in parquet_rows(shown, path):
            for name, values in zip(batch.names, batch.columns, strict=True):
                if name in blind:
                    parts.setdefault((name,), []).append(scan_stats(values))
        stats |= {token: merged(some) for token, some in parts.items()}
    facts = [
        ColumnFacts(token, family(kind), stats.get(token, ColumnStats()))
        for token, kind in kinds.items()
    ]
    return file.metadata.num_rows, facts


def facts_of_rows(batches: Iterable[TypedRows]) -> tuple[int, list[ColumnFacts]]:
    n_rows = 0
    kinds: dict[Token, str] = {}
    parts: dict[Token, list[ColumnStats]] = {}
    for batch in batches:
        for token, values in leaves(batch.names, batch.columns):
            some = parts.setdefault(token, [])
            if not some and n_rows:  # rows before the first that has this column
                some.append(scan_stats(pa.nulls(n_rows)))
            some.append(scan_stats(values))
            kinds[token] = JSON if batch.is_json else family(values.type)
        n_rows += batch.n_rows
    return n_rows, [ColumnFacts(token, kinds[token], merged(some)) for token, some in parts.items()]


def _is_blind(stats: ColumnStats) -> bool:
    exact = stats.min_witness and stats.max_witness and stats.min_cover and stats.max_cover
    return not exact and not stats.all_null


def footer_stats(file: pq.ParquetFile) -> dict[Token, ColumnStats]:
    """Return what the footer of a file says of the columns outside of lists and maps."""
    metadata, first = file.metadata, 0
    stats: dict[Token, ColumnStats] = {}
    for field in file.schema_arrow:
        for token, kind, number in _flat_leaves((field.name,), field.type, first):
            leaf = metadata.schema.column(number)
            chunks = (
                metadata.row_group(group).column(number) for group in range(metadata.num_row_groups)
            )
            parts = [_chunk_stats(chunk, leaf, kind) for chunk in chunks]
            stats[token] = merged(parts) if parts else scan_stats(pa.nulls(0))
        first += _n_leaves(field.type)
    return stats


def _flat_leaves(
    path: Token, kind: pa.DataType, first: int
) -> Iterator[tuple[Token, pa.DataType, int]]:
    """Yield the tokens outside of lists and maps, with which column of Parquet each is."""
    if pa.types.is_struct(kind) and kind.num_fields:
        for field in kind:
            yield from _flat_leaves((*path, field.name), field.type, first)
            first += _n_leaves(field.type)
    elif not is_list(kind) and not pa.types.is_map(kind):
        yield path, kind, first


def _n_leaves(kind: pa.DataType) -> int:
    if isinstance(kind, pa.BaseExtensionType):
        return _n_leaves(kind.storage_type)
    if pa.types.is_map(kind):
        return _n_leaves(kind.key_type) + _n_leaves(kind.item_type)
    if is_list(kind):
        return _n_leaves(kind.value_type)
    if pa.types.is_struct(kind):
        return sum(_n_leaves(field.type) for field in kind)
    return 1


def _chunk_stats(chunk: Any, leaf: Any, kind: pa.DataType) -> ColumnStats:
    statistics = chunk.statistics
    if statistics is None:
        return ColumnStats()
    nulls = statistics.null_count if statistics.has_null_count else None
    if nulls is not None and nulls == chunk.num_values:
        return ColumnStats(null_count=nulls, all_null=True, nan=False)
    of_floats = pa.types.is_floating(kind)
    low = high = None
    if statistics.has_min_max:
        low, high = (_bound(raw, leaf, kind) for raw in (statistics.min_raw, statistics.max_raw))
    # The bounds of texts may be cut: nothing says that they are values.
    witness = not isinstance(low, bytes)
    return ColumnStats(
        low,
        high,
        min_witness=witness and low is not None,
        max_witness=witness and high is not None,
        min_cover=low is not None,
        max_cover=high is not None,
        null_count=nulls,
        has_value=low is not None or high is not None or (nulls is not None and not of_floats),
        nan=None if of_floats else False,
    )


def _bound(raw: Any, leaf: Any, kind: pa.DataType) -> Bound | None:
    """Return a bound of a footer in the form of `pexeso.redundancy.candidates.scan_stats`."""
    types, physical = pa.types, leaf.physical_type
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_decimal(kind):
        unscaled = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else int(raw)
        return whole_or_fraction(Fraction(unscaled, 10**leaf.scale))
    if types.is_unsigned_integer(kind):
        return int(raw) % (1 << kind.bit_width)
    if types.is_integer(kind) or types.is_boolean(kind) or types.is_date32(kind):
        return int(raw)
    if types.is_timestamp(kind) or types.is_time(kind):
        unit = json.loads(leaf.logical_type.to_json()).get("timeUnit")
        factor = _NANOSECONDS.get(unit)
        return None if factor is None or physical == "INT96" else int(raw) * factor
    if types.is_float32(kind) or types.is_float64(kind):
        return None if raw != raw else float(raw)  # NaN differs from itself
    if physical == "BYTE_ARRAY" or types.is_fixed_size_binary(kind):
        return raw if isinstance(raw, bytes) else None
    return None


SAMPLE_ROWS = 10  # of each table: t of the paper, whose s columns play no part where all compare

_PROFILE = pa.schema(
    [
        ("file", pa.string()),
        ("fingerprint", pa.string()),
        ("reason", pa.string()),
        ("notes", pa.list_(pa.string())),
        ("n_rows", pa.int64()),
        ("facts", pa.string()),
    ]
)
_SAMPLES = pa.schema([("table", pa.int64()), ("hashes", pa.binary())])
_PAIRS = pa.schema([("parent", pa.int64()), ("child", pa.int64())])
_ROW_BYTES = HALVES * 8

Place = Mapping[str, Any]
# A file of a table: that of `pexeso.redundancy.pieces.cell_places`, with its ``n_rows`` and
# ``file``, its row of a listing (`table_row`).


def sampled_containments(
    spark: SparkSession | None,
    listing: LakeListing,
    options: ContainmentOptions,
    *,
    sample_rows: int = SAMPLE_ROWS,
    seed: int = 0,
    synonyms: Mapping[Token, Token] | None = None,
    max_table_bytes: int = DEFAULT_MAX_TABLE_BYTES,
    progress: Callable[[str], None] | None = None,
) -> Containments:
    """Find the pairs of tables of a folder that bounds and sampled rows do not refute.

    R2D2 (Shah et al., SIGMOD 2024), sections 4 to 6: SGB, MMP, CLP. Every parent is read once, not
    once for each pair. The driver holds what is known of each column, and the drawn rows as hashes
    of 16 bytes; a task holds a batch of rows, or a file of text.
    """
    started = time.perf_counter()
    read = _profiles(spark, listing, max_table_bytes)
    clock = Clock(progress, time.perf_counter() - started)
    candidates = candidates_of(read, clock, options, synonyms)
    tables = candidates.tables
    clock.begin("sampled")
    listed = {str(file.path): table_row(file) for file in listing.files}
    units = (
        {
            "table": child,
            "places": _places(tables[child], ordered_tokens(tables[child]), listed),
            "tokens": list(map(name_of, ordered_tokens(tables[child]))),
            "n": sample_rows,
            "seed": seed_of(seed, tables[child]),
        }
        for child in sorted(set(candidates.children.tolist()))
    )
    hashed = work_in_tasks(
        spark, units, partial(hash_sample, max_table_bytes=max_table_bytes), _SAMPLES
    )
    samples = {row["table"]: row["hashes"].hex() for row in hashed}
    rows = work_in_tasks(
        spark,
        _units_of_parents(candidates, samples, listed),
        partial(look_up, max_table_bytes=max_table_bytes),
        _PAIRS,
    )
    edges = [
        Edge(tables[parent].name, tables[child].name, 1.0, tables[child].n_rows, exact=False)
        for parent, child in sorted((row["parent"], row["child"]) for row in rows)
    ]
    clock.end("sampled", len(edges))
    return candidates.graph(read.name, edges, clock)


def _profiles(spark: SparkSession | None, listing: LakeListing, max_table_bytes: int) -> LakeRows:
    if not isinstance(listing.root, Path):
        raise InputError(
            f"Rows are sampled from folders that tasks can open. Got '{listing.root}'."
        )
    by_name = {file.table: file for file in listing.files}
    work = partial(_profile, max_table_bytes=max_table_bytes)
    rows = work_in_tasks(spark, map(table_row, listing.files), work, _PROFILE)
    files, pieces = list(listing.unread()), {}
    for row in sorted(rows, key=lambda row: row["file"]):
        file = by_name[row["file"]]
        notes = listing.notes_of(file.table, row["notes"])
        read = ReadFile(file.table, file.n_bytes, row["fingerprint"], row["reason"], notes)
        files.append(read)
        if read.reason is None:
            facts = tuple(map(ColumnFacts.from_json, json.loads(row["facts"])))
            pieces[file.table] = [StoredPiece(file.path, 0, file.table, 0, row["n_rows"], facts)]
    return LakeRows(listing.root, str(listing.root), files, pieces, listing.logged)


def _profile(listed: dict[str, Any], *, max_table_bytes: int) -> list[dict[str, Any]]:
    file = TableFile(**{**listed, "path": Path(listed["path"])})
    fingerprint, notes = None, []
    try:
        if file.format == "parquet":
            n_rows, facts = facts_of_parquet(file.table, str(file.path))
        else:
            fingerprint, notes, batches = rows_of_file(file, max_table_bytes)
            n_rows, facts = facts_of_rows(batches)
    except (PexesoError, pa.ArrowException, ValueError, OSError) as error:
        reason = f"{file.table} cannot be read: {first_line(error)}"
        return [{"file": file.table, "reason": reason}]
    row = {"file": file.table, "fingerprint": fingerprint, "notes": notes, "n_rows": n_rows}
    return [{**row, "facts": json.dumps([fact.to_json() for fact in facts])}]


def _places(
    table: TableOfPieces, tokens: Sequence[Token], listed: Mapping[str, Any]
) -> list[dict[str, Any]]:
    return [
        {**place, "file": listed[place["path"]], "n_rows": piece.n_rows}
        for place, piece in zip(cell_places(table, tokens), table.pieces, strict=True)
    ]


def _units_of_parents(
    candidates: Candidates, samples: Mapping[int, str], listed: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield a unit for each parent, with its children by the columns that are compared."""
    tables = candidates.tables
    by_parent: dict[int, dict[tuple[Token, ...], list[int]]] = {}
    for parent, child in candidates.pairs():
        sets = by_parent.setdefault(parent, {})
        sets.setdefault(tuple(ordered_tokens(tables[child])), []).append(child)
    for parent, sets in by_parent.items():
        yield {
            "table": parent,
            "places": _places(tables[parent], (), listed),
            "sets": [
                {
                    "tokens": list(map(name_of, tokens)),
                    "places": cell_places(tables[parent], tokens),
                    "samples": [[child, samples[child]] for child in children],
                }
                for tokens, children in sets.items()
            ],
        }


def seed_of(seed: int, table: TableOfPieces) -> str:
    """Return the seed of the draws from a table, in one form on every machine."""
    version = [seed, table.name, f"{table.n_rows} {table.n_bytes}"]
    return hashlib.sha256(json.dumps(version).encode()).hexdigest()


def drawn_rows(n_rows: int, n: int, seed: str) -> list[int]:
    """Return the numbers of `n` rows of a table, all where it has no more: ascending, distinct."""
    return sorted(Random(seed).sample(range(n_rows), min(n, n_rows)))


def hash_sample(unit: dict[str, Any], *, max_table_bytes: int) -> list[dict[str, Any]]:
    """Draw rows of a table, and return their hashes on its columns; of Parquet by row groups."""
    n_rows = sum(place["n_rows"] for place in unit["places"])
    numbers = np.array(drawn_rows(n_rows, unit["n"], unit["seed"]), np.int64)
    hashes, first = [np.empty((0, HALVES), np.uint64)], 0
    for place in unit["places"]:
        rows = numbers[(numbers >= first) & (numbers < first + place["n_rows"])] - first
        first += place["n_rows"]
        for begin, batch in _batches_with(place, rows, max_table_bytes) if len(rows) else ():
            own = rows[(rows >= begin) & (rows < begin + batch.n_rows)] - begin
            if len(own):
                columns = [column.take(pa.array(own)) for column in batch.columns]
                some = TypedRows(batch.names, columns, batch.is_json)
                hashes.append(_batch_hashes(some, place, unit["tokens"]))
    drawn = np.ascontiguousarray(np.concatenate(hashes), "<u8").tobytes()
    return [{"table": unit["table"], "hashes": drawn}]


def _batches_with(
    place: Place, rows: np.ndarray, max_table_bytes: int
) -> Iterator[tuple[int, TypedRows]]:
    """Yield batches that hold some rows of a file, each with the number of its first one."""
    begin = 0
    if place["file"]["format"] != "parquet":
        for batch in _batches(place, max_table_bytes):
            yield begin, batch
            begin += batch.n_rows
        return
    file = open_parquet(place["path"])
    for group in range(file.metadata.num_row_groups):
        n_rows = file.metadata.row_group(group).num_rows
        if ((rows >= begin) & (rows < begin + n_rows)).any():
            at = begin
            for batch in file.iter_batches(row_groups=[group], use_threads=False):
                yield at, TypedRows(file.schema_arrow.names, batch.columns)
                at += len(batch)
        begin += n_rows


def _batches(place: Place, max_table_bytes: int) -> Iterator[TypedRows]:
    if place["file"]["format"] == "parquet":  # without a fingerprint, for which all is read
        return parquet_rows(place["file"]["table"], place["path"])
    file = TableFile(**{**place["file"], "path": Path(place["path"])})
    return rows_of_file(file, max_table_bytes)[2]


def _batch_hashes(batch: TypedRows, place: Place, tokens: Sequence[str]) -> np.ndarray:
    batch_leaves = leaves(batch.names, batch.columns)
    columns = []
    for number, constant in zip(place["columns"], place["constants"], strict=True):
        if constant is not None:
            columns.append(constant_column(constant, batch.n_rows))
        elif number is None or number >= len(batch_leaves):  # later rows have this column
            columns.append(None)
        else:
            columns.append(hashed_column(batch_leaves[number][1], is_json=batch.is_json))
    return row_hashes(batch.n_rows, columns, tokens)


def look_up(unit: dict[str, Any], *, max_table_bytes: int) -> list[dict[str, Any]]:
    """Look up drawn rows of children in their parent; return the pairs of which all were found."""
    sets = [_SampleSet(sample_set) for sample_set in unit["sets"]]
    children = [child for sample_set in sets for child in sample_set.take_complete()]
    for number, place in enumerate(unit["places"]):
        for batch in _batches(place, max_table_bytes):
            sets = [sample_set for sample_set in sets if sample_set.missing]
            if not sets:
                break
            for sample_set in sets if batch.n_rows else ():
                places = {**place, **sample_set.places[number]}
                children += sample_set.seen(_batch_hashes(batch, places, sample_set.tokens))
    return [{"parent": unit["table"], "child": child} for child in children]


class _SampleSet:
    """Drawn rows of several children that are compared on the same columns, those not yet seen."""

    def __init__(self, sample_set: Mapping[str, Any]) -> None:
        self.tokens, self.places = sample_set["tokens"], sample_set["places"]
        self.missing: dict[int, set[bytes]] = {}
        for child, text in sample_set["samples"]:
            data = bytes.fromhex(text)
            rows = (data[at : at + _ROW_BYTES] for at in range(0, len(data), _ROW_BYTES))
            self.missing[child] = set(rows)
        self._first = self._first_halves()

    def take_complete(self) -> list[int]:
        """Return the children of which no row is missing, which are done with."""
        complete = [child for child, missing in self.missing.items() if not missing]
        for child in complete:
            del self.missing[child]
        return complete

    def _first_halves(self) -> np.ndarray:
        rows = b"".join(set().union(*self.missing.values()))
        return np.unique(np.frombuffer(rows, "<u8").reshape(-1, HALVES)[:, 0])

    def seen(self, hashes: np.ndarray) -> list[int]:
        """Take rows of the parent, and return the children of which every row has been found."""
        likely = hashes[np.isin(hashes[:, 0], self._first)]
        rows = {row.tobytes() for row in np.unique(likely, axis=0).astype("<u8")}
        for missing in self.missing.values() if rows else ():
            missing -= rows
        complete = self.take_complete()
        if rows:
            self._first = self._first_halves()
        return complete


class ExactCheck:
    """Compares all rows of pairs that samples left: what a plan rests on.

    `tables` and `files` are those of the graph; the ones that were read whole have their cells, and
    the fingerprints of what was read.
    """

    def __init__(
        self,
        spark: SparkSession | None,
        graph: Containments,
        listing: LakeListing,
        folder: Path,
        options: ContainmentOptions,
        *,
        synonyms: Mapping[Token, Token] | None = None,
        max_table_bytes: int = DEFAULT_MAX_TABLE_BYTES,
    ) -> None:
        self.tables, self.files = list(graph.tables), dict(graph.files)
        self._spark, self._listing, self._folder = spark, listing, folder
        self._options, self._synonyms, self._max_bytes = options, synonyms, max_table_bytes
        self._is_contained: dict[tuple[int, int], bool] = {}
        self._read: dict[int, bool] = {}  # whether a table was read as it had been sampled

    def contained(self, pairs: Collection[tuple[int, int]]) -> set[tuple[int, int]]:
        """Return the pairs, numbers of parent and child, of which all rows are contained."""
        new = sorted(set(pairs) - self._is_contained.keys())
        self._read_whole({number for pair in new for number in pair} - self._read.keys())
        comparable = [pair for pair in new if self._read[pair[0]] and self._read[pair[1]]]
        units = work_units(self.tables, comparable)
        counted = count_contained(units, spark=self._spark, semantics=self._options.semantics)
        contained = {(parent, child) for parent, child, _ in counted}
        self._is_contained |= {pair: pair in contained for pair in new}
        return {pair for pair in pairs if self._is_contained[pair]}

    def checked(self, edges: Sequence[Edge]) -> tuple[Edge, ...]:
        """Return edges without those that are refuted, and the compared ones as exact."""
        outcome = {
            (self.tables[parent].name, self.tables[child].name): is_contained
            for (parent, child), is_contained in self._is_contained.items()
        }
        return tuple(
            replace(edge, exact=(edge.parent, edge.child) in outcome)
            for edge in edges
            if outcome.get((edge.parent, edge.child), True)
        )

    def _read_whole(self, numbers: set[int]) -> None:
        names = {self.tables[number].name: number for number in sorted(numbers)}
        parts = {name: [file.file for file in self.files[name]] for name in names}
        needed = {file for files in parts.values() for file in files}
        files = [file for file in self._listing.files if file.table in needed]
        read = read_files(self._spark, self._listing, files, self._folder, self._max_bytes)
        whole = replace(read, logged=parts)  # which files are which table
        tables, files_of, _ = tables_of(whole, self._options.case_sensitive, self._synonyms)
        self._read |= dict.fromkeys(numbers, False)
        for table in tables:
            number = names[table.name]
            notes = [[file.notes for file in some[table.name]] for some in (self.files, files_of)]
            before = {column.token for column in self.tables[number].columns}
            # What has changed since it was sampled is compared by the next search.
            if notes[0] == notes[1] and before == {column.token for column in table.columns}:
                self.tables[number], self._read[number] = table, True
                self.files[table.name] = files_of[table.name]
