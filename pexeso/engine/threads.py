"""Threads: when one is faster than many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext

import torch

from pexeso.runtime.threads import available_threads, given, is_alone

SMALL = 1 << 18
"""Numbers that one core works through before others would have come to help."""


if is_alone():
    torch.set_num_threads(1)


@contextmanager
def few_threads(n_numbers: int = 0) -> Iterator[None]:
    """Let torch use one thread for work on few numbers.

    A parallel step ends when its last thread has run. Where other programs use the same cores that
    thread may have to wait for its turn, several milliseconds for a step of microseconds; and when
    it has run it goes on to turn in a loop, waiting for the next step, on a core that others could
    use.

    Parameters
    ----------
    n_numbers : int
        More than `SMALL` change nothing.
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

    Parameters
    ----------
    chunk_size : int
        Of a piece, at least 1.
    device : torch.device
        Where the task's tensors are.
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
