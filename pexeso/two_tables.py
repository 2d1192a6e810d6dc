"""A join of two tables by similar values: one of them is a lake while the join is made."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pexeso.errors import InputError, LakeError, OutputError
from pexeso.index import Index, build_index, open_index
from pexeso.lake.choose import ColumnRules, profile_column
from pexeso.lake.containers.reader import tables_kept
from pexeso.lake.frames.columns import column_texts, is_extension
from pexeso.lake.frames.tables import Frame, table_in_memory
from pexeso.lake.frames.writing import NOT_FOR_PARQUET, fits_parquet
from pexeso.lake.typed.text import AS_IT_IS
from pexeso.lake.typed.value_texts import plain as plain_array
from pexeso.results.query import read_query
from pexeso.runtime.formatting import plain
from pexeso.runtime.system import EXCLUSIVE, lock, without_sync
from pexeso.semantic.pairs import pairs_kept_in
from pexeso.store.io.temporary import LOCK
from pexeso.store.manifest import MANIFEST

RIGHT = "right.parquet"

# Characters of a line of a report, which names cells.
_MAX_LINE = 1000

_log = logging.getLogger("pexeso.join")


@contextmanager
def resumable_folder(output: str, purpose: Sequence[Any], files: Sequence[str]) -> Iterator[Path]:
    """Yield a folder next to a file for what a join that is stopped leaves to the next one.

    Only one of the same purpose and files goes on with it. The folder stays if the join is killed
    or interrupted, or if the disk is full.
    """
    status = [os.stat(file) for file in files]
    times = [(one.st_dev, one.st_ino, one.st_size, one.st_mtime_ns) for one in status]
    digest = hashlib.blake2b(repr((purpose, files, times)).encode(), digest_size=8).hexdigest()
    parent = Path(output).with_name(f".{Path(output).name}.join")
    if parent.is_symlink() or (
        parent.exists() and not (parent / LOCK).is_file() and any(parent.iterdir())
    ):
        raise OutputError(
            f"'{parent}' is where a join keeps what it has found, and it is none that a join made: "
            "move it away, or choose another output."
        )
    parent.mkdir(exist_ok=True)
    with (parent / LOCK).open("ab") as stream, ExitStack() as ending:
        if lock(stream.fileno(), EXCLUSIVE) is False:
            raise OutputError(
                f"Another join is writing '{output}': wait for its end, or choose another name."
            )
        for other in parent.iterdir():
            if other.name not in (LOCK, digest):
                shutil.rmtree(other, ignore_errors=True)
        folder = parent / digest
        folder.mkdir(exist_ok=True)
        ending.callback(shutil.rmtree, parent, ignore_errors=True)
        try:
            with pairs_kept_in(folder):
                yield folder
        except (KeyboardInterrupt, OutputError):
            ending.pop_all()
            raise


@contextmanager
def index_of_table(
    file: str,
    column: str | int | None,
    where: str = " of the table on the right",
    folder: Path | None = None,
    aliases: str | None = None,
) -> Iterator[tuple[Index, str]]:
    """Index one table in a folder; yield the index and the label of the column.

    Without a folder it is a temporary one; in one that is given an index that is there is opened.
    """
    with ExitStack() as ending, tables_kept():
        parent = folder or ending.enter_context(TemporaryDirectory(prefix="pexeso-"))
        query = read_query(file, f"#{column}" if isinstance(column, int) else column)
        kind = profile_column(query.values).kind
        if kind == "empty":
            raise InputError(f"The column {query.column!r}{where} has no values to compare.")
        # Whatever the column is like: it was named.
        rules = ColumnRules(kinds=(kind,), min_rows=1, min_distinct=1, max_median_tokens=1e9)
        path = Path(parent, "table.pexeso")
        if (path / MANIFEST).exists():
            index = open_index(path)
        else:
            try:
                with without_sync() if folder is None else nullcontext():
                    index = build_index(file, path, rules=rules, aliases=aliases)
            except LakeError as error:
                reason = str(error).replace(f"'{file}'", "the table")
                raise InputError(
                    f"The column {query.column!r}{where} cannot be compared: {reason}"
                ) from error
        yield index, str(query.column)


def write_as_it_is(table: pa.Table, file: str) -> None:
    """Write a table to a Parquet file that is read with the texts as they are."""
    metadata = {**(table.schema.metadata or {}), AS_IT_IS: b""}
    table = table.replace_schema_metadata(metadata)
    try:
        pq.write_table(table, file)
    except NOT_FOR_PARQUET:
        for at, name in enumerate(table.column_names):
            if not fits_parquet(table.select([at])):
                table = table.set_column(at, name, _for_parquet(name, table.column(at)))
        pq.write_table(table, file)


def _with_key_texts(frame: Frame, on: int) -> pa.Table:
    """Return a table whose key is texts, as that of a query, if it is of a type of its library."""
    table = frame.to("arrow")
    if not is_extension(table.schema.types[on]):
        return table
    return table.set_column(on, table.column_names[on], column_texts(frame.column(on)))


def _for_parquet(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Write out dictionaries and runs of what Parquet has none of."""
    is_coded = pa.types.is_dictionary(column.type)
    with suppress(pa.ArrowException):
        written = pa.chunked_array(
            chunk.dictionary.take(chunk.indices) if is_coded else plain_array(chunk)
            for chunk in column.chunks
        )
        if fits_parquet(pa.table({name: written})):
            return written
    raise InputError(
        f"The column {name!r} of the table on the right is of the type {column.type}, which a join "
        "cannot keep: leave it out, or turn it into texts."
    )


