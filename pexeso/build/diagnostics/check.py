"""Check of a whole index: every byte against its checksum, then the contents.

The contents are checked for whether they can be searched.

Checksums find damage. They are no signature: an index that was written wrong, or made to do harm,
has right ones too. So the contents of each part are looked at as well, against everything that a
search takes for granted.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

from pexeso.registry import registered
from pexeso.runtime.progress import counted_bar, with_bar
from pexeso.store.integrity import Problem, check_store
from pexeso.store.io.location import Location, locate
from pexeso.store.opening import open_store_anywhere, require_openable

Progress = Callable[[int, int], None]


@with_bar(partial(counted_bar, "checking", unit="B", unit_scale=True))
def check_index(
    path: str | os.PathLike[str] | Location, progress: Progress | None = None
) -> list[Problem]:
    """Check every byte of an index against its checksum, then the contents of each part.

    The index is read twice. Contents are checked against what a search takes for granted.

    Parameters
    ----------
    path : path, URL or Place
        The index.
    progress : callable, optional
        Called with the bytes checked so far and those to check altogether.

    Returns
    -------
    list of Problem
        As `pexeso.store.integrity.check_store` gives them; then, where every byte is as it was
        written, those of kind ``content`` and ``version``. Where none is a failure, the index is
        whole.

    Raises
    ------
    IndexNotFoundError
        There is no index at the path.
    InputError
        The path is not UTF-8.
    """
    last_report = [0, 0]

    def report(part: int, total: int) -> None:
        last_report[:] = part, total
        if progress is not None:
            progress(part, 2 * total)

    location = locate(path)
    if isinstance(location, Location):
        from pexeso.store.remote.check import check_remote_store

        problems = check_remote_store(location, report)
    else:
        require_openable(location)
        problems = check_store(location, report)
    if any(problem.is_failure for problem in problems):
        return problems
    store, total = open_store_anywhere(location), last_report[1]
    part_problems, begun, whole = (
        [],
        0,
        max(
            1, sum(entry.n_bytes for entries in store.manifest.parts.values() for entry in entries)
        ),
    )

    def report_part(part: int, _: int) -> None:
        if progress is not None:
            progress(total + total * (begun + part) // whole, 2 * total)

    for index_part in registered():
        part_problems += index_part.check(store, report_part)
        begun += sum(entry.n_bytes for entry in store.manifest.parts.get(index_part.name, ()))
        report_part(0, whole)  # a part need not tell how far it is
    # What all models of an index rest on is a problem of each.
    return [*dict.fromkeys(part_problems), *problems]
