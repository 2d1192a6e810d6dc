"""Tool calls: a turn on one snapshot, with errors as sentences; files and columns they name."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, TextContent

from pexeso.errors import InputError, OutputError, PexesoError
from pexeso.faces.mcp.answers import count_tokens, page, require_tokens, written
from pexeso.faces.service.bases import Request, RequestError
from pexeso.faces.service.lake import lake_file, split_lake_spec
from pexeso.faces.service.verbs import ServedIndex, Service
from pexeso.results.query import split_spec
from pexeso.runtime.formatting import is_hidden, visible

ENDINGS = (".csv", ".parquet")
_NOT_IN_NAMES = re.compile(r"[/\\:\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_NUMBERED = [f"{port}{number}" for port in ("COM", "LPT") for number in "0123456789"]
# On another system, to which a folder may be synced or exported, such a file cannot be opened.
_DEVICES = frozenset(["AUX", "CON", "NUL", "PRN", *_NUMBERED])


def folder_of(path: str | os.PathLike[str]) -> Path:
    folder = Path(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise InputError(f"'{path}' is no folder: name one that exists.")
    return folder


def readable_spec(spec: str, folders: Sequence[Path]) -> str:
    """Return ``FILE`` or ``FILE:COLUMN`` with the file's whole path, where it may be read."""
    if not folders:
        raise InputError(
            "No files may be read: give values or a column of the lake, or start the server with "
            "--allow-read FOLDER."
        )
    for folder in folders:
        whole = os.path.join(folder, spec)  # an absolute path stays as it is
        if "\0" in whole:
            break
        file, column = split_spec(whole)
        path = Path(os.path.realpath(file))
        named = str(path) if column is None else f"{path}:{column}"
        # What reads it splits it again, and may mean nothing but this file.
        is_this = split_spec(named) == (str(path), column)
        if is_this and path.is_relative_to(folder) and os.path.lexists(path):
            return named
    raise InputError(
        f"There is no file {spec!r} in the folders that may be read: "
        f"{', '.join(str(folder) for folder in folders)}."
    )


def writable_file(name: str, folder: Path, *, overwrite: bool) -> Path:
    """Return the path of a file to write, in a folder and not below it."""
    if not name.lower().endswith(ENDINGS) or "\0" in name:
        raise InputError(f"A joined table is written as .csv or .parquet. Got {name!r}.")
    stem = name.split(".", 1)[0].rstrip().upper()
    if name.startswith(".") or _NOT_IN_NAMES.search(name) or stem in _DEVICES:
        raise InputError(
            f"Joined tables are written inside '{folder}' alone, under plain names such as "
            "joined.csv: without separators, colons, control characters and leading dots, and not "
            f"those of devices. Got {name!r}."
        )
    if os.path.realpath(folder) != str(folder) or not os.path.isdir(folder):
        raise OutputError(f"The folder '{folder}' no longer exists: ask the user to make it again.")
    path = folder / name
    exists = os.path.lexists(path)
    if exists and (os.path.islink(path) or not os.path.isfile(path)):
        raise OutputError(f"'{name}' is a link or a folder: choose another name.")
    if exists and not overwrite:
        raise OutputError(f"'{name}' exists already: choose another name, or set overwrite.")
    return path


# Maximum length of a name that is written out, in characters.
LONGEST = 200

_CODE = "~"


def reference(table: str, column: str) -> str:
    """Return how answers name a column: by a code where agents could not give a name back."""
    name = f"{table}:{column}"
    if (
        len(name) > LONGEST
        or name.startswith(_CODE)
        or (not name.isprintable() and any(map(is_hidden, name)))
    ):
        return _CODE + blake2b(name.encode(), digest_size=8).hexdigest()
    return name


def named_by(service: Service, index: str, name: str) -> str:
    """Return ``TABLE:COLUMN`` of a reference; what is no code is returned as it is."""
    if not name.startswith(_CODE):
        return name
    rows = service.open(index).catalog.columns(["table", "label"])
    for table, label in zip(rows["table"].to_pylist(), rows["label"].to_pylist(), strict=True):
        if reference(table, label) == name:
            return f"{table}:{label}"
    raise InputError(f"No column of the lake has the code {name!r}: take it from an answer.")


# Characters of an error.
MAX_ERROR = 1000

_SNAPSHOT = {
    "current": "current",
    "newer": (
        "The index was updated after this server opened it: this answer is of the older state. "
        "Call describe_lake with reload=true for the newer one."
    ),
    "gone": (
        "The index is no longer where it was: this answer is of the state that was opened. Ask the "
        "user to build it again, then call describe_lake with reload=true."
    ),
}

_ARGUMENTS = {
    "exclude_self": "exclude_own_table",
    "transform": "by_program",
    "values": "join_values",
}


def argument_name(field: str) -> str:
    """Return the argument by which an agent gives a field of a request."""
    return _ARGUMENTS.get(field, field)


# Called with how many steps are done, how many there are, and what is done next.
Progress = Callable[[int, int, str], None]

AnyRequest = TypeVar("AnyRequest", bound=Request)


