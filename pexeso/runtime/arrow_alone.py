"""Arrow without pandas, which it looks for, where a process does not need it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder


class _Refusal(MetaPathFinder):
    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname in self._names:
            raise ModuleNotFoundError(f"{fullname} is not looked for now", name=fullname)


@contextmanager
def without_packages(*names: str) -> Iterator[None]:
    """Let the import of packages that are not imported yet fail inside the block."""
    refusal = _Refusal(names)
    sys.meta_path.insert(0, refusal)
    try:
        yield
    finally:
        sys.meta_path.remove(refusal)


def use_arrow_alone() -> None:
    """Let Arrow do without pandas until something asks Arrow for a DataFrame.

    The first `pyarrow.array` of a process imports pandas, to recognise its objects; that takes a
    third of a second, more than a small search. Nothing may hand a pandas object to `pyarrow.array`
    before a DataFrame is asked for.
    """
    with without_packages("pandas"):
        import pyarrow as pa

        pa.array([""])
