"""Fuzz targets: functions from bytes to nothing that may raise only errors of pexeso.

A target is given the bytes of a bad input and a folder to write to. It ends quietly, or with an
error of `pexeso.errors`; whatever else it raises is a finding. Where the input was accepted, what
came out of it must keep the promises that are cheap to check.
"""

import contextlib
import functools
import gzip
import hashlib
import io
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click.testing
import numpy as np
import pyarrow as pa
from fuzz_documents import try_holding, try_plan, try_program, try_request, try_statement

from embed.stored import StoredModel
from pexeso.errors import PexesoError, SparkError
from pexeso.faces.cli.main import cli
from pexeso.lake.choose import ColumnRules, profile_columns
from pexeso.lake.columns import label_columns
from pexeso.lake.containers.reader import read_table
from pexeso.lake.files import TableFile, find_tables
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.records import lake_records
from pexeso.results.query import (
    batch_lines,
    query_from_values,
    read_batch_line,
    read_every_query,
    read_query,
)
from pexeso.store.arrays import open_array, open_texts, require_sound, take_texts
from pexeso.store.files import read_document
from pexeso.store.manifest import Manifest

MAX_BYTES = 1 << 22
"""Most that a table may unpack to here: what a small file may cost is then small too."""

MAX_TABLES = 3
"""Tables of one file that are read."""

INDEX = "lake.pexeso"
"""A whole index in the folders of `WITH_INDEX`, where there is one."""

WITH_INDEX = ("command", "app", "agent", "request")
"""Targets that are tried on an index, each time in a folder of its own."""

COLUMNAR = (".arrow", ".arrows", ".feather", ".orc", ".json")
PACKED = (".csv.bz2", ".csv.xz", ".jsonl.zst", ".tsv.gz")
BOOKS = (".xlsx", ".ods", ".xls", ".xlsb")
BASES = (".sqlite", ".duckdb")
TABLE = "city;people\nOslo;717710\nRome;2746984\nMünchen;1512491\n"
_RULES = ColumnRules(min_rows=1, min_distinct=1)
_NORMALISER = Normaliser()
_MOST_ARGUMENTS = 12
_MODEL = functools.partial(StoredModel, kind="hashing", options={}, fingerprint="")
_NO_SPARK = "Nothing is built here."


@dataclass(frozen=True)
class Target:
    """One way for bad input to come in.

    Attributes
    ----------
    name : str
    run : callable
        Takes the input and a folder; raises for a finding alone, or an error of ours.
    share : int
        Its part of all inputs, in thousandths.
    """

    name: str
    run: Callable[[bytes, Path], None]
    share: int


def _table(extension: str) -> Callable[[bytes, Path], None]:
    def run(data: bytes, folder: Path) -> None:
        _try_table(data, folder / f"table{extension}")

    return run


def _try_table(data: bytes, path: Path) -> None:
    path.write_bytes(data)
    listed, skipped = find_tables(path)
    for file in listed[:MAX_TABLES]:
        _try_records(file)
    for skipped_file in skipped:
        _require_sentence(skipped_file.reason)
    # A file without a table is refused here.
    for member in [file.member or "" for file in listed[:MAX_TABLES]] or [""]:
        table = read_table(f"{path}{member}", max_bytes=MAX_BYTES)
        require(len(table.names) == len(table.columns), "as many names as columns")
        same = all(len(column) == table.n_rows for column in table.columns)
        require(same, "columns of one length")
        for column in table.columns:
            column.validate(full=True)
        profile_columns(table.columns)
        require(len(set(label_columns(table.names))) == len(table.names), "labels that differ")
        for query in read_every_query(f"{path}{member}"):
            query.values.validate(full=True)


def _try_records(file: TableFile) -> None:
    """Read a table as a build does: it goes on whatever a file holds, so nothing may be raised."""
    for batch in lake_records([file], _RULES, _NORMALISER, max_bytes=MAX_BYTES):
        batch.validate(full=True)
        for reason in batch.column("reason").drop_null().to_pylist():
            _require_sentence(reason)


def _require_sentence(reason: str) -> None:
    require("Error:" not in reason, f"a library's error became a reason: {reason}")


