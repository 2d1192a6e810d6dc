"""One step ahead: the next item is made in a thread of its own while the caller works on this one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")

_END = object()


@contextmanager
def prefetched(items: Iterable[Item], *, threaded: bool = True) -> Iterator[Iterator[Item]]:
    """Go through items, each made while the caller works on the one before.

    Parameters
    ----------
    items : iterable
        No more than one is made ahead, and no two at a time. An error that making one raises reaches the caller where the item would have.
    threaded : bool
        False makes each item when it is asked for: a thread takes a tenth of a millisecond to start.

    Yields
    ------
    iterator
        When the block is left, however it is left, the thread has ended.
    """
    if not threaded:
        yield iter(items)
        return
    source = iter(items)
    with ThreadPoolExecutor(1, thread_name_prefix="pexeso-prefetch") as pool:
        yield _made_by(pool, source)


def _made_by(pool: ThreadPoolExecutor, source: Iterator[Item]) -> Iterator[Item]:
    waiting = pool.submit(next, source, _END)
    while (item := waiting.result()) is not _END:
        waiting = pool.submit(next, source, _END)
        yield item
        del item  # the caller may need its memory for the next one
