"""Lineage of joins that a request asked for."""

from __future__ import annotations

import os
from datetime import datetime
from typing import TYPE_CHECKING

from pexeso import __version__
from pexeso.joins.exports.openlineage import DataSet, JoinMade, append_events
from pexeso.lake.rows import table_path

if TYPE_CHECKING:
    from pexeso.faces.service.requests import JoinRequest
    from pexeso.faces.service.responses import JoinResponse

PRODUCER = f"pkg:pypi/pexeso@{__version__}"


def write_lineage(
    path: str,
    request: JoinRequest,
    response: JoinResponse,
    output: str,
    started: datetime,
    ended: datetime,
) -> None:
    """Append the events of a join to a file."""
    append_events(path, _made(request, response, output).events(started, ended))


def _made(request: JoinRequest, response: JoinResponse, output: str) -> JoinMade:
    from pexeso.store.opening import open_store_anywhere

    lake = str(open_store_anywhere(request.index).manifest.facts["lake"])
    query = _query(response.query.get("file"))
    lake_table = _of_lake(lake, response.match.table)
    joined, columns = response.joined, {}
    for name in joined.table.column_names:
        if name in joined.added:
            columns[name] = [(lake_table, source) for source in joined.added[name]]
        else:
            columns[name] = [(query, name)]
    return JoinMade(query, lake_table, DataSet.of(output), columns, PRODUCER)


def _of_lake(lake: str, table: str) -> DataSet:
    if not os.path.isabs(lake) and "://" not in lake:
        return DataSet.of(table, within=lake)
    path, member = table_path(lake, table)  # the lake itself, where it is one file
    return DataSet.of(f"{path}{member or ''}")


def _query(file: str | None) -> DataSet:
    # The path of standard input names another table in each run.
    if file is None:
        return DataSet.in_memory("values")
    return DataSet.in_memory("stdin") if file == "/dev/stdin" else DataSet.of(file)
