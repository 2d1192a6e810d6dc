"""Events of joins that were made, as OpenLineage takes them: one JSON object a line.

A join is a run with a START and a COMPLETE event. Inputs are the table that was joined and the one
of the lake, the output is the file that was written, with its columns (facet `schema`) and the
columns that each comes from (facet `columnLineage`). Data sets are named as the naming rules of
OpenLineage say: files by ``file`` and their path, objects by their bucket and their key, and what
was piped in by ``inmemory://``.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from io import FileIO
from pathlib import Path
from typing import Any

from pexeso.errors import OutputError, failing_as

EVENT_SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
_FACETS = "https://openlineage.io/spec/facets"
SCHEMA_FACET = f"{_FACETS}/1-2-0/SchemaDatasetFacet.json#/$defs/SchemaDatasetFacet"
LINEAGE_FACET = f"{_FACETS}/1-2-0/ColumnLineageDatasetFacet.json#/$defs/ColumnLineageDatasetFacet"

JOB_NAMESPACE, JOB = "pexeso", "join"

_OBJECT_STORES = ("s3", "gs", "abfss", "wasbs")
# What OpenLineage calls the store, so that all its clients name an object alike.
_SCHEMES = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss", "wasb": "wasbs"}


@dataclass(frozen=True)
class DataSet:
    """A file or a table, as OpenLineage names it.

    Examples
    --------
    >>> DataSet.of("s3://lake/geo/cities.csv")
    DataSet(namespace='s3://lake', name='geo/cities.csv')
    >>> DataSet.of("hdfs://name:8020/lake/cities.csv")
    DataSet(namespace='hdfs://name:8020', name='/lake/cities.csv')
    >>> DataSet.of("/data/cities.csv")
    DataSet(namespace='file', name='/data/cities.csv')
    >>> DataSet.of("cities", within="sales")
    DataSet(namespace='sales', name='cities')
    """

    namespace: str
    name: str

    @classmethod
    def of(cls, place: str, *, within: str | None = None) -> DataSet:
        if within is not None:
            if "://" not in within and not os.path.isabs(within):
                return cls(within, place)
            place = f"{within.rstrip('/')}/{place}"
        scheme, separator, rest = place.partition("://")
        if not separator:
            return cls("file", os.path.abspath(place))
        scheme = _SCHEMES.get(scheme, scheme)
        host, slash, path = rest.partition("/")
        if scheme == "file" and not host:
            return cls("file", rest)
        return cls(f"{scheme}://{host}", path if scheme in _OBJECT_STORES else slash + path)

    @classmethod
    def in_memory(cls, name: str) -> DataSet:
        return cls("inmemory://", name)

    def to_dict(self) -> dict[str, Any]:
        return {"namespace": self.namespace, "name": self.name}


@dataclass(frozen=True)
class JoinMade:
    query: DataSet
    lake: DataSet
    output: DataSet
    columns: Mapping[str, Sequence[tuple[DataSet, str]]]
    producer: str

    def events(
        self, started: datetime, ended: datetime, run_id: uuid.UUID | None = None
    ) -> list[dict[str, Any]]:
        run = str(uuid.uuid4() if run_id is None else run_id)
        output = {**self.output.to_dict(), "facets": self._facets()}
        return [
            {
                "eventType": kind,
                "eventTime": time.isoformat(timespec="milliseconds"),
                "run": {"runId": run},
                "job": {"namespace": JOB_NAMESPACE, "name": JOB},
                "inputs": [self.query.to_dict(), self.lake.to_dict()],
                "outputs": outputs,
                "producer": self.producer,
                "schemaURL": EVENT_SCHEMA,
            }
            for kind, time, outputs in (("START", started, []), ("COMPLETE", ended, [output]))
        ]

    def _facets(self) -> dict[str, Any]:
        lineage = {
            name: {
                "inputFields": [{**dataset.to_dict(), "field": field} for dataset, field in sources]
            }
            for name, sources in self.columns.items()
            if sources
        }
        return {
            "schema": self._facet(SCHEMA_FACET, [{"name": name} for name in self.columns]),
            "columnLineage": self._facet(LINEAGE_FACET, lineage),
        }

    def _facet(self, schema: str, fields: Any) -> dict[str, Any]:
        return {"_producer": self.producer, "_schemaURL": schema, "fields": fields}


def append_events(path: str | os.PathLike[str], events: Iterable[Mapping[str, Any]]) -> None:
    """Add events to a file, one a line, in one write; the file is made if it is absent."""
    text = "".join(f"{json.dumps(event, ensure_ascii=False)}\n" for event in events)
    what = f"'{path}' cannot be written"
    with failing_as(OutputError, what), Path(path).open("ab", buffering=0) as stream:
        _append(stream, text.encode("utf-8"))


def _append(stream: FileIO, data: bytes) -> None:
    end = os.fstat(stream.fileno()).st_size
    written = 0
    try:
        while written < len(data):
            written += stream.write(data[written:])
    except OSError:
        if os.fstat(stream.fileno()).st_size == end + written:  # nobody has written behind it
            with suppress(OSError):  # what is no regular file keeps it
                stream.truncate(end)
        raise
