"""The partitions of a store on a device, within a memory budget."""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from pexeso.build.parts.metadata import choose_device, stored_space
from pexeso.engine.copies import ColumnSets, foldable_sizes, numbered_by_text
from pexeso.engine.lists import offsets_of, ranges
from pexeso.engine.vector_space import (
    BYTES_A_PAIR,
    MAX_PAIRS,
    WORKING_BYTES,
    SpacePartition,
    VectorSpace,
)
from pexeso.errors import DeviceError, IndexCorruptError, InputError
from pexeso.results.query import ColumnNames, Hit
from pexeso.runtime.formatting import format_bytes
from pexeso.store.arrays import FaultWatch, MappedPages, Texts, take_texts
from pexeso.store.local.reader import Store

if TYPE_CHECKING:
    import torch

    from pexeso.engine.kernel import Kernel
    from pexeso.engine.partition import DeviceStage


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
    through 128 MiB of the host's memory (`pexeso.engine.partition`). A partition for
    which the device has no memory is searched on the CPU, and all are when the device fails; both
    are said once. `kernel` searches them (None where the space has no kernels), and `look_kernel`
    looks at their summaries, on the CPU; `watch` shows whether mapped pages were missing lately.
    """

    def __init__(
        self,
        store: Store,
        space: VectorSpace,
        device: torch.device | None,
        memory_budget: int | None,
        kernel: Kernel | None,
    ) -> None:
        self.store, self.n_partitions, self.kernel = store, store.n_partitions, kernel
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
        self._texts: dict[int, tuple[np.ndarray, Texts]] = {}
        self._deleted: dict[int, np.ndarray | None] = {}

    def require_room(self) -> None:
        """Refuse a budget of a device that a partition does not fit into."""
        if not self.on_cpu and os.getpid() != self._process:
            raise DeviceError(
                f"The index '{self.store.path}' was opened on the device {self._device} before "
                "this process was forked, and a "
                "forked process cannot use it: open the index with device='cpu', or start "
                "processes by 'spawn'."
            )
        if self.on_cpu or self._budget is None or not self.n_partitions:
            return
        needed, number = max(
            (self._fixed_bytes(number), number) for number in range(self.n_partitions)
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
        """Return how many (query value, stored value) pairs a search of a partition may hold."""
        if self._budget is None or (self.n_partitions > 1 and self.kept_numbers):
            return MAX_PAIRS
        n_pairs = (self._budget - self._fixed_bytes(number)) // BYTES_A_PAIR
        return min(MAX_PAIRS, max(MIN_PAIRS, n_pairs))

    @property
    def copies_ahead(self) -> bool:
        """Whether the next partition is copied to the device, which has room, during a search."""
        numbers = range(self.n_partitions)
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
        numbers = range(self.n_partitions)
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
            partition = self.space.open(arrays, pages=MappedPages(arrays, self.watch))
            self.space.require_plausible(partition, self._where(number), rows=False)
            self._mapped[number] = partition
        return self._mapped[number]

    def names(self, number: int) -> ColumnNames:
        """Map the names of a partition's columns once: opening a file outlasts many searches."""
        if number not in self._names:
            texts = (self.store.texts(number, name) for name in ("tables", "labels"))
            self._names[number] = ColumnNames(self.store.array(number, "column_ids"), *texts)
        return self._names[number]

    def texts(self, number: int) -> tuple[np.ndarray, Texts]:
        """Map the texts of a partition once, and which of them each posting has, int32."""
        if number not in self._texts:
            store = self.store
            rows = store.array(number, "posting_texts")
            self._texts[number] = rows, store.texts(number, "texts")
        return self._texts[number]

    def deleted_mask(self, number: int) -> np.ndarray | None:
        """Mark the columns of a partition that are deleted; None where none is."""
        if number not in self._deleted:
            self._deleted[number] = self.store.deleted_mask(number)
        return self._deleted[number]

    def on_host(self, number: int) -> SpacePartition:
        """Map one partition into the host's memory, after a glance at some of its rows."""
        partition = self.mapped(number)
        if number not in self._looked_at:
            self.space.require_plausible(partition, self._where(number), rows=True)
            self._looked_at.add(number)
        return partition

    def compare(
        self, number: int, n_pairs: int, work: Callable[[SpacePartition], Result]
    ) -> Result:
        """Do some work with columns of a partition where it is: for them it is not copied."""
        is_short = n_pairs <= PAIRS_ON_HOST
        partition = self.on_host(number) if is_short else self._open_in_place(number)
        return self.search(number, partition, work)

    def open(self, number: int) -> SpacePartition:
        """Open one partition on the device, after a glance at some of its rows."""
        if self.on_cpu:
            return self.on_host(number)
        partition = self._open_in_place(number)
        if not self.is_on_host(number, partition):
            return partition
        partition = self._copied(number)
        if number in self.kept_numbers and not self.is_on_host(number, partition):
            self._kept[number] = partition
        return partition

    def _open_in_place(self, number: int) -> SpacePartition:
        kept = self._kept.get(number)
        return self.on_host(number) if kept is None else kept

    def is_on_host(self, number: int, partition: SpacePartition) -> bool:
        return partition is self._mapped.get(number)

    def search(
        self, number: int, partition: SpacePartition, work: Callable[[SpacePartition], Result]
    ) -> Result:
        """Do some work with an opened partition, or from its start on the CPU."""
        if self.on_cpu:  # perhaps since a failure after which the partition came
            return work(self.mapped(number))
        try:
            return work(partition)
        except (DeviceError, RuntimeError) as error:
            if self.is_on_host(number, partition) or not self._was_device(number, error):
                raise
        # Outside of the handler, where nothing keeps what the attempt held.
        return work(self.mapped(number))

    @property
    def keeps_all(self) -> bool:
        """Whether all partitions stay on the device, so that one launch can search them."""
        keeps = not self.on_cpu and 0 < self.n_partitions == len(self.kept_numbers)
        return keeps and self.space.has_kernels and not self._on_host

    def search_all(self, work: Callable[[list[SpacePartition]], None]) -> bool:
        """Do some work with all partitions on the device; return whether it was done whole."""
        if not self.keeps_all:
            return False
        partitions = [self.open(number) for number in range(self.n_partitions)]
        if any(itertools.starmap(self.is_on_host, enumerate(partitions))):
            return False
        try:
            work(partitions)
        except (DeviceError, RuntimeError) as error:
            if not self._was_device(None, error):
                raise
            return False
        return True

    def _was_device(self, number: int | None, error: Exception) -> bool:
        """Turn to the CPU for a partition, or all, if an error is the device's; return if it is."""
        import torch

        full = isinstance(error, DeviceError) or "out of memory" in str(error)
        if full and self.space.has_kernels:
            if number is not None:
                self._on_host.add(number)
                self._say_no_room()
        elif (
            full
            or isinstance(error, getattr(torch, "AcceleratorError", ()))
            or any(failure in str(error) for failure in _FAILURES)
        ):
            self._give_up_device(error)
        else:
            return False
        return True

    def _say_no_room(self) -> None:
        self._say(
            f"The device {self._device} has not enough memory for all partitions of "
            f"'{self.store.path}', so some are searched on the CPU. Build the index with smaller "
            "partitions (--partition-bytes) to search them on the device."
        )

    def _give_up_device(self, error: Exception) -> None:
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
        from pexeso.engine.partition import DeviceStage

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
        # Others have taken the room since: from now on only what is searched is kept.
        had_kept, had_two = bool(self._kept), self.copies_ahead
        self.kept_numbers, self._room = frozenset(), 0
        self._kept.clear()
        if self._device.type == "cuda":
            torch.cuda.empty_cache()
        if had_kept:
            return self._copied(number)
        if not had_two:  # else there may be room for it in later searches, when it is alone
            self._on_host.add(number)
        self._say_no_room()
        return self.mapped(number)

    def _arrays(self, number: int) -> dict[str, np.ndarray]:
        arrays = self.store.partition(number)
        return {
            name: array for name, array in arrays.items() if name not in ENGINE_ARRAYS_NOT_NEEDED
        }

    def _fixed_bytes(self, number: int) -> int:
        """Return the bytes that a search of a partition needs before it holds any pair."""
        # Where two fit, or some are kept, the pairs have all the room they can use anyway.
        return self._working_bytes + (0 if self.on_cpu else self._copied_bytes(number))

    @cached_property
    def _passing_bytes(self) -> int:
        """Bytes of the largest partition: so much each takes that does not stay."""
        return max(map(self._copied_bytes, range(self.n_partitions)), default=0)

    def _copied_bytes(self, number: int) -> int:
        n_bytes = copied_bytes(self.store, number) - copied_bytes(
            self.store, number, ENGINE_ARRAYS_NOT_NEEDED
        )
        mapped_bytes = copied_bytes(self.store, number, ("mapped",))
        if not mapped_bytes:
            return n_bytes
        # A grid, of which a device walks the blocks that are made of it.
        from pexeso.engine.published.grid import blocks_bytes

        options = self.space.options
        n_coordinates = options.n_pivots if options.map == "pivots" else options.n_axes + 1
        return n_bytes + blocks_bytes(mapped_bytes // (4 * n_coordinates), n_coordinates)


def _kernel_of_the_cpu() -> Kernel:
    import torch

    from pexeso.engine.kernels.choice import choose_kernel

    return choose_kernel("auto", torch.device("cpu"))


def free_bytes(device: torch.device) -> int:
    import torch

    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else 0


def copied_bytes(store: Store, number: int, names: Collection[str] | None = None) -> int:
    """Return the bytes of the array files of a partition, or of the named ones."""
    return sum(
        file.n_bytes
        for file in store.partition_entry(number).files
        if file.path.endswith(".npy") and (names is None or file.path.removesuffix(".npy") in names)
    )


MIN_CPU_BUDGET = 140 << 20
"""What a search on the CPU takes where it holds few pairs at a time, in bytes."""

_DRIVERS = ("/dev/nvidiactl", "/dev/dxg")
"""Without any of these files Linux has no CUDA device."""


def loader_of(store: Store, device: str, memory_budget: int | None, kernel: str) -> PartitionLoader:
    space = stored_space(store.manifest)
    if space.has_kernels:
        from pexeso.engine.kernels.choice import choose_kernel

        where = choose_device(device)
        if where.type == "cpu" and memory_budget is not None and memory_budget < MIN_CPU_BUDGET:
            raise InputError(
                f"memory_budget must be at least {format_bytes(MIN_CPU_BUDGET)} on the CPU, which "
                f"a search takes with few pairs at a time. Got {format_bytes(memory_budget)}."
            )
        return PartitionLoader(store, space, where, memory_budget, choose_kernel(kernel, where))
    where = _device_of_letters(device, kernel)
    on_cpu = where is None or where.type == "cpu"
    if on_cpu and memory_budget is not None:
        raise InputError(
            "memory_budget bounds what a search takes on a GPU, and the pairs of vectors that one "
            "on the CPU holds; this search compares spellings on the CPU, where it bounds nothing. "
            "Leave it out."
        )
    space = replace(space, device=where)
    return PartitionLoader(store, space, None if on_cpu else where, memory_budget, None)


def _device_of_letters(device: str, kernel: str) -> torch.device | None:
    """Return the device on which torch searches a lexical index; None: compiled loops do it.

    On the CPU these are the faster, and need no torch, which takes longer to load than most
    searches take.
    """
    if kernel in ("auto", "compiled") and (
        device == "cpu" or (device == "auto" and not any(map(os.path.exists, _DRIVERS)))
    ):
        return None
    from pexeso.engine.kernels.choice import choose_kernel

    where = choose_device(device)
    if kernel == "triton":
        raise InputError(
            "An index of the model 'lexical' is searched by the kernels compiled, on the CPU, and "
            f"torch. Got {kernel!r}: take one of these, or auto."
        )
    choose_kernel(kernel, where)
    return None if where.type == "cpu" and kernel != "torch" else where


def sets_of_hits(scan: PartitionLoader, hits: Sequence[Hit]) -> ColumnSets:
    """Read the distinct normalised values of columns found.

    Columns that `foldable_sizes` leaves out are empty. Of several partitions the texts of the
    values are compared, of one their rows.
    """
    partitions = np.array([hit.partition for hit in hits], np.int64)
    positions = np.array([hit.position for hit in hits], np.int64)
    starts, sizes = np.zeros(len(hits), np.int64), np.zeros(len(hits), np.int64)
    numbers = np.unique(partitions).tolist()
    parts = [np.flatnonzero(partitions == number) for number in numbers]
    lists = [scan.mapped(number).column_lists for number in numbers]
    for part, columns in zip(parts, lists, strict=True):
        starts[part] = columns.offsets[positions[part]]
        sizes[part] = columns.offsets[positions[part] + 1] - starts[part]
    if (sizes < 0).any() or (starts < 0).any():
        raise IndexCorruptError(
            "The columns of a partition of the index end before they begin: it was changed. "
            "Restore it from a copy, or build it again; 'pexeso check' names the file."
        )
    sizes = foldable_sizes(sizes)
    offsets = offsets_of(sizes)
    if len(numbers) == 1:
        return ColumnSets(offsets, lists[0].members[ranges(starts, sizes)].astype(np.int64))
    rows = np.zeros(offsets[-1], np.int64)
    if not numbers:
        return ColumnSets(offsets, rows)
    for part, columns in zip(parts, lists, strict=True):
        stored = columns.members[ranges(starts[part], sizes[part])]
        rows[ranges(offsets[part], sizes[part])] = stored
    owner = np.repeat(partitions, sizes)
    texts = [partial(take_texts, scan.store.texts(number, "values")) for number in numbers]
    return ColumnSets(
        offsets, numbered_by_text(rows, [owner == number for number in numbers], texts)
    )


def posting_arrays(
    scan: PartitionLoader, number: int, postings: np.ndarray
) -> tuple[pa.Array, pa.Array]:
    """Return the texts of postings as in their columns, and as in the index: large_string."""
    store, (rows, raw) = scan.store, scan.texts(number)
    values = store.array(number, "column_values_members")[postings]
    texts = (
        take_texts(raw, rows[postings]).cast(pa.large_string()),
        take_texts(store.texts(number, "values"), values).cast(pa.large_string()),
    )
    if any(array.null_count for array in texts):
        raise IndexCorruptError(
            f"A text of partition {number} of '{store.path}' is missing: build the index again. "
            "'pexeso check' lists what is damaged."
        )
    return texts
