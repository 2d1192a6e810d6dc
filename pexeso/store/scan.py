"""Go through the partitions of an index one at a time, within a memory budget."""

from collections.abc import Collection, Iterable, Iterator

import numpy as np

from pexeso.errors import DeviceError, InputError
from pexeso.store.reader import Store
from pexeso.store.sizes import format_bytes


def scan_partitions(
    store: Store,
    *,
    numbers: Iterable[int] | None = None,
    copied: Collection[str] | None = None,
    memory_budget: int | None = None,
) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
    """Yield partitions one after the other as memory-mapped arrays.

    Mapped arrays take no memory of their own: the operating system reads the pages that are used and drops them when
    it needs the room. The budget therefore bounds what the caller copies, to ordinary memory or to a device: the arrays
    named in `copied`, one partition at a time.

    Parameters
    ----------
    store
        The open index.
    numbers
        The partitions to go through, in this order; None for all.
    copied
        Names of the arrays that the caller copies whole; None for all.
    memory_budget
        Most bytes that one partition's copied arrays may have; None for no bound.

    Yields
    ------
    tuple[int, dict[str, np.ndarray]]
        The partition's number and its arrays. The dictionary is emptied when the next one is asked for, so that the
        maps are closed where the caller has kept none of the arrays.

    Raises
    ------
    InputError
        The budget is not positive, or there is no such partition.
    DeviceError
        A partition does not fit the budget. All are looked at before the first is opened.
    IndexCorruptError
        While going on: as `Store.partition`.
    """
    chosen = list(range(store.n_partitions)) if numbers is None else list(numbers)
    sizes = {number: copied_bytes(store, number, copied) for number in chosen}
    if memory_budget is not None:
        _require_fit(store, sizes, memory_budget)
    return _scan(store, chosen)


def copied_bytes(store: Store, number: int, names: Collection[str] | None = None) -> int:
    """Return the bytes of a partition's arrays of these names (None for all), as the manifest has them.

    Each counts with its file's header of 128 bytes or a little more.
    """
    files = store.partition_entry(number).files
    arrays = {file.path.removesuffix(".npy"): file.n_bytes for file in files if file.path.endswith(".npy")}
    return sum(n_bytes for name, n_bytes in arrays.items() if names is None or name in names)


def _require_fit(store: Store, sizes: dict[int, int], memory_budget: int) -> None:
    if memory_budget <= 0:
        raise InputError(f"memory_budget must be a positive number of bytes. Got {memory_budget!r}.")
    number = max(sizes, key=lambda key: sizes[key], default=None)
    if number is not None and sizes[number] > memory_budget:
        raise DeviceError(
            f"Partition {number} of '{store.path}' needs {format_bytes(sizes[number])} in memory, and the budget is "
            f"{format_bytes(memory_budget)}: raise the memory budget to that, or build the index with smaller "
            "partitions."
        )


def _scan(store: Store, numbers: list[int]) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
    for number in numbers:
        arrays = store.partition(number)
        try:
            yield number, arrays
        finally:
            arrays.clear()
