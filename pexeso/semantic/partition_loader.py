"""The partitions of a store on a device, within a memory budget."""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from pexeso.engine.vector_space import (
    BYTES_A_PAIR,
    MAX_PAIRS,
    WORKING_BYTES,
    SpacePartition,
    VectorSpace,
)
from pexeso.errors import DeviceError
from pexeso.results.ranking import ColumnNames
from pexeso.runtime.formatting import format_bytes
from pexeso.store.local.reader import Store
from pexeso.store.paging import FaultWatch, MappedPages

if TYPE_CHECKING:
    import torch

    from pexeso.engine.interface import KernelChoice
    from pexeso.engine.layout.device_stage import DeviceStage

MIN_PAIRS = 1 << 18
"""So many pairs may be held however small the budget: 12 MiB."""

PAIRS_ON_HOST = 1 << 17
"""So many pairs of values are compared on the host, in less time than a device takes to start the
steps of it one by one."""

SHARE_OF_DEVICE = 0.8
"""Of the free memory of a device, where there is no budget: other indexes and programs use it."""

CHECK_BYTES = 32 << 20
"""What checking one partition takes on a device while another one is searched there."""

ENGINE_ARRAYS_NOT_NEEDED = frozenset({"column_ids", "posting_texts"})

Result = TypeVar("Result")

_FAILURES = ("CUDA error", "CUDA driver error", "Error [CUDA]", "CUDA unknown error", "NVIDIA")
"""What torch and Triton write where a device, and not what it was asked, is the reason."""

_log = logging.getLogger("pexeso.index")


