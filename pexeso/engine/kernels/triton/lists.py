"""Shared code of the Triton programs of a search: shared lists, and the size of a launch.

The lists are filled by many programs. The size of a launch is its number of programs.

One launch is one step for all query values. A launch has a few programs for each multiprocessor,
which share the items of a list among them; the length of the list stands in device memory, so that
the host need not know it. Lists are filled by one atomic addition a tile; what does not fit is
counted and not written, and the host starts again with more room or gives up
(`pexeso.engine.kernels.triton.kernel`).

Numbers that address a lake-sized array are int64: 602 million rows of 50 entries are more than
int32 counts. Rows, blocks and query values themselves are int32. Query values are looked at in
tiles; one bit each of an int32 says which of them a box has not ruled out.
"""

from __future__ import annotations

import threading
from functools import cache

import numpy as np
import torch
import triton
import triton.language as tl

# Places in `work`: what `pexeso.engine.stats.SearchStats` counts.
BOXES_TESTED, ROWS_TESTED, PAIRS_LEFT, ACCEPTED, PRODUCTS, BAND, N_COUNTERS = (
    tl.constexpr(i) for i in range(7)
)


@triton.jit
def slots(counter, keep):
    """Take places in a list for what is kept of a tile, int64; those of the rest mean nothing."""
    count = tl.sum(keep.to(tl.int32), 0)
    base = tl.atomic_add(counter, count.to(tl.int64), mask=count > 0, sem="relaxed")
    return base + tl.cumsum(keep.to(tl.int32), 0) - 1


@triton.jit
def append(firsts, seconds, counter, capacity, first, second, keep):
    """Append what is kept of a tile of pairs, all of one dimension."""
    slot = slots(counter, keep)
    fits = keep & (slot < capacity)
    tl.store(firsts + slot, first, mask=fits)
    tl.store(seconds + slot, second, mask=fits)


@triton.jit
def length_of(counter, capacity):
    """Return how many items of a list were written, int32."""
    return tl.minimum(tl.load(counter), capacity).to(tl.int32)


# Whether Triton's interpreter runs the programs (``TRITON_INTERPRET=1`` when triton was imported):
# on any device, slowly.
INTERPRETED = not isinstance(slots, triton.JITFunction)

_PROGRAMS = 8
_INTERPRETED_PROGRAMS = 2


@cache
def n_programs(device: torch.device, a_multiprocessor: int = _PROGRAMS) -> int:
    if INTERPRETED:
        return _INTERPRETED_PROGRAMS
    return a_multiprocessor * torch.cuda.get_device_properties(device).multi_processor_count


def counting_grid(device: torch.device, n_programs_each: int, n_shares: int) -> tuple[int, int]:
    """Return the two axes of a launch that counts columns (`counting`).

    n_programs_each: int, programs for each multiprocessor, that share the entries; n_shares: int,
    programs that share the columns of an entry.
    """
    return n_programs(device, n_programs_each), 2 if INTERPRETED else n_shares


# Items that each list has room for at first.
FIRST_ROOM = {
    "units": 1 << 18,
    "pairs": 1 << 18,
    "rows": 1 << 20,
    "matches": 1 << 18,
    "columns": 1 << 12,
}

READ_AT_ONCE = 2048  # columns that are read together with the counters: nearly always all there are

_HEADER = 16
_N_MATCHES, _N_COLUMNS, _N_NOT_UNIT = 8, 10, 12


_LISTS = {
    "units": (3, "units", torch.int64),
    "bits": (3, "units", torch.int32),
    "walks": (4, "units", torch.int32),
    "pairs": (2, "pairs", torch.int32),
    "grouped": (1, "pairs", torch.int32),
    "rows": (2, "rows", torch.int32),
    "matches": (2, "matches", torch.int32),
}


