"""The search for contained tables as R2D2 was published: bounds of footers, then sampled rows."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from pexeso.errors import InputError, LakeError, PexesoError
from pexeso.lake.files import TableFile, table_row
from pexeso.redundancy.column_stats import ColumnStats
from pexeso.redundancy.pieces import ColumnFacts, StoredPiece
from pexeso.redundancy.plans.in_tasks import done_in_tasks
from pexeso.redundancy.plans.pipeline import Candidates, Clock, LeftOut, Stage, candidates_of
from pexeso.redundancy.plans.reading import (
    DEFAULT_MAX_TABLE_BYTES,
    LakeRows,
    ReadFile,
    files_and_logs,
    rows_of_file,
)
from pexeso.redundancy.plans.sampled.footers import facts_of_parquet, facts_of_rows
from pexeso.redundancy.plans.sampled.samples import drawn_columns, hash_samples, look_up, seed_of
from pexeso.redundancy.schema_tokens import Token
from pexeso.redundancy.tables import TableOfPieces, name_of, ordered_tokens, place_of_cells
from pexeso.runtime.formatting import first_line
from pexeso.store.io.location import locate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PROFILE = pa.schema(
    [
        ("file", pa.string()),
        ("n_bytes", pa.int64()),
        ("reason", pa.string()),
        ("n_rows", pa.int64()),
        ("facts", pa.string()),
    ]
)
Listed = Mapping[str, Mapping[str, object]]
"""Rows of a listing by the path of the file."""

_SAMPLES = pa.schema([("table", pa.int64()), ("hashes", pa.binary())])
_PAIRS = pa.schema([("parent", pa.int64()), ("child", pa.int64())])


@dataclass(frozen=True)
class SampleOptions:
    """How rows are drawn and looked up.

    Attributes
    ----------
    n_rows : int
        Of each table, 1 or more (the paper's t).
    n_columns : int
        Columns that rows are drawn by, 1 or more (the paper's s).
    compared : {"all", "drawn"}
        On which columns rows are looked up: all of the child's, or the drawn ones.
    sampler : {"uniform", "predicate"}
        ``uniform``: each row as likely as another, of Parquet from its row groups. ``predicate``:
        rows equal to a drawn one on the drawn columns, as the paper filters them.
    scan_missing : bool
        Read columns of numbers and times whose footers have no bounds.
    row_count_gate, case_sensitive : bool
        See `pexeso.redundancy.plans.pipeline.ContainmentOptions`.
    seed : int
    """

    n_rows: int = 10
    n_columns: int = 4
    compared: Literal["all", "drawn"] = "all"
    sampler: Literal["uniform", "predicate"] = "uniform"
    scan_missing: bool = True
    row_count_gate: bool = True
    case_sensitive: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("n_rows", "n_columns"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is at least 1. Got {getattr(self, name)!r}.")
        for name, allowed in (
            ("compared", ("all", "drawn")),
            ("sampler", ("uniform", "predicate")),
        ):
            if getattr(self, name) not in allowed:
                raise InputError(
                    f"{name} must be one of {', '.join(allowed)}. Got {getattr(self, name)!r}."
                )


@dataclass(frozen=True)
class SampledContainments:
    """Pairs of tables that sampled rows do not refute: some of them are wrong."""

    pairs: tuple[tuple[str, str], ...]
    stages: tuple[Stage, ...]
    left_out: tuple[LeftOut, ...]


def find_by_samples(
    spark: SparkSession | None,
    lake: str | os.PathLike[str],
    options: SampleOptions | None = None,
    *,
    max_table_bytes: int = DEFAULT_MAX_TABLE_BYTES,
    synonyms: Mapping[Token, Token] | None = None,
) -> SampledContainments:
    """Find the pairs of tables of a folder that bounds and sampled rows do not refute.

    No contained table is missed; that a table passes does not show that it is contained. See
    `pexeso.find_redundancy` for what compares all rows.

    Notes
    -----
    R2D2 (Shah et al., SIGMOD 2024), sections 4 to 6: SGB, MMP, CLP. Every parent is read once, not
    once for each pair. The driver holds what is known of each column, and the drawn rows as hashes
    of 16 bytes; a task holds a batch of rows, or a file of text.
    """
    options = options or SampleOptions()
    location = locate(lake)
    if not isinstance(location, Path):
        raise InputError(f"Rows are sampled from folders that tasks can open. Got '{lake}'.")
    clock = Clock()
    started = time.perf_counter()
    read, listed = _profiles(spark, location.absolute(), options.scan_missing, max_table_bytes)
    clock.stages.append(Stage("read", 0, time.perf_counter() - started))
    candidates = candidates_of(
        read,
        clock,
        case_sensitive=options.case_sensitive,
        row_count_gate=options.row_count_gate,
        synonyms=synonyms,
    )
    clock.begin("sampled")
    pairs = _unrefuted(spark, candidates, listed, options, max_table_bytes)
    clock.end("sampled", len(pairs))
    names = [table.name for table in candidates.tables]
    named = tuple(sorted((names[parent], names[child]) for parent, child in pairs))
    return SampledContainments(named, tuple(clock.stages), candidates.left_out)


def _profiles(
    spark: SparkSession | None, root: Path, scan: bool, max_table_bytes: int
) -> tuple[LakeRows, Listed]:
    """Return what is known of all files, as pieces without cells, and their rows of a listing."""
    files, logged, left_out = files_and_logs(root)
    if not files and not left_out:
        raise LakeError(f"'{root}' has no table: give a folder with CSV, Parquet or JSON lines.")
    units = [json.dumps(table_row(file)) for file in files]
    work = partial(_profile, scan=scan, max_table_bytes=max_table_bytes)
    rows = sorted(done_in_tasks(spark, units, work, _PROFILE), key=lambda row: row["file"])
    paths = {file.table: file.path for file in files}
    listed = [ReadFile(row["file"], row["n_bytes"], None, row["reason"], ()) for row in rows]
    listed += [ReadFile(table, 0, None, reason, ()) for table, reason in left_out]
    pieces = {
        row["file"]: [
            StoredPiece(paths[row["file"]], 0, row["file"], 0, row["n_rows"], _facts(row["facts"]))
        ]
        for row in rows
        if row["reason"] is None
    }
    return LakeRows(root, str(root), listed, pieces, logged), {
        str(file.path): table_row(file) for file in files
    }


def _facts(text: str) -> tuple[ColumnFacts, ...]:
    return tuple(
        ColumnFacts(tuple(token), family, ColumnStats.from_json(stats), 0, 0)
        for token, family, stats in json.loads(text)
    )


def _profile(unit: str, *, scan: bool, max_table_bytes: int) -> list[dict[str, Any]]:
    listed = json.loads(unit)
    file = TableFile(**{**listed, "path": Path(listed["path"])})
    row = {"file": file.table, "n_bytes": file.n_bytes, "reason": None}
    try:
        if file.format == "parquet":
            n_rows, facts = facts_of_parquet(file.table, str(file.path), scan=scan)
        else:
            n_rows, facts = facts_of_rows(rows_of_file(file, max_table_bytes)[2])
    except (PexesoError, pa.ArrowException, ValueError, OSError) as error:
        return [{**row, "reason": f"{file.table} cannot be read: {first_line(error)}"}]
    facts_text = json.dumps(
        [[column.token, column.family, column.stats.to_json()] for column in facts]
    )
    return [{**row, "n_rows": n_rows, "facts": facts_text}]


def _unrefuted(
    spark: SparkSession | None,
    candidates: Candidates,
    listed: Listed,
    options: SampleOptions,
    max_table_bytes: int,
) -> list[tuple[int, int]]:
    """Draw rows of every child, look them up in its parents, and return the pairs that are left."""
    tables = candidates.tables
    children = sorted(set(candidates.children.tolist()))
    drawn = {
        child: drawn_columns(
            len(tables[child].columns), options.n_columns, _seed_of(tables[child], options)
        )
        for child in children
    }
    units = (
        _unit_of_child(child, tables[child], drawn[child], listed, options) for child in children
    )
    hashed = done_in_tasks(
        spark, units, partial(hash_samples, max_table_bytes=max_table_bytes), _SAMPLES
    )
    samples = {row["table"]: row["hashes"].hex() for row in hashed}
    units = _units_of_parents(candidates, drawn, samples, listed, options)
    rows = done_in_tasks(spark, units, partial(look_up, max_table_bytes=max_table_bytes), _PAIRS)
    return sorted((row["parent"], row["child"]) for row in rows)


def _seed_of(table: TableOfPieces, options: SampleOptions) -> str:
    return seed_of(options.seed, table.name, f"{table.n_rows} {table.n_bytes}")


def _places(
    table: TableOfPieces, tokens: Sequence[Token], listed: Listed
) -> list[dict[str, object]]:
    return [
        {**location, "file": listed[str(piece.path)], "n_rows": piece.n_rows}
        for location, piece in zip(place_of_cells(table, tokens), table.pieces, strict=True)
    ]


def _unit_of_child(
    number: int,
    table: TableOfPieces,
    search: list[int],
    listed: Listed,
    options: SampleOptions,
) -> str:
    tokens = ordered_tokens(table)
    return json.dumps(
        {
            "table": number,
            "places": _places(table, tokens, listed),
            "tokens": [name_of(token) for token in tokens],
            "search": search,
            "on_search": options.compared == "drawn",
            "n": options.n_rows,
            "sampler": options.sampler,
            "seed": _seed_of(table, options),
        }
    )


def _units_of_parents(
    candidates: Candidates,
    drawn: Mapping[int, list[int]],
    samples: Mapping[int, str],
    listed: Listed,
    options: SampleOptions,
) -> Iterator[str]:
    """Yield a unit for each parent, with its children by the columns that are compared."""
    tables = candidates.tables
    tokens_of = {child: ordered_tokens(tables[child]) for child in drawn}
    by_parent: dict[int, list[int]] = {}
    for parent, child in zip(
        candidates.parents.tolist(), candidates.children.tolist(), strict=True
    ):
        by_parent.setdefault(parent, []).append(child)
    for parent, children in by_parent.items():
        sets: dict[tuple[Token, ...], list[int]] = {}
        for child in children:
            tokens = tokens_of[child]
            if options.compared == "drawn":
                tokens = [tokens[position] for position in drawn[child]]
            sets.setdefault(tuple(tokens), []).append(child)
        yield json.dumps(
            {
                "table": parent,
                "places": _places(tables[parent], (), listed),
                "sets": [
                    {
                        "tokens": [name_of(token) for token in tokens],
                        "places": place_of_cells(tables[parent], tokens),
                        "samples": [[child, samples[child]] for child in some],
                    }
                    for tokens, some in sets.items()
                ],
            }
        )
