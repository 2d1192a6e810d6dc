"""The partitions of a store on a device, within a memory budget."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from pexeso.engine.vector_space import (
    BYTES_A_PAIR,
    MAX_PAIRS,
    WORKING_BYTES,
    SpacePartition,
    VectorSpace,
)
from pexeso.errors import DeviceError
from pexeso.runtime.formatting import format_bytes
from pexeso.search.ranking import ColumnNames
from pexeso.store.local.reader import Store
from pexeso.store.paging import FaultWatch, MappedPages

if TYPE_CHECKING:
    import torch

    from pexeso.engine.interface import KernelChoice

MIN_PAIRS = 1 << 18
"""So many pairs may be held however small the budget: 12 MiB."""

ENGINE_ARRAYS_NOT_NEEDED = frozenset({"column_ids", "posting_texts"})


class PartitionLoader:
    """Opens the partitions of a store on a device, within a memory budget.

    On the CPU partitions are memory-mapped, so opening is free and they are kept: the budget bounds
    what a search holds besides, and the system drops mapped pages when it needs the room. On
    another device one at a time is copied there, or two where the budget allows it; it is kept if
    it is the only one.

    Attributes
    ----------
    space : VectorSpace
    kernel : KernelChoice or None
        What searches them; None, as the device is, where the space has no kernels.
    look_kernel : KernelChoice or None
        What looks at their summaries, on the CPU.
    watch : FaultWatch
        Tells whether pages of the mapped files were missing lately.
    """

    def __init__(
        self,
        store: Store,
        space: VectorSpace,
        device: torch.device | None,
        memory_budget: int | None,
        kernel: KernelChoice | None,
    ) -> None:
        self.store, self.kernel = store, kernel
        self.on_cpu = device is None or device.type == "cpu"
        self.look_kernel = kernel if self.on_cpu else _kernel_of_the_cpu()
        self._working_bytes = WORKING_BYTES if kernel is None else kernel.working_bytes
        self.watch = FaultWatch()
        self.space, self._device, self._budget = space, device, memory_budget
        self._process = os.getpid()
        self._mapped: dict[int, SpacePartition] = {}
        self._kept: dict[int, SpacePartition] = {}
        self._looked_at: set[int] = set()
        self._names: dict[int, ColumnNames] = {}

    def require_room(self) -> None:
        """Refuse a budget of a device that a partition does not fit into."""
        if not self.on_cpu and os.getpid() != self._process:
            raise DeviceError(
                f"The index '{self.store.path}' was opened on the device {self._device} before "
                "this process was forked, and a "
                "forked process cannot use it: open the index with device='cpu', or start "
                "processes by 'spawn'."
            )
        if self.on_cpu or self._budget is None or not self.store.n_partitions:
            return
        needed, number = max(
            (self._fixed_bytes(number), number) for number in range(self.store.n_partitions)
        )
        needed += MIN_PAIRS * BYTES_A_PAIR
        if needed > self._budget:
            raise DeviceError(
                f"To search partition {number} of '{self.store.path}' on the device "
                f"{self._device} takes {format_bytes(needed)}, and the memory budget is "
                f"{format_bytes(self._budget)}: raise the budget above that, build the index "
                "with smaller partitions (--partition-bytes), or search on the "
                "CPU (--device cpu)."
            )

    def max_pairs(self, number: int) -> int:
        """Return the maximum number of pairs to hold while a partition is searched.

        A pair is (query value, stored value). The memory budget limits the number.
        """
        if self._budget is None:
            return MAX_PAIRS
        return max_pairs_within(self._budget - self._fixed_bytes(number))

    @property
    def room_for_two(self) -> bool:
        """Whether two partitions at a time fit on the device, without fewer pairs being held."""
        if self.on_cpu or self._budget is None or self.store.n_partitions < 2:
            return False
        copied = max(self._copied_bytes(number) for number in range(self.store.n_partitions))
        return self._budget >= self._working_bytes + 2 * copied + MAX_PAIRS * BYTES_A_PAIR

    def mapped(self, number: int) -> SpacePartition:
        """Map one partition into the host's memory; of it no more than the coarse boxes is read."""
        if number not in self._mapped:
            arrays = self._arrays(number)
            pages = MappedPages(arrays, self.watch)
            partition = self.space.open(arrays, pages=pages)
            self.space.require_plausible(partition, self._where(number), rows=False)
            self._mapped[number] = partition
        return self._mapped[number]

    def names(self, number: int) -> ColumnNames:
        """Map the names of a partition's columns, and cache them.

        Opening a file takes longer than many searches.
        """
        if number not in self._names:
            texts = (self.store.texts(number, name) for name in ("tables", "labels"))
            self._names[number] = ColumnNames(self.store.array(number, "column_ids"), *texts)
        return self._names[number]

    def open(self, number: int) -> SpacePartition:
        """Open one partition on the device, after a glance at some of its rows."""
        if number in self._kept:
            return self._kept[number]
        if number not in self._looked_at:
            self.space.require_plausible(self.mapped(number), self._where(number), rows=True)
            self._looked_at.add(number)
        if self.on_cpu:
            return self.mapped(number)
        partition = self._copied(number)
        if self.store.n_partitions == 1:
            self._kept[number] = partition
        return partition

    def open_ahead(self, number: int) -> SpacePartition:
        """Open a partition, as `open` does, while another one is searched.

        It is copied in a separate stream, so that neither waits for the other.
        """
        if self.on_cpu or self._device.type != "cuda":
            return self.open(number)
        import torch

        stream = torch.cuda.Stream(self._device)
        with torch.cuda.stream(stream):
            partition = self.open(number)
        stream.synchronize()
        return partition

    def _where(self, number: int) -> str:
        return f"Partition {number} of '{self.store.path}'"

    def _copied(self, number: int) -> SpacePartition:
        import torch

        try:
            return self.space.open(self._arrays(number), self._device)
        except torch.OutOfMemoryError as error:
            raise DeviceError(
                f"A partition of '{self.store.path}' does not fit into the memory of the device "
                f"{self._device}. Build the index with smaller partitions "
                "(--partition-bytes), or search on the CPU (--device cpu)."
            ) from error

    def _arrays(self, number: int) -> dict[str, np.ndarray]:
        arrays = self.store.partition(number)
        return {
            name: array for name, array in arrays.items() if name not in ENGINE_ARRAYS_NOT_NEEDED
        }

    def _fixed_bytes(self, number: int) -> int:
        """Return the bytes that a search of a partition needs before it holds any pair.

        On the CPU the partition itself needs none.
        """
        if self.on_cpu:
            return self._working_bytes
        # Where two fit, the pairs have all the room they can use anyway.
        return self._working_bytes + self._copied_bytes(number)

    def _copied_bytes(self, number: int) -> int:
        return copied_bytes(self.store, number) - copied_bytes(
            self.store, number, ENGINE_ARRAYS_NOT_NEEDED
        )


def _kernel_of_the_cpu() -> KernelChoice:
    import torch

    from pexeso.engine.kernels.choice import choose_kernel

    return choose_kernel("auto", torch.device("cpu"))


def max_pairs_within(n_bytes: int) -> int:
    """Return how many pairs may be held in that many bytes, from `MIN_PAIRS` to `MAX_PAIRS`."""
    return min(MAX_PAIRS, max(MIN_PAIRS, n_bytes // BYTES_A_PAIR))


def copied_bytes(store: Store, number: int, names: Collection[str] | None = None) -> int:
    """Return the bytes of the named arrays of a partition according to the manifest.

    If `names` is None, all arrays count.

    Each counts with its file's header of 128 bytes or a little more. Mapped arrays take no memory
    of their own: the operating system reads the pages that are used and drops them when it needs
    the room.
    """
    files = store.partition_entry(number).files
    arrays = {
        file.path.removesuffix(".npy"): file.n_bytes for file in files if file.path.endswith(".npy")
    }
    return sum(n_bytes for name, n_bytes in arrays.items() if names is None or name in names)
