"""Arrow without pandas, for processes that hold no DataFrame.

The first `pyarrow.array` of a process imports pandas, to recognise its objects; that takes a third
of a second, more than a small search.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder


class _NoPandas(MetaPathFinder):
    """Refuses pandas."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is not looked for now", name=fullname)


def use_arrow_alone() -> None:
    """Let Arrow go without pandas until something asks Arrow for a DataFrame.

    For a process in which nothing hands a pandas object to `pyarrow.array` before that. Where
    pandas is imported already, or Arrow looks for it in another way, nothing changes.
    """
    if "pandas" in sys.modules:
        return
    refusal = _NoPandas()
    sys.meta_path.insert(0, refusal)
    try:
        import pyarrow as pa

        pa.array([""])
    finally:
        sys.meta_path.remove(refusal)