@dataclass(frozen=True)
class Call:
    """A call of a tool: its snapshot, the folders of the desk, and the page to return."""

    index: str
    service: Service
    allow_read: Sequence[Path]
    allow_write: Path | None
    report: Progress
    max_tokens: int
    offset: int = 0
    limit: int = 1

    def lake_column(self, code: str) -> str:
        """Return ``TABLE:#3`` for a column of the lake, as answers name it."""
        catalog = self.service.open(self.index).catalog
        table, rest = split_lake_spec(catalog, named_by(self.service, self.index, code))
        return f"{table}{rest}"

    def request(self, kind: type[AnyRequest], given: dict[str, Any], **fields: Any) -> AnyRequest:
        """Return a request of the arguments that it has fields for, and of further fields."""
        names = {field: _ARGUMENTS.get(field, field) for field in kind.__struct_fields__}
        values = {field: given[name] for field, name in names.items() if name in given}
        if "query" in names:
            values |= self._query(given)
        if "lake_column" in given:
            values["lake_column"] = self.lake_column(given["lake_column"])
        return kind.of(**{**values, "index": self.index, **fields})

    def _query(self, given: dict[str, Any]) -> dict[str, Any]:
        column, values, file = given["column"], given["values"], given["file"]
        n_arguments = sum([argument is not None for argument in (column, values, file)])
        if n_arguments != 1:
            raise InputError(
                "Give one of column (TABLE:COLUMN of the lake), values (a list) and file "
                f"(FILE:COLUMN). Got {n_arguments} of them."
            )
        if column is not None:
            return {"query": named_by(self.service, self.index, column), "from_lake": True}
        if values is not None:
            return {"query": tuple(values)}
        return {"query": readable_spec(file, self.allow_read)}

    def table(self, table: str | None, file: str | None) -> tuple[str, dict[str, Any]]:
        """Return the file of a table, and the fields of requests that say how it is read."""
        if (table is None) == (file is None):
            raise InputError("Give one of table (of the lake) and file. Got both or none.")
        if table is not None:
            path, reading = lake_file(self.service, self.index, table)
            return path, reading.to_dict()
        return readable_spec(str(file), self.allow_read), {}

    def page(
        self, frame: dict[str, Any], name: str, entries: Sequence[Any], **options: Any
    ) -> dict[str, Any]:
        """Return the requested page of a list; see `pexeso.faces.mcp.answers.page`."""
        options |= {"offset": self.offset, "limit": self.limit, "max_tokens": self.max_tokens}
        return page(frame, name, entries, **options)


# Makes an answer, given the call and its arguments.
Work = Callable[[Call, dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class Desk:
    """An index that many agents query at the same time."""

    served: ServedIndex
    allow_read: Sequence[Path] = ()
    allow_write: Path | None = None

    @classmethod
    def of(
        cls, index: str, *, allow_read: Sequence[str] = (), allow_write: str | None = None
    ) -> Desk:
        read = [folder_of(folder) for folder in allow_read]
        write = None if allow_write is None else folder_of(allow_write)
        return cls(ServedIndex.of(index), read, write)

    async def answer(
        self, context: Context[Any, Any], doing: str, work: Work, given: dict[str, Any]
    ) -> CallToolResult:
        """Return what a function answers, or a sentence or two of what went wrong."""
        await _report(context, 0, doing)
        async with anyio.create_task_group() as group:

            def report(n_finished: int, total: int, message: str) -> None:
                if n_finished:  # else it is what was reported above
                    with suppress(Exception):  # of a client that has gone
                        anyio.from_thread.run_sync(
                            group.start_soon, _report, context, n_finished / total, message
                        )

            work_on = partial(self._answer, report, work, given)
            result = await anyio.to_thread.run_sync(work_on, abandon_on_cancel=True)
        await _report(context, 1, "Done.")
        return result

    def _answer(self, report: Progress, work: Work, given: dict[str, Any]) -> CallToolResult:
        try:
            tokens = require_tokens(given["max_tokens"]) - _SNAPSHOT_TOKENS
            if given.get("reload"):
                self.served.reload()
            with self.served.turn() as service:
                anyio.from_thread.check_cancelled()  # the client may have gone while this waited
                path, read, write = self.served.path, self.allow_read, self.allow_write
                where = {name: given[name] for name in ("offset", "limit") if name in given}
                answer = work(Call(path, service, read, write, report, tokens, **where), given)
                answer["snapshot"] = _SNAPSHOT[service.state(path)]
            text = written(answer)
        except Exception as error:
            return failed(sentence(error))
        return CallToolResult(
            content=[TextContent(type="text", text=text)], structured_content=answer
        )


_SNAPSHOT_TOKENS = count_tokens(max(_SNAPSHOT.values(), key=len)) + 5


async def _report(context: Context[Any, Any], share: float, message: str) -> None:
    with suppress(Exception):
        await context.report_progress(share, 1, message)


def failed(message: str) -> CallToolResult:
    text = TextContent(type="text", text=visible(message, MAX_ERROR))
    return CallToolResult(content=[text], is_error=True)


def sentence(error: Exception) -> str:
    if isinstance(error, RequestError):
        return error.written(argument_name)
    if isinstance(error, PexesoError):
        return str(error)
    if isinstance(error, MemoryError):
        return "There is not enough memory for this: ask for less."
    return (
        f"{type(error).__name__}: {' '.join(str(error).split()) or 'no message'}. This was not "
        "foreseen; try other arguments."
    )
