"""Tensors: rows of numbers in CSR form, the inverted index, and when one thread is faster."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from pexeso.errors import IndexCorruptError
from pexeso.runtime.threads import available_threads, given, is_alone

SMALL = 1 << 18  # numbers that one core works through before others would have come to help


if is_alone():
    torch.set_num_threads(1)


@contextmanager
def few_threads(n_numbers: int = 0) -> Iterator[None]:
    """Let torch use one thread for work on few numbers.

    A parallel step ends when its last thread has run. Where other programs use the same cores that
    thread may have to wait for its turn, several milliseconds for a step of microseconds; and when
    it has run it goes on to turn in a loop, waiting for the next step, on a core that others could
    use.

    n_numbers: int, more than `SMALL` change nothing.
    """
    threads = torch.get_num_threads()
    if threads == 1 or n_numbers > SMALL:
        yield
        return
    torch.set_num_threads(1)
    given.threads = threads
    try:
        yield
    finally:
        given.threads = None
        torch.set_num_threads(threads)


def in_pieces(
    n: int, chunk_size: int, device: torch.device, task: Callable[[int, int], object]
) -> None:
    """Run a task for consecutive pieces of ``range(n)``.

    On the CPU as many pieces run at a time as torch has threads, each in one thread.

    Threads that share no step never wait for each other.

    chunk_size: int, of a piece, at least 1; device: torch.device, where the task's tensors are.
    """
    pieces = [(begin, min(begin + chunk_size, n)) for begin in range(0, n, chunk_size)]
    threads = min(available_threads(), len(pieces)) if device.type == "cpu" else 1
    # Threads that are new take over the number that holds when they start.
    with few_threads() if device.type == "cpu" else nullcontext():
        if threads <= 1:
            for piece in pieces:
                task(*piece)
            return
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda piece: task(*piece), pieces))


def as_tensor(array: np.ndarray, device: torch.device | str = "cpu") -> torch.Tensor:
    """Return a tensor over `array`, without a copy on the CPU.

    Index arrays are memory-mapped read-only; torch warns about such memory because it could be
    written through the tensor. The engine never writes to its inputs.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(np.asarray(array)).to(device)


def offsets_of(sizes: torch.Tensor) -> torch.Tensor:
    """Return the CSR offsets of rows of the given sizes: int64 (n + 1,).

    sizes: int64 (n,).
    """
    offsets = torch.zeros(len(sizes) + 1, dtype=torch.int64, device=sizes.device)
    torch.cumsum(sizes, 0, out=offsets[1:])
    return offsets


def expand_ranges(starts: torch.Tensor, sizes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """List the members of every range, range by range.

    starts, sizes: int64 (n,), range i holds ``starts[i], ..., starts[i] + sizes[i] - 1``. Returns
    owner: int64 (sizes.sum(),), the range each member belongs to; member: int64 (sizes.sum(),).
    """
    owner = torch.repeat_interleave(torch.arange(len(sizes), device=sizes.device), sizes)
    first = offsets_of(sizes)[:-1]
    member = torch.arange(len(owner), device=sizes.device) - first[owner] + starts[owner]
    return owner, member


def expand_ranges_in_chunks(
    starts: torch.Tensor, sizes: torch.Tensor, chunk: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Do as `expand_ranges`, at most `chunk` members at a time; a long range is cut."""
    offsets = offsets_of(sizes)
    total = int(offsets[-1])
    if 0 < total <= chunk:
        yield expand_ranges(starts, sizes)
        return
    for begin in range(0, total, chunk):
        position = torch.arange(begin, min(begin + chunk, total), device=sizes.device)
        owner = torch.searchsorted(offsets, position, right=True) - 1
        yield owner, position - offsets[owner] + starts[owner]


def run_lengths(sizes: torch.Tensor, limit: int) -> list[int]:
    """Split items into consecutive runs whose sizes sum to at most `limit` plus one item more.

    sizes: int64 (n,); limit: int, at least 1. Returns list of int: how many items each run has.
    """
    before = torch.cumsum(sizes, 0) - sizes
    _, lengths = torch.unique_consecutive(
        torch.div(before, limit, rounding_mode="floor"), return_counts=True
    )
    return lengths.tolist()


def any_in_rows(flags: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """Return for every CSR row whether any of its flags is set: bool (n,).

    flags: bool (offsets[-1],); offsets: int64 (n + 1,).
    """
    running = torch.zeros(len(flags) + 1, dtype=torch.int64, device=flags.device)
    torch.cumsum(flags, 0, dtype=torch.int64, out=running[1:])
    return running[offsets[1:]] > running[offsets[:-1]]


_ROWS_AT_ONCE = 1 << 20

_WAY_OUT = "'pexeso check' lists the damage; restore the index, or build it again."


@dataclass(frozen=True)
class Csr:
    """Rows of column numbers: row i is ``members[offsets[i]:offsets[i + 1]]``.

    offsets: int64 (n + 1,); members: int32 (offsets[-1],).
    """

    offsets: torch.Tensor
    members: torch.Tensor

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def sizes(self) -> torch.Tensor:
        return self._sizes(self.offsets[:-1], self.offsets[1:])

    def sizes_of(self, rows: torch.Tensor) -> torch.Tensor:
        """Sizes of some rows; does not read the others' offsets."""
        return self._sizes(self.offsets[rows], self.offsets[rows + 1])

    def require_sound(self, n_members: int) -> None:
        """Raise IndexCorruptError if a number leads out of the index.

        Every number is read. The check is for programs that do not check bounds themselves.

        Parameters
        ----------
        n_members : int
            Members must be less.

        Notes
        -----
        Beside what is there 32 MiB at most are held.
        """
        for begin in range(0, len(self), _ROWS_AT_ONCE):
            part = self.offsets[begin : begin + _ROWS_AT_ONCE + 1]
            self._sizes(part[:-1], part[1:])
        for part in torch.split(self.members, 4 * _ROWS_AT_ONCE) if len(self.members) else ():
            smallest, largest = (int(end) for end in part.aminmax())
            if smallest < 0 or largest >= n_members:
                raise IndexCorruptError(
                    "An inverted index in a partition has a member "
                    f"{smallest if smallest < 0 else largest}, where 0 to {n_members - 1} must be: "
                    f"{_WAY_OUT}"
                )

    def _sizes(self, first: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
        if bool(((first < 0) | (last < first) | (last > len(self.members))).any()):
            raise IndexCorruptError(
                f"The offsets of an inverted index in a partition lead out of it: {_WAY_OUT}"
            )
        return last - first


def csr_from_pairs(rows: torch.Tensor, members: torch.Tensor, n_rows: int) -> Csr:
    """Build a CSR of the distinct (row, member) pairs, members ascending within a row.

    rows, members: int64 (n,), not negative.
    """
    width = int(members.max()) + 1 if len(members) else 1
    keys = torch.unique(rows * width + members)
    kept_rows = torch.div(keys, width, rounding_mode="floor")
    sizes = torch.bincount(kept_rows, minlength=n_rows)
    return Csr(offsets_of(sizes), (keys - kept_rows * width).int())


def transpose(csr: Csr, n_columns: int) -> Csr:
    rows = torch.repeat_interleave(torch.arange(len(csr), device=csr.offsets.device), csr.sizes)
    return csr_from_pairs(csr.members.long(), rows, n_columns)
