"""Arrow without pandas, for processes that hold no DataFrame.

The first `pyarrow.array` of a process imports pandas, to recognise its objects; that takes a third
of a second, more than a small search.
"""

from __future__ import annotations

import sys

from pexeso.runtime.refusing import refusing


def use_arrow_alone() -> None:
    """Let Arrow go without pandas until something asks Arrow for a DataFrame.

    For a process in which nothing hands a pandas object to `pyarrow.array` before that. Where
    pandas is imported already, or Arrow looks for it in another way, nothing changes.
    """
    if "pandas" in sys.modules:
        return
    with refusing("pandas"):
        import pyarrow as pa

        pa.array([""])