def _of_formats(*extensions: str) -> Callable[[bytes, Path], None]:
    """Return what reads the bytes as a file of the format that the first byte chooses."""

    def run(data: bytes, folder: Path) -> None:
        extension = extensions[data[0] % len(extensions)] if data else extensions[0]
        _try_table(data[1:], folder / f"table{extension}")

    return run


def _gzipped(data: bytes, folder: Path) -> None:
    """Half of the inputs are what is unpacked, the others the packed bytes themselves."""
    packed = gzip.compress(data[1:], 1, mtime=0) if data[:1] < b"\x80" else b"\x1f\x8b" + data[1:]
    _try_table(packed, folder / "table.csv.gz")


def _normaliser(data: bytes, folder: Path) -> None:
    texts = data.decode("utf-8", "replace").split("\n")
    columns = [pa.array(texts[0::2], pa.string()), pa.array([*texts[1::2], None], pa.string())]
    for before, after in zip(columns, _NORMALISER.normalise_columns(columns), strict=True):
        after.validate(full=True)
        require(len(before) == len(after), "a value for a value")
    profile_columns(columns)
    with contextlib.suppress(PexesoError):
        Normaliser.from_json(texts[0])


def _query(data: bytes, folder: Path) -> None:
    """Take the first line as FILE:COLUMN, in this folder, and all of it as values in JSON."""
    (folder / "t.csv").write_text(TABLE, encoding="utf-8")
    text = data.decode("utf-8", "surrogateescape").replace("/", "_").replace("..", "__")
    with contextlib.chdir(folder), contextlib.suppress(PexesoError):
        read_query(text.partition("\n")[0]).values.validate(full=True)
    with contextlib.chdir(folder), contextlib.suppress(PexesoError):
        read_query("t.csv", text).values.validate(full=True)
    with contextlib.suppress(ValueError, RecursionError):
        values = json.loads(text)
        query_from_values(values).values.validate(full=True)


def _batch(data: bytes, folder: Path) -> None:
    (folder / "t.csv").write_text(TABLE, encoding="utf-8")
    path = folder / "queries.jsonl"
    path.write_bytes(data)
    with contextlib.chdir(folder):
        for number, text in batch_lines(path):
            line = read_batch_line(number, text)
            require(
                (line.query is None) == (line.error is not None),
                "a query, or the reason why there is none",
            )
            json.dumps(line.id)


def _manifest(data: bytes, folder: Path) -> None:
    """Read the bytes as a manifest, as they are and resealed.

    If they are a JSON object, the second attempt has the canonical form and the right checksum.
    """
    for form in (data, resealed(data)):
        with contextlib.suppress(PexesoError):
            if form is not None:
                _require_safe(Manifest.from_bytes(form), form)


def resealed(data: bytes) -> bytes | None:
    """Return a JSON object in the canonical form of a manifest with its right checksum.

    The result is None for anything else.
    """

    def canonical(document: dict) -> bytes:
        return (
            json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False).encode(
                "ascii"
            )
            + b"\n"
        )

    try:
        document = json.loads(data)
        if not isinstance(document, dict):
            return None
        document.pop("checksum", None)
        checksum = hashlib.blake2b(canonical(document), digest_size=16).hexdigest()
        return canonical({**document, "checksum": checksum})
    except (ValueError, RecursionError):
        return None


def _require_safe(manifest: Manifest, form: bytes) -> None:
    require(manifest.to_bytes() == form, "one form for one manifest")
    for path, _ in manifest.files():
        place = os.path.normpath(os.path.join("/index", path))
        require(
            place.startswith("/index/") and "\0" not in place,
            f"a path inside the folder, not {path!r}",
        )


def _array(data: bytes, folder: Path) -> None:
    path = folder / "array.npy"
    path.write_bytes(data)
    with contextlib.suppress(PexesoError):
        _MODEL(folder).array("array", np.int64, 2).sum()
    array = open_array(path)
    require(array.nbytes <= len(data), "no more items than the file has")
    if array.size:
        array.reshape(-1)[[0, -1]].copy()


