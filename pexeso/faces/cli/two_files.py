"""Commands for two files instead of an index and a file: the second is indexed meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar

import msgspec

from pexeso import __version__
from pexeso.errors import TableReadError
from pexeso.faces.cli.errors import Interrupted, command_again
from pexeso.faces.service.requests import ExplainRequest, JoinRequest
from pexeso.lake.containers.formats import format_of
from pexeso.results.query import split_spec

_Request = TypeVar("_Request", ExplainRequest, JoinRequest)


def names_two_files(request: ExplainRequest | JoinRequest) -> bool:
    """Return whether a request has a file, or the name of one, in the place of its index."""
    left = split_spec(request.index)[0]
    return request.lake_column is None and (os.path.isfile(left) or _names_missing_table(left))


def _names_missing_table(path: str) -> bool:
    return format_of(path) is not None and "://" not in path and not os.path.exists(path)


@contextmanager
def index_of_second(request: _Request, output: str | None = None) -> Iterator[_Request]:
    """Index the second of two files in a temporary folder, which `output` lets go on."""
    if not names_two_files(request):
        yield request
        return
    (left, _), (file, column) = split_spec(request.index), split_spec(request.query)
    for name in (left, file):
        if not os.path.isfile(name):
            raise TableReadError(
                f"There is no file '{name}': without an index, both tables must be files."
            )
    from pexeso.two_tables import index_of_table, resumable_folder

    is_key = request.read_key() is not None
    first = column.split(",")[0] if is_key and column is not None else column
    folder = None
    try:
        with ExitStack() as stack:
            if output is not None:
                purpose = [__version__, request.to_dict()]
                folder = stack.enter_context(resumable_folder(output, purpose, [left, file]))
            index, label = stack.enter_context(index_of_table(file, first, folder=folder))
            named = f"{os.path.basename(file)}:{column if is_key else label}"
            yield msgspec.structs.replace(
                request, index=index.path, query=request.index, lake_column=named
            )
    except KeyboardInterrupt as error:
        if folder is None:
            raise
        raise Interrupted(
            f"Interrupted: what is finished is kept in '{folder.parent}' for the same join. "
            f"Go on: {command_again()}"
        ) from error
