"""The plan: which column goes into which partition, with what is known of each partition; kept in a folder.

``columns.parquet``
    ``column_id: int64``, ``partition: int32``: one row a column. A file, or a folder of files where Spark wrote it.
``plan.json``
    The summary, with a format version of its own. Written last: a folder without it holds no plan.
"""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from partition.balance import Limits
from partition.options import PlanOptions
from pexeso.errors import IndexCorruptError, IndexNotFoundError, IndexVersionError, InputError, OutputError

FORMAT_VERSION = 1
SUMMARY_FILE = "plan.json"
COLUMNS_FILE = "columns.parquet"
COLUMNS_SCHEMA = pa.schema([("column_id", pa.int64()), ("partition", pa.int32())])


@dataclass(frozen=True)
class PartitionSize:
    """One partition.

    Attributes
    ----------
    n_columns : int
    n_values : int
        Distinct values, summed over the columns: a value of several columns counts in each, so this is an upper bound.
    n_bytes : int
        The estimate that the size limit is about; an upper bound for the same reason.
    divergence : float
        Mean divergence of the columns from the centre of the cluster they came from; 0 under "random".
    """

    n_columns: int
    n_values: int
    n_bytes: int
    divergence: float


@dataclass(frozen=True)
class PlanSummary:
    """All of a plan but the list of columns: its size depends on the number of partitions alone.

    Attributes
    ----------
    options : PlanOptions
    partitions : tuple of PartitionSize
    limit_bytes : int
        The size limit that was kept.
    iterations : int
        Passes of k-means; 0 where none was needed.
    converged : bool
        False where `max_iterations` ended k-means.
    notes : tuple of str
        Where a wish could not be met, one sentence each.
    """

    options: PlanOptions
    partitions: tuple[PartitionSize, ...]
    limit_bytes: int
    iterations: int
    converged: bool
    notes: tuple[str, ...] = ()

    @property
    def n_partitions(self) -> int:
        """Number of partitions."""
        return len(self.partitions)

    @property
    def n_columns(self) -> int:
        """Number of columns in all partitions."""
        return sum(partition.n_columns for partition in self.partitions)

    def to_json(self) -> str:
        """Write the summary as JSON text, with the format version."""
        return json.dumps({"format_version": FORMAT_VERSION, **dataclasses.asdict(self)}, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> PlanSummary:
        """Read what :meth:`to_json` wrote.

        Raises
        ------
        IndexVersionError
            If another format version wrote it.
        IndexCorruptError
            If it is no such text.
        """
        try:
            fields = json.loads(text)
            version = fields.pop("format_version")
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise IndexCorruptError("The summary of a partition plan is not readable. Make the plan again.") from error
        if version != FORMAT_VERSION:
            raise IndexVersionError(
                f"The partition plan has format version {version!r}; this version reads {FORMAT_VERSION}. "
                "Make the plan again."
            )
        try:
            fields["options"] = PlanOptions(**fields["options"])
            fields["partitions"] = tuple(PartitionSize(**partition) for partition in fields["partitions"])
            fields["notes"] = tuple(fields["notes"])
            return cls(**fields)
        except (KeyError, TypeError, InputError) as error:
            raise IndexCorruptError(
                f"The summary of a partition plan is damaged ({error}). Make the plan again."
            ) from error


def plan_notes(options: PlanOptions, partitions: tuple[PartitionSize, ...], limits: Limits) -> tuple[str, ...]:
    """Say where a wish could not be met, one sentence each: fewer partitions than asked for, or larger ones."""
    notes = []
    if options.n_partitions is not None and len(partitions) < options.n_partitions:
        notes.append(
            f"{options.n_partitions:,} partitions were asked for; "
            f"there are {len(partitions):,}, one for each column of the lake."
        )
    large = [partition for partition in partitions if partition.n_bytes > limits.limit_bytes]
    alone = [partition.n_bytes for partition in large if partition.n_columns == 1]
    if alone:
        notes.append(
            f"{len(alone):,} column(s) are larger than the limit of {limits.limit_bytes:,} bytes "
            f"(the largest has {max(alone):,}); each has a partition of its own."
        )
    if len(large) > len(alone):
        notes.append(
            f"{len(large) - len(alone):,} partition(s) are larger than the limit of {limits.limit_bytes:,} bytes, "
            "because large columns left no room: "
            f"raise max_imbalance (now {options.max_imbalance}) or lower n_partitions."
        )
    return tuple(notes)


@dataclass(frozen=True, eq=False)
class PartitionPlan:
    """A plan held in memory, 12 bytes a column; a build uses the frame of :func:`partition.spark.plan_partitions`.

    Attributes
    ----------
    column_ids : ndarray, shape (n,), int64
        Rising, each once.
    partitions : ndarray, shape (n,), int32
        The partition of each column.
    summary : PlanSummary

    Raises
    ------
    InputError
        If columns repeat, or the partitions are not those of the summary.
    """

    column_ids: np.ndarray
    partitions: np.ndarray
    summary: PlanSummary

    def __post_init__(self) -> None:
        if self.column_ids.shape != self.partitions.shape or self.column_ids.ndim != 1:
            raise InputError(
                "A plan needs one partition for each column. "
                f"Got shapes {self.column_ids.shape} and {self.partitions.shape}."
            )
        if (np.diff(self.column_ids) <= 0).any():
            raise InputError("The columns of a plan must be in rising order, each once.")
        expected = [partition.n_columns for partition in self.summary.partitions]
        in_range = not len(self.partitions) or 0 <= self.partitions.min() <= self.partitions.max() < len(expected)
        if not in_range or np.bincount(self.partitions, minlength=len(expected)).tolist() != expected:
            raise InputError("The partitions of a plan's columns must be those that its summary counts.")

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write the plan into a folder, which is made where it is missing.

        Raises
        ------
        OutputError
            If the folder holds a plan already, or cannot be written.
        """
        folder = prepare_folder(folder)
        table = pa.table([self.column_ids, self.partitions], schema=COLUMNS_SCHEMA)
        try:
            pq.write_table(table, folder / COLUMNS_FILE)
        except OSError as error:
            raise OutputError(f"The partition plan cannot be written to {folder}: {error}.") from error
        write_summary(self.summary, folder)

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> PartitionPlan:
        """Read a plan from its folder and check it.

        Raises
        ------
        IndexNotFoundError
            If there is none.
        IndexVersionError
            If another format version wrote it.
        IndexCorruptError
            If a file is missing or damaged, or the two do not belong together.
        """
        folder = Path(folder)
        try:
            text = (folder / SUMMARY_FILE).read_text(encoding="utf-8")
        except FileNotFoundError as error:
            raise IndexNotFoundError(f"There is no partition plan in {folder}.") from error
        except (OSError, UnicodeDecodeError) as error:
            raise IndexCorruptError(f"The partition plan in {folder} cannot be read: {error}.") from error
        summary = PlanSummary.from_json(text)
        try:
            table = pq.read_table(folder / COLUMNS_FILE).select(COLUMNS_SCHEMA.names).cast(COLUMNS_SCHEMA)
            table = table.sort_by("column_id")
            return cls(table["column_id"].to_numpy(), table["partition"].to_numpy(), summary)
        except (OSError, KeyError, pa.ArrowException, InputError) as error:
            raise IndexCorruptError(
                f"{folder / COLUMNS_FILE} is missing or not the list that {SUMMARY_FILE} describes ({error}). "
                "Make the plan again."
            ) from error


def prepare_folder(folder: str | os.PathLike[str]) -> Path:
    """Make the folder of a plan, and refuse one that holds a plan already.

    Raises
    ------
    OutputError
        If it holds a plan, or cannot be made.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"The folder {folder} for a partition plan cannot be made: {error}.") from error
    for name in (SUMMARY_FILE, COLUMNS_FILE):
        if (folder / name).exists():
            raise OutputError(f"{folder} holds a partition plan already ({name}). Give another folder or remove it.")
    return folder


def write_summary(summary: PlanSummary, folder: Path) -> None:
    """Write the summary, which completes a plan: under another name first, then renamed in one step.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    unfinished = folder / f"{SUMMARY_FILE}.unfinished"
    try:
        unfinished.write_text(summary.to_json(), encoding="utf-8")
        unfinished.replace(folder / SUMMARY_FILE)
    except OSError as error:
        raise OutputError(f"The partition plan cannot be written to {folder}: {error}.") from error
