"""Loops compiled by numba.

The module defines how they are compiled, and when a process that runs exact-value searches loads
them.

Loading takes about half a second, which a command that searches once need not spend: arrays do the
same in a millisecond. So a process begins with arrays, and goes over to loops once it has spent on
arrays about what loading takes; then it has at worst spent twice what was needed.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import cache, partial
from hashlib import blake2b
from importlib import import_module
from numbers import Number
from pathlib import Path
from typing import Any

from pexeso.runtime.refusing import refusing

LOOSE = frozenset({"nnan", "ninf", "nsz", "arcp", "contract", "reassoc"})
"""Sums may be taken in any order and fused: for bounds that carry a tolerance, never for what
decides a match."""

WORTH_LOADING = 1 << 26
"""Entries of posting lists that arrays count in the time that loading takes."""

WORK_OF_A_SEARCH = 1 << 14
"""What a search costs by arrays however few entries it reads, in entries."""

_lock = threading.Lock()
_left = WORTH_LOADING


def loop(function: Callable[..., Any] | None = None, *, loose: bool = False) -> Callable[..., Any]:
    """Compile a function on its first call.

    Its decisions rest on whole numbers, or on float64 in strict IEEE 754 arithmetic.

    It runs without the interpreter lock, and what was compiled is kept for the next process
    wherever there is a place to write.

    Parameters
    ----------
    function : callable
        Of arrays and numbers only; without it a decorator is returned.
    """
    if function is None:
        return partial(loop, loose=loose)
    njit = _njit()

    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "fastmath": set(LOOSE) if loose else False,
    }
    try:
        dispatcher = njit(cache=True, **options)(function)
    except RuntimeError:
        # Neither the package's folder nor the user's can be written to: compile anew in every
        # process.
        return njit(**options)(function)
    if dispatcher is not function:  # as it is where numba is told to compile nothing
        # What was compiled holds the loops of other modules that it calls, their numbers and the
        # places of the fields of their views, and numba asks for a change of its own module alone.
        cache_file = dispatcher._cache._cache_file
        cache_file._source_stamp = _stamp_of(function)
        cache_file._load_index = partial(_read_index, cache_file._load_index)
    return dispatcher


def _read_index(load: Callable[[], dict[Any, str]]) -> dict[Any, str]:
    """Return the index of what was compiled; empty where it cannot be read, so that it is replaced.

    numba reads all of an index before it asks for a change. Its types are those of the code that
    wrote it: a view that was renamed or moved since is not found.
    """
    try:
        return load()
    except Exception:  # whatever a missing type or a file that was cut short makes pickle raise
        return {}


@cache
def _njit() -> Callable[..., Any]:
    """Import numba, as this process wants it."""
    if _tell is not None:
        # Modules that numba looks for when it is imported, and when it loads its first loop.
        with refusing("scipy", "cffi"):
            import_module("numba.core.typing.cffi_utils")
            import_module("numba.np.arraymath")
        _call_when_compiling(_tell)
    return import_module("numba").njit


def _call_when_compiling(tell: Callable[[], None]) -> None:
    from numba.core import event

    class Listener(event.Listener):
        has_told = False

        def on_start(self, event: Any) -> None:
            if not self.has_told:
                self.has_told = True
                tell()

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Listener())


_tell: Callable[[], None] | None = None


def own_numba(tell: Callable[[], None]) -> None:
    """Make numba quick to import, for a process that compiles none but the loops of this package.

    Numba goes without scipy's linear algebra and without cffi, which no loop here calls, and which
    take a seventh of a second to import. Where numba is imported already, nothing changes.
    """
    global _tell
    _tell = tell if "numba" not in sys.modules else None


_stamps: dict[str, str] = {}


def _stamp_of(function: Callable[..., Any]) -> str:
    """Return a digest of a function's module, and of the loops, views and numbers it imports."""
    names = function.__globals__
    path = names["__file__"]
    if path not in _stamps:
        # Modules have imported what they call before their first loop is made.
        others = {
            value.py_func.__globals__["__file__"]
            for value in names.values()
            if hasattr(value, "py_func") and value.py_func.__globals__ is not names
        }
        digest = blake2b(Path(path).read_bytes(), digest_size=16)
        for other in sorted(others & set(_stamps)):
            digest.update(_stamps[other].encode())
        for name, value in sorted(names.items()):
            if isinstance(value, Number):
                digest.update(f"{name} {value!r}".encode())
            elif isinstance(value, type) and issubclass(value, tuple):
                digest.update(f"{name} {getattr(value, '_fields', ())}".encode())
        _stamps[path] = digest.hexdigest()
    return _stamps[path]


def use_loops() -> None:
    """Enable compiled loops for all further searches.

    A process that will search a lot need not wait until the loops pay.
    """
    global _left
    _left = 0


def loops_are_loaded() -> bool:
    """Return whether searches use compiled loops by now."""
    return not _left


def loops_pay(entries: int) -> bool:
    """Return whether a search is to use compiled loops.

    A search without them is counted as work done by arrays.
    """
    global _left
    if not _left:
        return True
    with _lock:
        _left = max(0, _left - entries - WORK_OF_A_SEARCH)
        return _left == 0
