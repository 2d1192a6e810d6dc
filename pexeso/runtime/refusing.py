"""Imports that are refused for a while."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder


class _Refusal(MetaPathFinder):
    """Refuses packages."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname in self._names:
            raise ModuleNotFoundError(f"{fullname} is not looked for now", name=fullname)


@contextmanager
def refusing(*names: str) -> Iterator[None]:
    """Let packages be missing for the length of a `with` block, for what only asks for them."""
    refusal = _Refusal(names)
    sys.meta_path.insert(0, refusal)
    try:
        yield
    finally:
        sys.meta_path.remove(refusal)
