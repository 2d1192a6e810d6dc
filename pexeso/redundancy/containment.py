"""How many rows of a table occur in another: counted exactly from hashes of their rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pexeso.errors import InputError
from pexeso.redundancy import SEMANTICS
from pexeso.runtime.jit import loop


@dataclass(frozen=True)
class RowCounts:
    """Distinct rows with how often each occurs, behind a hash table.

    Attributes
    ----------
    rows : uint64 (d, 2)
    counts : int64 (d,)
    slots : int32 or int64 (power of two,)
        Open addressing by the first half: the number of a row, -1 where empty.
    """

    rows: np.ndarray
    counts: np.ndarray
    slots: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)


def counted_rows(hashes: np.ndarray) -> RowCounts:
    """Count rows by their hashes.

    Parameters
    ----------
    hashes : uint64 (n, 2)

    Notes
    -----
    Memory is at most 64 bytes a row, beside the hashes.

    Examples
    --------
    >>> counted_rows(np.array([[1, 2], [3, 4], [1, 2]], np.uint64)).counts.tolist()
    [2, 1]
    """
    size = 1 << max(3, (2 * len(hashes)).bit_length())
    slots = np.full(size, -1, np.int32 if len(hashes) < 2**31 else np.int64)
    rows = np.empty_like(hashes)
    counts = np.zeros(len(hashes), np.int64)
    n = _count(hashes, slots, rows, counts)
    return RowCounts(rows[:n], counts[:n], slots)


def contained_rows(
    child: RowCounts, parent: RowCounts, semantics: str = "set", *, max_missing: int | None = None
) -> int:
    """Count the rows of a table that occur in another.

    Returns
    -------
    int
        0 to the number of rows of the child; -1 where it stopped.

    Examples
    --------
    >>> ours = counted_rows(np.array([[1, 2], [1, 2]], np.uint64))
    >>> theirs = counted_rows(np.array([[1, 2], [3, 4]], np.uint64))
    >>> contained_rows(ours, theirs), contained_rows(ours, theirs, "bag")
    (2, 1)
    """
    require_semantics(semantics)
    n_rows = int(child.counts.sum())
    missing = _missing(
        child.rows,
        child.counts,
        parent.rows,
        parent.counts,
        parent.slots,
        semantics == "bag",
        n_rows if max_missing is None else max_missing,
    )
    return -1 if missing < 0 else n_rows - missing


def places_of(hashes: np.ndarray, rows: RowCounts) -> np.ndarray:
    """Return which distinct row each row is: int64 (n,), -1 where it is none of them.

    Parameters
    ----------
    hashes : uint64 (n, 2)

    Examples
    --------
    >>> some = counted_rows(np.array([[1, 2], [3, 4]], np.uint64))
    >>> places_of(np.array([[3, 4], [9, 9]], np.uint64), some).tolist()
    [1, -1]
    """
    positions = np.empty(len(hashes), np.int64)
    _find(hashes, rows.slots, rows.rows, positions)
    return positions


def require_semantics(semantics: str) -> str:
    """Refuse what is no name of semantics."""
    if semantics not in SEMANTICS:
        raise InputError(f"semantics must be one of {', '.join(SEMANTICS)}. Got {semantics!r}.")
    return semantics


@loop
def _count(hashes, slots, rows, counts):
    mask = np.uint64(len(slots) - 1)
    n = 0
    for i in range(len(hashes)):
        first, second = hashes[i, 0], hashes[i, 1]
        slot = first & mask
        while True:
            at = slots[slot]
            if at < 0:
                slots[slot] = n
                rows[n, 0], rows[n, 1] = first, second
                counts[n] = 1
                n += 1
                break
            if rows[at, 0] == first and rows[at, 1] == second:
                counts[at] += 1
                break
            slot = (slot + np.uint64(1)) & mask
    return n


@loop
def _find(hashes, slots, rows, positions):
    mask = np.uint64(len(slots) - 1)
    for i in range(len(hashes)):
        first, second = hashes[i, 0], hashes[i, 1]
        slot = first & mask
        while True:
            at = slots[slot]
            if at < 0 or (rows[at, 0] == first and rows[at, 1] == second):
                positions[i] = at
                break
            slot = (slot + np.uint64(1)) & mask


@loop
def _missing(child, times, rows, counts, slots, as_bag, max_missing):
    mask = np.uint64(len(slots) - 1)
    missing = 0
    for i in range(len(child)):
        slot = child[i, 0] & mask
        while True:
            at = slots[slot]
            if at < 0:
                missing += times[i]
                break
            if rows[at, 0] == child[i, 0] and rows[at, 1] == child[i, 1]:
                if as_bag and counts[at] < times[i]:
                    missing += times[i] - counts[at]
                break
            slot = (slot + np.uint64(1)) & mask
        if missing > max_missing:
            return -1
    return missing