class PartitionLoader:
    """Opens the partitions of a store on a device, within a memory budget.

    On the CPU partitions are memory-mapped, so opening is free and they are kept: the budget bounds
    what a search holds besides, and the system drops mapped pages when it needs the room. To
    another device they are copied, and as many as fit stay there (`kept_numbers`); the others are
    copied for each search, the next while one is searched where the budget allows two. They go
    through 128 MiB of the host's memory (`pexeso.engine.layout.device_stage`). A partition for
    which the device has no memory is searched on the CPU, and all are when the device fails; both
    are said once.

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
        self._on_host: set[int] = set()
        self._said: set[str] = set()
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
        if self._budget is None or (self.store.n_partitions > 1 and self.kept_numbers):
            return MAX_PAIRS
        return max_pairs_within(self._budget - self._fixed_bytes(number))

    @property
    def copies_ahead(self) -> bool:
        """Whether the next partition is copied to the device while another one is searched.

        For that two must fit there beside those that are kept, without fewer pairs being held.
        """
        numbers = range(self.store.n_partitions)
        if self.on_cpu or len(numbers) < 2 or self.kept_numbers.issuperset(numbers):
            return False
        return bool(self.kept_numbers) or self._room >= 2 * self._passing_bytes

    @cached_property
    def kept_numbers(self) -> frozenset[int]:
        """The partitions that stay on the device from one search to the next.

        They are all, the only one, or the first ones that leave room for two others at a time.
        Searches go through all partitions in much the same order, so that of those used last the
        one that comes next would always be gone.
        """
        numbers = range(self.store.n_partitions)
        if self.on_cpu:
            return frozenset()
        sizes = [self._copied_bytes(number) for number in numbers]
        if len(sizes) == 1 or sum(sizes) <= self._room:
            return frozenset(numbers)
        room = self._room - 2 * self._passing_bytes
        held = itertools.accumulate(sizes)
        return frozenset(number for number, n_bytes in enumerate(held) if n_bytes <= room)

    @cached_property
    def _room(self) -> int:
        """Bytes of the device for partitions, where pairs keep all their room."""
        budget = self._budget
        if budget is None:
            try:
                budget = int(SHARE_OF_DEVICE * free_bytes(self._device))
            except RuntimeError as error:
                self._give_up_device(error)
                return 0
        return budget - self._working_bytes - MAX_PAIRS * BYTES_A_PAIR - CHECK_BYTES

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

    def on_host(self, number: int) -> SpacePartition:
        """Map one partition into the host's memory, after a glance at some of its rows."""
        partition = self.mapped(number)
        if number not in self._looked_at:
            self.space.require_plausible(partition, self._where(number), rows=True)
            self._looked_at.add(number)
        return partition

    def open_for_pairs(self, number: int, columns: np.ndarray, n_values: int) -> SpacePartition:
        """Open one partition to compare the values of columns with others: few on the host."""
        partition = self.on_host(number)
        n_pairs = int(partition.column_lists.sizes(columns).sum()) * n_values
        return partition if n_pairs <= PAIRS_ON_HOST else self.open_in_place(number)

    def open(self, number: int) -> SpacePartition:
        """Open one partition on the device, after a glance at some of its rows."""
        partition = self.open_in_place(number)
        if self.on_cpu or not self.is_on_host(number, partition):
            return partition
        partition = self._copied(number)
        if number in self.kept_numbers and not self.is_on_host(number, partition):
            self._kept[number] = partition
        return partition

    def open_in_place(self, number: int) -> SpacePartition:
        """Open a partition where it is, to look up some columns: for those it is not copied."""
        kept = self._kept.get(number)
        return self.on_host(number) if kept is None else kept

    def is_on_host(self, number: int, partition: SpacePartition) -> bool:
        """Return whether a partition that `open` gave is the mapped one."""
        return partition is self._mapped.get(number)

    def kernel_of(self, number: int, partition: SpacePartition) -> KernelChoice | None:
        """Return what searches a partition that `open` gave."""
        return self.look_kernel if self.is_on_host(number, partition) else self.kernel

    def search(
        self, number: int, partition: SpacePartition, work: Callable[[SpacePartition], Result]
    ) -> Result:
        """Do some work with a partition that `open` gave; on the CPU where its device cannot.

        Such work is begun again, from the start.
        """
        if self.on_cpu:  # perhaps since a failure after which the partition came
            return work(self.mapped(number))
        try:
            return work(partition)
        except (DeviceError, RuntimeError) as error:
            if self.is_on_host(number, partition) or not self._was_device(number, error):
                raise
        # Outside of the handler, where nothing keeps what the attempt held.
        return work(self.mapped(number))

    def _was_device(self, number: int, error: Exception) -> bool:
        """Turn to the CPU if an error is the device's; return whether it is."""
        import torch

        full = isinstance(error, DeviceError) or "out of memory" in str(error)
        if full and self.space.has_kernels:
            self._leave_on_host(number)
        elif (
            full
            or isinstance(error, getattr(torch, "AcceleratorError", ()))
            or any(failure in str(error) for failure in _FAILURES)
        ):
            self._give_up_device(error)
        else:
            return False
        return True

    def _leave_on_host(self, number: int) -> None:
        self._on_host.add(number)
        self._say_no_room()

    def _say_no_room(self) -> None:
        self._say(
            f"The device {self._device} has not enough memory for all partitions of "
            f"'{self.store.path}', so some are searched on the CPU. Build the index with smaller "
            "partitions (--partition-bytes) to search them on the device."
        )

    def _give_up_device(self, error: Exception) -> None:
        """Search on the CPU from now on."""
        reason = str(error).partition("\n")[0].rstrip(".")
        self.on_cpu, self.kernel, self.kept_numbers = True, self.look_kernel, frozenset()
        self._kept.clear()
        if not self.space.has_kernels:
            self.space = replace(self.space, device=None)
            self._mapped.clear()
        self._say(
            f"The device {self._device} failed ({reason}), so '{self.store.path}' is searched on "
            "the CPU from now on."
        )

    def _say(self, message: str) -> None:
        # Of a device that failed, each thread that meets it has a reason of its own.
        topic = message.partition("(")[0]
        if topic not in self._said:
            self._said.add(topic)
            _log.warning(message)

    @cached_property
    def _stage(self) -> DeviceStage:
        from pexeso.engine.layout.device_stage import DeviceStage

        return DeviceStage(self._device)

    def _where(self, number: int) -> str:
        return f"Partition {number} of '{self.store.path}'"

    def _copied(self, number: int) -> SpacePartition:
        """Copy a partition to the device; return the mapped one where that has no memory for it."""
        import torch

        if number in self._on_host:
            return self.mapped(number)
        try:
            if not self.space.has_kernels:
                return self.space.open(self._arrays(number), self._device)
            stays = number in self.kept_numbers
            passing_bytes = None if stays else self._passing_bytes
            return self._stage.open(self._arrays(number), self.space.options, passing_bytes)
        except torch.OutOfMemoryError:
            pass
        except RuntimeError as error:
            if not self._was_device(number, error):
                raise
            return self.mapped(number)
        # Others have taken the room since: from now on only what is searched is there.
        had_kept, had_two = bool(self._kept), self.copies_ahead
        self.kept_numbers, self._room = frozenset(), 0
        self._kept.clear()
        if self._device.type == "cuda":
            torch.cuda.empty_cache()
        if had_kept:
            return self._copied(number)
        if had_two:  # There may be room for it in later searches, when it is alone.
            self._say_no_room()
        else:
            self._leave_on_host(number)
        return self.mapped(number)

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
        # Where two fit, or some are kept, the pairs have all the room they can use anyway.
        return self._working_bytes + self._copied_bytes(number)

    @cached_property
    def _passing_bytes(self) -> int:
        """Bytes of the largest partition: so much each takes that does not stay."""
        return max(map(self._copied_bytes, range(self.store.n_partitions)), default=0)

    def _copied_bytes(self, number: int) -> int:
        n_bytes = copied_bytes(self.store, number) - copied_bytes(
            self.store, number, ENGINE_ARRAYS_NOT_NEEDED
        )
        mapped_bytes = copied_bytes(self.store, number, ("mapped",))
        if not mapped_bytes:
            return n_bytes
        # A grid, of which a device walks the blocks that are made of it.
        from pexeso.engine.layout.grid_cells import blocks_bytes

        options = self.space.options
        n_coordinates = options.n_pivots if options.map == "pivots" else options.n_axes + 1
        return n_bytes + blocks_bytes(mapped_bytes // (4 * n_coordinates), n_coordinates)


def _kernel_of_the_cpu() -> KernelChoice:
    import torch

    from pexeso.engine.kernels.choice import choose_kernel

    return choose_kernel("auto", torch.device("cpu"))


def free_bytes(device: torch.device) -> int:
    """Return the free memory of a device; 0 where it does not say."""
    import torch

    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else 0


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