def _texts(data: bytes, folder: Path) -> None:
    path = folder / "values.arrow"
    path.write_bytes(data)
    with contextlib.suppress(PexesoError):
        _MODEL(folder).words("values").to_pylist()
    texts = open_texts(path)
    rows = np.arange(len(texts))[:: max(1, len(texts) // 100)]
    take_texts(texts, rows).to_pylist()
    require_sound(texts)
    texts.to_pylist()


def _document(data: bytes, folder: Path) -> None:
    (folder / "meta.json").write_bytes(data)
    read_document(folder / "meta.json")


def _command(data: bytes, folder: Path) -> None:
    """Run the command line in this process with the lines of the input as arguments.

    No argument leads out of the folder.
    """
    (folder / "t.csv").write_text(TABLE, encoding="utf-8")
    (folder / "q.jsonl").write_text(
        '{"values": ["Oslo", "Rome"]}\n{"file": "t.csv", "column": "city"}\nno\n'
    )
    lines = data.decode("utf-8", "surrogateescape").split("\n")[:_MOST_ARGUMENTS]
    arguments = [line.replace("/", "_").replace("..", "__") for line in lines]
    if arguments and arguments[0] == "demo":
        return  # it takes no input but a folder, and indexes a whole lake
    with contextlib.chdir(folder), without_workers(), contextlib.redirect_stdout(io.StringIO()):
        result = click.testing.CliRunner().invoke(cli, arguments, prog_name="pexeso")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    require(result.exit_code in (0, 1, 2), f"exit code {result.exit_code}")
    require(
        "not foreseen" not in result.output, f"an error that nobody foresaw: {result.output[-300:]}"
    )


def _request(data: bytes, folder: Path) -> None:
    """One request of the service, as JSON."""
    with without_workers():
        try_request(data, folder)


def _agent(data: bytes, folder: Path) -> None:
    """Lines of a client of the server of agents; see `fuzz_agents`."""
    from fuzz_agents import try_lines

    if (folder / INDEX).exists():
        try_lines(data, folder / INDEX)


def _app(data: bytes, folder: Path) -> None:
    """One request to the web app; see `fuzz_app`."""
    from fuzz_app import try_request

    if (folder / INDEX).exists():
        try_request(data, folder / INDEX)


@contextlib.contextmanager
def without_workers():
    """Refuse to start what runs tasks, so that a build ends after all its checks."""
    from pexeso.build import job

    def refuse(*arguments: object, **options: object) -> None:
        raise SparkError(_NO_SPARK)

    kept = job.spark_session, job.LocalWorkers
    job.spark_session = job.LocalWorkers = refuse
    try:
        yield
    finally:
        job.spark_session, job.LocalWorkers = kept


class BrokenPromiseError(AssertionError):
    """An input was accepted, and what came out of it is wrong."""


def require(holds: bool, promise: str) -> None:
    if not holds:
        raise BrokenPromiseError(promise)


TARGETS = {
    target.name: target
    for target in (
        Target("csv", _table(".csv"), 80),
        Target("tsv", _table(".tsv"), 30),
        Target("jsonl", _table(".jsonl"), 60),
        Target("parquet", _table(".parquet"), 60),
        Target("gz", _gzipped, 30),
        Target("other", _table(".dat"), 30),
        Target("columnar", _of_formats(*COLUMNAR), 50),
        Target("avro", _table(".avro"), 40),
        Target("packed", _of_formats(*PACKED), 30),
        Target("book", _of_formats(*BOOKS), 30),
        Target("base", _of_formats(*BASES), 40),
        Target("archive", _table(".zip"), 20),
        Target("normaliser", _normaliser, 45),
        Target("query", _query, 30),
        Target("batch", _batch, 30),
        Target("manifest", _manifest, 45),
        Target("array", _array, 20),
        Target("texts", _texts, 20),
        Target("document", _document, 10),
        Target("statement", try_statement, 110),
        Target("plan", try_plan, 75),
        Target("program", try_program, 40),
        Target("holding", try_holding, 25),
        Target("command", _command, 10),
        Target("app", _app, 20),
        Target("agent", _agent, 10),
        Target("request", _request, 10),
    )
}


def allowed(error: Exception) -> bool:
    """Return whether an input may end so."""
    return isinstance(error, PexesoError)
