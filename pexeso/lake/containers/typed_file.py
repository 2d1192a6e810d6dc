"""The columns of a table file of the user's with the types of the file."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from pexeso.io.location import locate
from pexeso.lake.containers.reader import open_table
from pexeso.lake.containers.tables_inside import split_member
from pexeso.lake.readers.options import AS_FOUND, ReadingOptions


def typed_or_texts(
    path: str, texts: Sequence[pa.StringArray], *, options: ReadingOptions = AS_FOUND
) -> list[pa.StringArray] | list[pa.ChunkedArray]:
    """Return the columns of a file with its types.

    Parameters
    ----------
    path, options
        As `read_table` took them.
    texts : sequence of pyarrow.StringArray
        What it gave: returned as they are where the cells of the file are texts, as those of
        delimited text and JSON are, and where the file was replaced meanwhile.
    """
    file, member = split_member(locate(path))
    typed = open_table(file, member, shown=path, options=options).typed_columns()
    if typed is None or [len(column) for column in typed] != [len(column) for column in texts]:
        return list(texts)
    return typed