def fuzzy_join(
    left: Any,
    right: Any,
    on: str | int | None = None,
    *,
    left_on: str | int | None = None,
    right_on: str | int | None = None,
    max_distance: float | None = None,
    values: str = "nearest",
    how: str = "left",
    aggregate: str | Mapping[str, str] | None = None,
    suffix: str = "_right",
    provenance: Sequence[str] = ("value", "distance"),
    many_to_many: bool = False,
) -> Any:
    """Join two tables by similar values, without an index.

    The right table is indexed in a temporary folder, in some seconds for a million rows; to join
    with it again, build an index. Where the join had to choose, or a rule that is off would match
    more, the logger ``pexeso`` warns.

    Parameters
    ----------
    left, right : table
        A DataFrame of pandas or polars, a pyarrow Table, or what else
        `pexeso.lake.frames.tables.frame_of` takes.
    on, left_on, right_on : str or int
        The column to join by, by name or position: `on` in both tables, or one for each.
    max_distance : float, optional
        Of values that match, in [0, 1], as a fraction of the largest possible; by default 0 for
        dates, numbers and codes, and 0.4 for other values.
    suffix : str
        Suffix for column names of the right table that the left one has too.
    values, how, aggregate, provenance, many_to_many
        As in `pexeso.Match.join`.

    Returns
    -------
    table
        Of the kind of `left`: its columns and rows, in its order, those of provenance, and the
        columns of `right`.

    Raises
    ------
    InputError
        A table, a column or an option is not as it must be.
    ColumnNotFoundError
        There is no such column; the message lists those there are.

    Examples
    --------
    >>> import pyarrow as pa
    >>> people = pa.table({"city": ["Reykjavik", "København", "Oslo"]})
    >>> flags = pa.table({"town": ["Reykjavík", "Kobenhavn", "Roma"], "code": ["IS", "DK", "IT"]})
    >>> fuzzy_join(people, flags, left_on="city", right_on="town")["code"].to_pylist()
    ['IS', 'DK', None]
    """
    by_left, by_right = (on if side is None else side for side in (left_on, right_on))
    if by_left is None or by_right is None:
        raise InputError(
            "Name the column to join by: on=NAME in both tables, or left_on=NAME and right_on=NAME."
        )
    own, other = table_in_memory(left, "left"), table_in_memory(right, "right")
    chosen = {} if max_distance is None else {"max_distance": max_distance}
    with TemporaryDirectory(prefix="pexeso-") as folder:
        file = os.path.join(folder, RIGHT)
        write_as_it_is(_with_key_texts(other, other.position(by_right)), file)
        with index_of_table(file, by_right) as (index, column):
            explained = index.explain(own.table, RIGHT, column, on=by_left, **chosen)
            joined = explained.match.join_with_report(
                own.table, by_left, values=values, how=how, aggregate=aggregate, suffix=suffix,
                provenance=provenance, many_to_many=many_to_many,
            )  # fmt: skip
            for line in joined.report.lines():
                _log.warning(plain(line, _MAX_LINE))
            return joined.table
