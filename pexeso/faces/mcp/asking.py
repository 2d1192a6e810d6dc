"""What every tool call goes through: a turn, on one snapshot, with errors as sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, TextContent

from pexeso.errors import InputError, PexesoError
from pexeso.faces.mcp.budget import count_tokens, require_tokens, written
from pexeso.faces.mcp.folders import folder_of, readable_spec
from pexeso.faces.mcp.naming import named_by
from pexeso.faces.service.bases import RequestError
from pexeso.faces.service.by_verb.lake import split_lake_spec
from pexeso.faces.service.served import ServedIndex
from pexeso.faces.service.verbs import Service
from pexeso.runtime.formatting import visible

MAX_ERROR = 1000
"""Characters of an error."""

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


Tell = Callable[[int, int, str], None]
"""Called with how many steps are done, how many there are, and what is done next."""


@dataclass(frozen=True)
class Call:
    """A call of a tool: the snapshot it works on, and the folders of the desk."""

    index: str
    service: Service
    allow_read: Sequence[Path]
    allow_write: Path | None
    tell: Tell

    def lake_column(self, reference: str) -> str:
        """Return ``TABLE:#3`` for a column of the lake, as answers name it."""
        catalog = self.service.open(self.index).catalog
        table, rest = split_lake_spec(catalog, named_by(self.service, self.index, reference))
        return f"{table}{rest}"

    def query(
        self, column: str | None, values: Sequence[Any] | None, file: str | None
    ) -> dict[str, Any]:
        """Return the fields of a request that say what is searched with."""
        arguments = [argument for argument in (column, values, file) if argument is not None]
        if len(arguments) != 1:
            raise InputError(
                "Give one of column (TABLE:COLUMN of the lake), values (a list) and file "
                f"(FILE:COLUMN). Got {len(arguments)} of them."
            )
        if column is not None:
            return {"query": named_by(self.service, self.index, column), "from_lake": True}
        if values is not None:
            return {"query": tuple(values)}
        return {"query": readable_spec(str(file), self.allow_read)}


Work = Callable[[Call, int], dict[str, Any]]
"""Makes an answer, given the call and the tokens that the answer may have."""


@dataclass(frozen=True)
class Desk:
    """An index that agents ask, several at once."""

    served: ServedIndex
    allow_read: Sequence[Path] = ()
    allow_write: Path | None = None

    @classmethod
    def of(
        cls, index: str, *, allow_read: Sequence[str] = (), allow_write: str | None = None
    ) -> Desk:
        """Open an index, and look at the folders."""
        read = [folder_of(folder) for folder in allow_read]
        write = None if allow_write is None else folder_of(allow_write)
        return cls(ServedIndex.of(index), read, write)

    async def answer(
        self,
        context: Context[Any, Any],
        max_tokens: int,
        doing: str,
        work: Work,
        *,
        reload: bool = False,
    ) -> CallToolResult:
        """Return what a function answers, or a sentence or two of what went wrong."""
        await _report(context, 0, doing)
        async with anyio.create_task_group() as group:

            def tell(n_finished: int, total: int, message: str) -> None:
                if n_finished:  # else it is what was told above
                    with suppress(Exception):  # of a client that has gone
                        anyio.from_thread.run_sync(
                            group.start_soon, _report, context, n_finished / total, message
                        )

            work_on = partial(self._answer, max_tokens, tell, work, reload)
            result = await anyio.to_thread.run_sync(work_on, abandon_on_cancel=True)
        await _report(context, 1, "Done.")
        return result

    def _answer(self, max_tokens: int, tell: Tell, work: Work, reload: bool) -> CallToolResult:
        try:
            left = require_tokens(max_tokens) - count_tokens(max(_SNAPSHOT.values(), key=len)) - 5
            if reload:
                self.served.reload()
            with self.served.turn() as service:
                anyio.from_thread.check_cancelled()  # the client may have gone while this waited
                path, read, write = self.served.path, self.allow_read, self.allow_write
                answer = work(Call(path, service, read, write, tell), left)
                answer["snapshot"] = _SNAPSHOT[service.state(path)]
            text = written(answer)
        except Exception as error:
            return failed(sentence(error))
        return CallToolResult(
            content=[TextContent(type="text", text=text)], structured_content=answer
        )


async def _report(context: Context[Any, Any], share: float, message: str) -> None:
    """Tell a client how far its call is, where it asked for that and is still there."""
    with suppress(Exception):
        await context.report_progress(share, 1, message)


def failed(said: str) -> CallToolResult:
    """Return what a call is answered that failed."""
    text = TextContent(type="text", text=visible(said, MAX_ERROR))
    return CallToolResult(content=[text], is_error=True)


def sentence(error: Exception) -> str:
    """Return what an error says to an agent."""
    if isinstance(error, RequestError):
        message = error.written(str)
    elif isinstance(error, PexesoError):
        message = str(error)
    elif isinstance(error, MemoryError):
        message = "There is not enough memory for this: ask for less."
    else:
        message = (
            f"{type(error).__name__}: {' '.join(str(error).split()) or 'no message'}. This was not "
            "foreseen; try other arguments."
        )
    return message
