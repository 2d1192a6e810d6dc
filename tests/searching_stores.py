"""Small stores of several partitions, and the expected answers of searching them.

They are written as the store writes them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import torch

from pexeso.engine import metrics
from pexeso.engine.dense.building import build_partition
from pexeso.engine.dense.space import DenseSpace
from pexeso.engine.kernels.choice import choose_kernel
from pexeso.engine.options import Metric, PartitionLayoutOptions
from pexeso.engine.vector_space import count_needed
from pexeso.semantic.partition_loader import PartitionLoader
from pexeso.store.arrays import open_array, write_arrays

CPU = torch.device("cpu")


class SmallStore:
    """A stand-in for `pexeso.store.local.reader.Store`.

    Its partitions are in memory, or in files if a folder is given.
    """

    def __init__(
        self, partitions: Sequence[dict], deleted: Sequence[int] = (), folder: Path | None = None
    ) -> None:
        self._partitions, self._deleted, self.path = list(partitions), list(deleted), folder
        self.opened: list[int] = []
        if folder is not None:
            for number, partition in enumerate(partitions):
                (folder / str(number)).mkdir()
                write_arrays(folder / str(number), partition["arrays"])

    @property
    def n_partitions(self) -> int:
        return len(self._partitions)

    def partition(self, number: int) -> dict[str, np.ndarray]:
        self.opened.append(number)
        arrays = self._partitions[number]["arrays"]
        if self.path is None:
            return dict(arrays)
        return {name: open_array(self.path / str(number) / f"{name}.npy") for name in arrays}

    def array(self, number: int, name: str) -> np.ndarray:
        return self._partitions[number]["arrays"][name]

    def texts(self, number: int, name: str) -> pa.Array:
        return pa.array(self._partitions[number][name], pa.string())

    def deleted_mask(self, number: int) -> np.ndarray | None:
        ids = self.array(number, "column_ids")
        return np.isin(ids, self._deleted) if self._deleted else None

    def partition_entry(self, number: int) -> SimpleNamespace:
        arrays = self._partitions[number]["arrays"]
        files = [
            SimpleNamespace(path=f"{name}.npy", n_bytes=array.nbytes + 128)
            for name, array in arrays.items()
        ]
        return SimpleNamespace(files=files)


@dataclass(frozen=True)
class SmallLake:
    """Vectors, columns with their names, and the partition of each column."""

    vectors: np.ndarray
    columns: Sequence[Sequence[int]]
    names: Sequence[tuple[str, str]]
    partitions: Sequence[int]

    def store(
        self,
        options: PartitionLayoutOptions,
        deleted: Sequence[int] = (),
        folder: Path | None = None,
    ) -> SmallStore:
        parts = []
        for number in range(max(self.partitions) + 1):
            mine = [c for c, where in enumerate(self.partitions) if where == number]
            rows = sorted({value for column in mine for value in self.columns[column]})
            offsets = np.cumsum([0, *(len(self.columns[column]) for column in mine)]).astype(
                np.int64
            )
            place = {row: position for position, row in enumerate(rows)}
            members = np.array(
                [place[value] for column in mine for value in self.columns[column]], dtype=np.int64
            )
            vectors = self.vectors[rows] if rows else self.vectors[:0]
            arrays, order = build_partition(vectors, offsets, members, options)
            arrays["column_ids"] = np.array(mine, dtype=np.int64)
            tables, labels = [self.names[c][0] for c in mine], [self.names[c][1] for c in mine]
            values = [row.tobytes().hex() for row in vectors[order]]
            parts.append({"arrays": arrays, "tables": tables, "labels": labels, "values": values})
        return SmallStore(parts, deleted, folder)

    def answer(
        self, metric: str, query: "SmallQuery", options, deleted: Sequence[int] = ()
    ) -> list[tuple[int, int]]:
        """Columns and counts by plain loops, best first."""
        tau = Metric(metric).threshold(options.max_distance)
        near = (
            metrics.distances(query.vectors[:, None], torch.from_numpy(self.vectors)[None]) <= tau
        )
        near &= (query.vectors != 0).any(1)[:, None]
        near &= torch.from_numpy(self.vectors.any(1))[None]
        needed = (
            1
            if options.min_joinability is None
            else count_needed(options.min_joinability, query.total(options))
        )
        counted = query.counted(options.joinability_of)
        candidates = []
        for number, column in enumerate(self.columns):
            table, label = self.names[number]
            matched = near[:, list(column)].any(1).numpy()
            count = int(counted[matched].sum()) if len(column) else 0
            if count >= needed and number not in deleted and table != options.exclude_table:
                candidates.append((-count, table, label, number))
        best = sorted(candidates)[: options.k]
        return [(number, -count) for count, _, _, number in best]


@dataclass(frozen=True)
class SmallQuery:
    """Stands for `pexeso.semantic.encoded_query.EncodedQuery`."""

    values: pa.Array
    vectors: torch.Tensor
    weights: np.ndarray
    judged: None = None

    def counted(self, joinability_of: str) -> np.ndarray:
        return self.weights if joinability_of == "rows" else np.ones_like(self.weights)

    def total(self, options) -> int:
        return int(self.counted(options.joinability_of).sum())


def query_of(
    vectors: np.ndarray, weights: Sequence[int], names: Sequence[str] | None = None
) -> SmallQuery:
    """A query column of these distinct values, called by their bytes where they have no names."""
    names = names or [row.tobytes().hex() for row in vectors]
    return SmallQuery(pa.array(names), torch.from_numpy(vectors), np.array(weights, np.int64))


def scan_of(
    store,
    options: PartitionLayoutOptions,
    kernel: str = "compiled",
    memory_budget: int | None = None,
) -> PartitionLoader:
    return PartitionLoader(
        store, DenseSpace(options), CPU, memory_budget, choose_kernel(kernel, CPU)
    )