class Lists:
    """Lists that searches fill, one search after the other in the order of a stream.

    Each is made on its first use.

    Attributes
    ----------
    room : dict of str to int
        Items of each list.
    units, bits : 3 of int64, 3 of int32
        (Box, tile), and the query values of each unit's tile that are left.
    walks : 4 of int32
        Query values and boxes, twice, of which levels fill one after the other.
    pairs, grouped : 2 of int32, 1 of int32
        Query values and blocks, and the query values block by block.
    rows, matches : 2 of int32 each
        Query values and rows, and query values and complements of rows.
    """

    def __init__(self, room: dict[str, int], device: torch.device) -> None:
        self.room, self._device = dict(room), device
        self._scratch = torch.empty(0, dtype=torch.int32, device=device)

    def __getattr__(self, name: str) -> tuple[torch.Tensor, ...]:
        if name not in _LISTS:
            raise AttributeError(name)
        n, room, dtype = _LISTS[name]
        width = -(-self.room[room] // 16) * 16
        tensors = tuple(torch.empty((n, width), dtype=dtype, device=self._device))
        self.__dict__[name] = tensors
        return tensors

    def take_zeros(self, n: int) -> torch.Tensor:
        """Hand out zeros, int32, n or more, to whoever gives them back as zeros.

        Where that is interrupted they are not given back, and others are made.
        """
        scratch, self._scratch = self._scratch, self._scratch[:0]
        if len(scratch) < n:
            size = 1 << (n - 1).bit_length()
            scratch = torch.zeros(size, dtype=torch.int32, device=self._device)
        return scratch

    def give_back(self, scratch: torch.Tensor) -> None:
        self._scratch = scratch


class Workspace:
    """The lists of a search, and its counters.

    Every counter and list begins at a multiple of 16 bytes, for which Triton compiles once.

    Parameters
    ----------
    n_levels : int
        Of boxes, at most.
    n_slabs : int
        Runs of launches, each with counters of its own.

    Attributes
    ----------
    state : int64
        The counters, and behind them the columns that were found: what the host reads at the end.
    lengths : list (n_slabs) of list (n_levels + 2) of int64 (1,)
        Length of the units of each level, of the pairs and of the rows.
    """

    def __init__(self, lists: Lists, n_levels: int, n_slabs: int, device: torch.device) -> None:
        self.lists, self.n_levels, self.n_slabs, self._device = lists, n_levels, n_slabs, device
        self.room = lists.room
        self.n_lists = n_levels + 2
        self.n_counters = _HEADER + 2 * n_slabs * self.n_lists
        self.state = torch.zeros(
            self.n_counters + 2 * max(READ_AT_ONCE, self.room["columns"]),
            dtype=torch.int64,
            device=device,
        )
        self._read = torch.empty(
            self.n_counters + 2 * READ_AT_ONCE, dtype=torch.int64, pin_memory=device.type == "cuda"
        )
        self._host_state: np.ndarray = self._read.numpy()
        self.counters = self.state[: self.n_counters]
        self.work = self.state[: N_COUNTERS.value]
        self.n_matches, self.n_columns, self.n_not_unit = (
            self.state[position : position + 1]
            for position in (_N_MATCHES, _N_COLUMNS, _N_NOT_UNIT)
        )
        self.columns = self.state[self.n_counters :]
        positions = range(_HEADER, self.n_counters, 2)
        single = [self.state[position : position + 1] for position in positions]
        self.lengths = [
            single[slab * self.n_lists : (slab + 1) * self.n_lists] for slab in range(n_slabs)
        ]

    def beside(self) -> Workspace:
        """Return a workspace with counters of its own over the same lists.

        Several searches can then be launched one after the other, and read together.
        """
        return Workspace(self.lists, self.n_levels, self.n_slabs, self._device)

    def tell(self) -> None:
        """Send the counters and the first columns that were found to the host."""
        self._read.copy_(self.state[: len(self._read)], non_blocking=True)

    def read_back(self) -> tuple[list[int], np.ndarray]:
        """Wait for the device, and return what `tell` sent: counters, and columns with counts."""
        if self._device.type == "cuda":
            torch.cuda.current_stream(self._device).synchronize()
        return self._host_state[: self.n_counters].tolist(), self._host_state[self.n_counters :]

    def n_wrong(self, counters: list[int]) -> int:
        """Return how many query values have no unit length, from `counters` as read back."""
        return counters[_N_NOT_UNIT]

    def needed(self, counters: list[int]) -> dict[str, int]:
        """Return how long each list would have to be, from `counters` as read back."""
        slabs = self._lengths(counters)
        return {
            "units": max(max(slab[:-2]) for slab in slabs),
            "pairs": max(slab[-2] for slab in slabs),
            "rows": max(slab[-1] for slab in slabs),
            "matches": counters[_N_MATCHES],
            "columns": counters[_N_COLUMNS],
        }

    def n_rows(self, counters: list[int]) -> int:
        return sum(slab[-1] for slab in self._lengths(counters))

    def _lengths(self, counters: list[int]) -> list[list[int]]:
        lengths, n = counters[_HEADER : self.n_counters : 2], self.n_lists
        return [lengths[slab * n : (slab + 1) * n] for slab in range(self.n_slabs)]


class Workspaces(threading.local):
    def __init__(self) -> None:
        self.room = dict(FIRST_ROOM)
        self._last: Workspace | None = None

    def take(
        self, limits: dict[str, int], n_levels: int, n_slabs: int, device: torch.device
    ) -> Workspace:
        """Return a workspace; the last one again where it fits."""
        room = {name: min(size, limits[name]) for name, size in self.room.items()}
        last, self._last = self._last, None
        if (
            last is None
            or (last.room, last.state.device) != (room, device)
            or last.n_levels < n_levels
            or last.n_slabs < n_slabs
        ):
            del last
            last = Workspace(Lists(room, device), n_levels, n_slabs, device)
        self._last = last
        return last

    def forget(self) -> None:
        self._last = None
