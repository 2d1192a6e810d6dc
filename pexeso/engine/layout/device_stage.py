"""Copies of partitions to a device, through two buffers of page-locked memory."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from functools import partial

import numpy as np
import torch

from pexeso.engine.arrays import as_tensor
from pexeso.engine.layout.options import PartitionLayoutOptions
from pexeso.engine.layout.partition import Partition
from pexeso.runtime.threads import available_threads

STAGED_BYTES = 64 << 20
"""Of each of the two buffers on the host, which are held while a partition is copied."""

ALIGNED_BYTES = 128
"""Arrays begin at multiples of this. What lies between them is less than the headers of their
files, so that a partition takes no more than its files."""


class DeviceStage:
    """Copies partitions to a device, one at a time.

    While one buffer is copied to the device, the threads of torch fill the other one from the
    arrays. All of it goes through a stream of its own, beside searches.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        # Not what a search in another thread has set for the moment when a copy begins.
        self._n_threads = available_threads()
        self._lock = threading.Lock()
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def open(
        self,
        arrays: Mapping[str, np.ndarray],
        options: PartitionLayoutOptions,
        passing_bytes: int | None,
    ) -> Partition:
        """Copy a partition and check it on the device; it is there when this returns."""
        copy = partial(self._copied, passing_bytes=passing_bytes)
        with self._lock, self._beside_searches():
            partition = Partition.from_arrays(arrays, options, self._device, copy=copy)
        if self._stream is not None:
            # As soon as nobody holds the partition its memory may be filled again, and what was
            # asked of it last may still be at work.
            weakref.finalize(partition, self._wait_for_searches).atexit = False
        return partition

    @contextmanager
    def _beside_searches(self) -> Iterator[None]:
        """Take all threads for what fills buffers, and the stream of copies; wait for its end."""
        threads = torch.get_num_threads()
        torch.set_num_threads(self._n_threads)
        try:
            with nullcontext() if self._stream is None else torch.cuda.stream(self._stream):
                yield
        finally:
            torch.set_num_threads(threads)
            if self._stream is not None:
                # Nothing but this ever waits for copies: searches begin after it.
                self._stream.synchronize()

    def _wait_for_searches(self) -> None:
        """Let later copies wait for what searches have asked of the device until now."""
        with suppress(RuntimeError):  # of a device that failed nothing is asked any more
            self._stream.wait_stream(torch.cuda.current_stream(self._device))

    def _copied(
        self, arrays: Mapping[str, np.ndarray], passing_bytes: int | None
    ) -> dict[str, torch.Tensor]:
        """Copy arrays one behind the other into one piece of memory, and return views of it."""
        sources = {name: as_tensor(np.ascontiguousarray(array)) for name, array in arrays.items()}
        numbers = {name: source.reshape(-1).view(torch.uint8) for name, source in sources.items()}
        starts, end = {}, 0
        for name, source in numbers.items():
            starts[name] = end
            end += -(-len(source) // ALIGNED_BYTES) * ALIGNED_BYTES
        memory = self._memory(end, passing_bytes)
        self._fill(memory, end, [(starts[name], numbers[name]) for name in numbers])
        return {
            name: memory[starts[name] :][: source.nbytes].view(source.dtype).view(source.shape)
            for name, source in sources.items()
        }

    def _memory(self, n_bytes: int, passing_bytes: int | None) -> torch.Tensor:
        if passing_bytes is not None:
            return torch.empty(max(n_bytes, passing_bytes), dtype=torch.uint8, device=self._device)
        if self._stream is None:
            return torch.empty(n_bytes, dtype=torch.uint8, device=self._device)
        # Of other memory than those that pass, which must not be cut.
        searches = torch.cuda.default_stream(self._device)
        with torch.cuda.stream(searches):
            memory = torch.empty(n_bytes, dtype=torch.uint8, device=self._device)
        self._stream.wait_stream(searches)
        return memory

    def _fill(self, memory: torch.Tensor, end: int, placed: list[tuple[int, torch.Tensor]]) -> None:
        on_cuda = self._stream is not None
        buffers = [
            torch.empty(min(end, STAGED_BYTES), dtype=torch.uint8, pin_memory=on_cuda)
            for _ in range(2)
        ]
        copies = [torch.cuda.Event() if on_cuda else None for _ in buffers]
        for turn, begin in enumerate(range(0, end, STAGED_BYTES)):
            buffer, copy = buffers[turn % 2], copies[turn % 2]
            if copy is not None:
                copy.synchronize()  # the copy out of this buffer; at once where there was none
            piece = slice(begin, min(begin + STAGED_BYTES, end))
            for start, source in placed:
                first, last = max(piece.start, start), min(piece.stop, start + len(source))
                if first < last:
                    buffer[first - begin : last - begin].copy_(source[first - start : last - start])
            memory[piece].copy_(buffer[: piece.stop - begin], non_blocking=on_cuda)
            if copy is not None:
                copy.record()
