"""Device memory of a search on CUDA: lists that its launches fill, and their counters.

The memory is allocated once and reused.
"""

from __future__ import annotations

import threading
from functools import cached_property

import numpy as np
import torch

from pexeso.engine.kernels.triton.lists import N_COUNTERS as _N_COUNTERS

N_COUNTERS: int = _N_COUNTERS.value

FIRST_ROOM = {
    "units": 1 << 18,
    "pairs": 1 << 18,
    "rows": 1 << 20,
    "matches": 1 << 18,
    "columns": 1 << 12,
}
"""Items that each list has room for at first."""

READ_AT_ONCE = 2048
"""Columns that are read together with the counters: nearly always all there are."""

_HEADER = 16
_N_MATCHES, _N_COLUMNS, _N_NOT_UNIT = 8, 10, 12


class Lists:
    """Lists that searches fill, one search after the other in the order of a stream.

    Parameters
    ----------
    room : dict of str to int
        Items of each list.
    """

    def __init__(self, room: dict[str, int], device: torch.device) -> None:
        self.room, self._device = dict(room), device
        self._scratch = torch.empty(0, dtype=torch.int32, device=device)

    @cached_property
    def units(self) -> tuple[torch.Tensor, ...]:
        """Three lists of (box, tile), int64."""
        return self._lists(3, "units", torch.int64)

    @cached_property
    def bits(self) -> tuple[torch.Tensor, ...]:
        """The query values of each unit's tile that are left, int32."""
        return self._lists(3, "units")

    @cached_property
    def walks(self) -> tuple[tuple[torch.Tensor, ...], ...]:
        """Two lists of query values and boxes, int32, of which levels fill one after the other."""
        return self._lists(2, "units"), self._lists(2, "units")

    @cached_property
    def pairs(self) -> tuple[torch.Tensor, ...]:
        """Query values and blocks, int32."""
        return self._lists(2, "pairs")

    @cached_property
    def grouped(self) -> torch.Tensor:
        """Query values of `pairs`, block by block, int32."""
        return self._lists(1, "pairs")[0]

    @cached_property
    def rows(self) -> tuple[torch.Tensor, ...]:
        """Query values and rows, int32."""
        return self._lists(2, "rows")

    @cached_property
    def matches(self) -> tuple[torch.Tensor, ...]:
        """Query values and complements of rows, int32."""
        return self._lists(2, "matches")

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
        """Take zeros back."""
        self._scratch = scratch

    def _lists(
        self, n: int, name: str, dtype: torch.dtype = torch.int32
    ) -> tuple[torch.Tensor, ...]:
        width = -(-self.room[name] // 16) * 16
        return tuple(torch.empty((n, width), dtype=dtype, device=self._device))


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
        self.work = self.state[:N_COUNTERS]
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
        """Return how many rows were listed in all."""
        return sum(slab[-1] for slab in self._lengths(counters))

    def _lengths(self, counters: list[int]) -> list[list[int]]:
        """Return the lengths of each slab's lists."""
        lengths, n = counters[_HEADER : self.n_counters : 2], self.n_lists
        return [lengths[slab * n : (slab + 1) * n] for slab in range(self.n_slabs)]


class Workspaces(threading.local):
    """The workspace of each thread, and the room that searches turned out to need."""

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
        """Let the memory go."""
        self._last = None
