"""Document frequencies: in how many columns of an index each value stands.

They are those of the whole index as it is now, deleted columns left out, so that they do not depend
on how the index came to be: which columns share a partition, which were appended later, which a
compaction has purged.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from pexeso.engine.arrays import expand_ranges
from pexeso.engine.postings import Csr
from pexeso.errors import IndexCorruptError
from pexeso.search.partition_loader import PartitionLoader
from pexeso.store.texts import require_sound, take_texts

VALUES_AT_ONCE = 1 << 18
"""Values of a partition that are compared at a time with those asked for."""


def n_live_columns(scan: PartitionLoader) -> int:
    """Return the number of columns of an index that are not deleted."""
    numbers = range(scan.store.n_partitions)
    masks = (scan.store.deleted_mask(number) for number in numbers)
    n_deleted = sum(int(mask.sum()) for mask in masks if mask is not None)
    return sum(len(scan.names(number).ids) for number in numbers) - n_deleted


def document_frequencies(
    scan: PartitionLoader, rows: Mapping[int, np.ndarray]
) -> dict[int, np.ndarray]:
    """Count the columns of the whole index that hold each of some values.

    Parameters
    ----------
    rows : mapping of int to numpy.ndarray, int64
        For each partition that has such values, their rows there, each once.

    Returns
    -------
    dict of int to numpy.ndarray, int64
        For each of these partitions and rows, the columns with an equal normalised text in any
        partition; at least 1 for a value of a column that is not deleted.

    Notes
    -----
    An index of one partition is asked for these rows alone. In others a value may stand in several
    partitions: the texts of all values are read, `VALUES_AT_ONCE` at a time, and those asked for
    are held once.
    """
    store = scan.store
    if store.n_partitions == 1 or not rows:
        return {number: _live_columns(scan, number, some) for number, some in rows.items()}
    texts = [_texts(scan, number, some) for number, some in rows.items()]
    encoded = pa.chunked_array(texts, pa.large_string()).combine_chunks().dictionary_encode()
    totals = np.zeros(len(encoded.dictionary), np.int64)
    for number in range(store.n_partitions):
        values = store.texts(number, "values")
        for start in range(0, len(values), VALUES_AT_ONCE):
            some = values.slice(start, VALUES_AT_ONCE)
            require_sound(some)
            positions = pc.index_in(some.cast(pa.large_string()), encoded.dictionary)
            held = np.flatnonzero(positions.is_valid().to_numpy(zero_copy_only=False))
            found = positions.drop_null().to_numpy(zero_copy_only=False)
            np.add.at(totals, found, _live_columns(scan, number, start + held))
    of_rows = totals[encoded.indices.to_numpy(zero_copy_only=False)]
    bounds = np.cumsum([len(some) for some in rows.values()])[:-1]
    return dict(zip(rows, np.split(of_rows, bounds), strict=True))


def _texts(scan: PartitionLoader, number: int, rows: np.ndarray) -> pa.LargeStringArray:
    texts = take_texts(scan.store.texts(number, "values"), rows)
    if texts.null_count:
        raise IndexCorruptError(
            f"A text of partition {number} of '{scan.store.path}' is missing: build the index "
            "again. "
            "'pexeso check' lists what is damaged."
        )
    return texts.cast(pa.large_string())


def _live_columns(scan: PartitionLoader, number: int, rows: np.ndarray) -> np.ndarray:
    """Count the live columns of a partition that hold each of some of its values.

    Deleted columns are left out.
    """
    columns: Csr = scan.mapped(number).value_columns
    wanted = torch.from_numpy(rows)
    sizes = columns.sizes_of(wanted)
    deleted = scan.store.deleted_mask(number)
    if deleted is None:
        return sizes.numpy()
    owner, posting = expand_ranges(columns.offsets[wanted], sizes)
    live = ~deleted[columns.members[posting].numpy()]
    return np.bincount(owner.numpy()[live], minlength=len(rows))
