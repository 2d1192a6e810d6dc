"""A capability in one folder: the longest text of each column, as a part, a verb and a command."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, ClassVar

import pyarrow.parquet as pq

from pexeso.build.parts.base import PartEstimate, Written, worn_folders
from pexeso.faces.service.bases import REQUESTS, IndexRequest
from pexeso.faces.service.schema import Natural, option
from pexeso.faces.service.verbs import VERBS, add_verb
from pexeso.lake.catalog import batch_of
from pexeso.registry import register, unregister
from pexeso.store.files import read_document, write_document
from pexeso.store.integrity import Problem
from pexeso.store.manifest import META

PATH = f"{__name__}:LONGEST"


def write_longest(rows, number, folder):
    """Write the one folder: each column with its longest text."""
    return {"columns": len(rows)}, [
        write_document(folder / META, {"columns": len(rows), "rows": rows})
    ]


def entries_of(store):
    return store.manifest.parts.get(LONGEST.name, ())


def rows_of(store, entry):
    """Read the rows of a folder that hold."""
    gone = entry.facts.get("deleted", [])
    return [row for row in read_document(store.folder(entry) / META)["rows"] if row[0] not in gone]


class LongestTexts:
    name, choices, stages, folders_are = "longest_texts", ("longest",), ("longest",), "lists"

    def records(self, tables):
        for name, column in ((table.name, column) for table in tables for column in table.columns):
            texts = [text for text in column.cells.to_pylist() if text]
            value = max(texts, key=lambda text: (len(text), text), default="")
            about = {"position": column.position, "label": column.label, "value": value}
            yield batch_of([{"record": "longest", "table": name, **about}])

    def write(self, job):
        names = ["table", "label", "value"]
        files = job.record_files("longest")
        rows = [row for file in files for row in pq.read_table(file, columns=names).to_pylist()]
        return self._written(job, sorted([row[name] for name in names] for row in rows))

    def _written(self, job, rows):
        return Written(
            job.write_folders("longest", 1, partial(write_longest, rows), n_bytes=0) if rows else []
        )

    def delete(self, store, tables):
        names = [*tables.to_pylist()]
        return [
            replace(
                entry,
                facts={**entry.facts, "deleted": sorted({*entry.facts.get("deleted", []), *names})},
            )
            for entry in entries_of(store)
        ]

    def worn(self, store, options):
        return worn_folders(
            entries_of(store), [0.0] * len(entries_of(store)), options.partition_bytes
        )

    def rewrite(self, job, numbers):
        chosen = [entries_of(job.index)[number] for number in numbers]
        return self._written(
            job, sorted(row for entry in chosen for row in rows_of(job.index, entry))
        )

    def check(self, store, progress):
        return [
            Problem(entry.folder, "content", f"'{entry.folder}' has other rows than it says.")
            for entry in entries_of(store)
            if len(read_document(store.folder(entry) / META)["rows"]) != entry.facts["columns"]
        ]

    def info(self, store):
        return {"longest": [{"columns": len(rows_of(store, entry))} for entry in entries_of(store)]}

    def totals(self, folders):
        return {"longest_columns": sum(entry.facts["columns"] for entry in folders)}

    def estimate(self, sample):
        columns = sample.count("longest")
        return PartEstimate(
            {"longest_columns": columns}, n_bytes=columns, memory_bytes=1, seconds={"longest": 0.5}
        )


LONGEST = LongestTexts()


class LongestRequest(IndexRequest, frozen=True, kw_only=True):
    """Show the longest text of each column of an index.

    Example: pexeso longest lake.pexeso
    """

    verb: ClassVar[str] = "longest"

    min_length: Annotated[Natural, option("Only texts of at least this length.", metavar="N")] = 0


@dataclass(frozen=True)
class LongestResponse:
    rows: list

    def to_dict(self):
        return {"longest": self.rows}


def answer(service, request):
    rows = longest(service.store(request.index))
    return LongestResponse([row for row in rows if len(row[2]) >= request.min_length])


def lines(response):
    return (f"{table}:{column}  {text}" for table, column, text in response.rows)


def longest(store):
    return [row for entry in entries_of(store) for row in rows_of(store, entry)]


def add():
    """Register the part, the verb and, by its lines, the command."""
    register(PATH)
    add_verb(LongestRequest, answer, lines)


def remove():
    unregister(PATH)
    del VERBS[LongestRequest.verb], REQUESTS[LongestRequest.verb]
