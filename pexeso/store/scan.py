"""What the arrays of a partition take where they are copied whole, to ordinary memory or to a device."""

from collections.abc import Collection

from pexeso.store.local.reader import Store


def copied_bytes(store: Store, number: int, names: Collection[str] | None = None) -> int:
    """Return the bytes of a partition's arrays of these names (None for all), as the manifest has them.

    Each counts with its file's header of 128 bytes or a little more. Mapped arrays take no memory of their own: the operating system reads the pages that are
    used and drops them when it needs the room.

    Raises
    ------
    InputError
        There is no such partition.
    """
    files = store.partition_entry(number).files
    arrays = {file.path.removesuffix(".npy"): file.n_bytes for file in files if file.path.endswith(".npy")}
    return sum(n_bytes for name, n_bytes in arrays.items() if names is None or name in names)
