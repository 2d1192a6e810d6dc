"""The tools: what an agent can ask an index, with the options that requests declare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult
from pydantic import Field

from pexeso.errors import InputError
from pexeso.faces.mcp import answers, presentation
from pexeso.faces.mcp.answers import DEFAULT_TOKENS, MAX_TOKENS, MIN_TOKENS
from pexeso.faces.mcp.tool_call import Call, Desk, argument_name, readable_spec, writable_file
from pexeso.faces.service.bases import Request, RequestError
from pexeso.faces.service.graph import GraphRequest
from pexeso.faces.service.judging import JudgeRequest
from pexeso.faces.service.lake import BrowseRequest
from pexeso.faces.service.redundancy import RedundancyRequest
from pexeso.faces.service.requests import (
    ExplainRequest,
    InfoRequest,
    JoinRequest,
    JoinSqlRequest,
    KeysRequest,
    SearchRequest,
    VerifyRequest,
)
from pexeso.faces.service.schema import (
    alternatives,
    bare,
    bounds_of,
    defaults_of,
    facts_of,
    help_text,
    hints_of,
)
from pexeso.joins.options import AGGREGATIONS
from pexeso.lake.judgements import UNSURE

# Share of values from which on a column is found, where an agent names none.
MIN_JOINABILITY = 0.05

# Entries of one page, at most; fewer fit.
MAX_ENTRIES = 10_000

# Where the text for people would mislead an agent.
_HELP = {
    "min_joinability": f"Minimum share of your values that match; null: {MIN_JOINABILITY}.",
    "transform": "Join by a learned rule, for candidates of method transform.",
    "aggregate": "Keep each row one where several rows of the lake match: how to combine them.",
}

Arguments = dict[str, Parameter]


def _argument(
    name: str, kind: Any, text: str, default: Any = Parameter.empty, **facts: Any
) -> Arguments:
    hint = Annotated[kind, Field(description=text, **facts)]
    return {name: Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)}


def _options(kind: type[Request], *fields: str, **defaults: Any) -> Arguments:
    """Return arguments for fields of a request, with the types and texts that it declares."""
    arguments: Arguments = {}
    for field in fields:
        hint, default = hints_of(kind)[field], defaults.get(field, defaults_of(kind)[field])
        text, facts = help_text(kind, field, argument_name), facts_of(hint)
        if default is None and facts["default"]:
            text = f"{text} null: {facts['default']}."
        # The ranges are shown; the request holds them, and its error is a sentence.
        arguments |= _argument(
            argument_name(field),
            Literal[AGGREGATIONS] | None if field == "aggregate" else _plain_type(hint),
            _HELP.get(field, text),
            default,
            json_schema_extra=bounds_of(hint),
        )
    return arguments


def _plain_type(hint: Any) -> Any:
    kind, *others = map(bare, alternatives(hint))
    return kind | None if others else kind


def _pages(noun: str, limit: int) -> Arguments:
    offset = "First entry, from 0: next_offset of the page before."
    return {
        **_argument("offset", int, offset, 0, ge=0, le=10**9),
        **_argument("limit", int, f"Maximum number of {noun}.", limit, ge=1, le=MAX_ENTRIES),
        **TOKENS,
    }


QUERY = {
    **_argument(
        "column",
        str | None,
        "Search with this column of the lake: TABLE:COLUMN as answers name it.",
        None,
    ),
    **_argument(
        "values",
        list[str | int | float | bool | None] | None,  # an id of 17 digits is no float
        "Search with these values, one a row; null is an empty cell.",
        None,
    ),
    **_argument(
        "file",
        str | None,
        "Search with a column of a file, FILE:COLUMN, in a folder of --allow-read.",
        None,
    ),
}
LAKE_COLUMN = _argument(
    "lake_column", str, "The lake_column of a candidate of find_joins, exactly as it is."
)
TOKENS = _argument(
    "max_tokens",
    int,
    f"Maximum length of the answer in tokens, {MIN_TOKENS} to {MAX_TOKENS}; lists are cut to it.",
    DEFAULT_TOKENS,
)
JOIN = _options(
    JoinRequest,
    *("how", "values", "aggregate", "transform", "many_to_many", "many_to_one", "max_distance"),
)


@dataclass(frozen=True)
class Tool:
    """A tool: what it does with a call, the type of its answer, and its arguments."""

    work: Callable[[Call, dict[str, Any]], dict[str, Any]]
    answer: type[answers.Answer]
    doing: str
    arguments: Arguments

    def at(self, desk: Desk) -> Callable[..., Any]:
        defaults = {
            name: argument.default
            for name, argument in self.arguments.items()
            if argument.default is not Parameter.empty
        }

        async def call_tool(context: Context[Any, Any], **given: Any) -> CallToolResult:
            return await desk.answer(context, self.doing, self.work, {**defaults, **given})

        context = Parameter("context", Parameter.POSITIONAL_OR_KEYWORD, annotation=Context)
        call_tool.__signature__ = Signature(  # type: ignore[attr-defined]
            [context, *self.arguments.values()],
            return_annotation=Annotated[CallToolResult, self.answer],
        )
        call_tool.__annotations__ = {"context": Context}
        call_tool.__name__ = self.work.__name__
        call_tool.__doc__ = " ".join(str(self.work.__doc__).split())
        return call_tool


# The tools, in the order in which an agent meets them; those that write are offered to some alone.
TOOLS: dict[str, Tool] = {}
WRITING = ("write_join", "judge_join")


def _tool(answer: type[answers.Answer], doing: str, *groups: Arguments) -> Callable[..., Any]:
    """Return a decorator that makes a function a tool; its docstring is the description."""

    def add(work: Callable[..., Any]) -> Callable[..., Any]:
        arguments = {name: argument for group in groups for name, argument in group.items()}
        TOOLS[work.__name__] = Tool(work, answer, doing, arguments)
        return work

    return add


@_tool(
    answers.Candidates,
    "Searching the lake.",
    QUERY,
    _options(SearchRequest, "method", "max_distance", "min_joinability"),
    _options(SearchRequest, "exclude_self", "fold_copies", exclude_self=True),
    _pages("candidates", 10),
)
def find_joins(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    """Find the columns of the lake that a column can be joined with, best first.

    Call this first. Give exactly one of column, values and file. Start with the method semantic;
    others may need parts that the index does not have, which the error then says. Take the first
    candidate unless its examples are wrong; `brings` says which columns a join with it adds, and
    `copies` are other columns with nearly the same values. Then call explain_match to be sure, and
    preview_join or join_sql with the candidate's lake_column and the same query.
    """
    more: dict[str, Any] = {"k": "all"}
    if given["min_joinability"] is None and given["method"] in ("semantic", "all", "containment"):
        more["min_joinability"] = MIN_JOINABILITY
    result = call.service.run(call.request(SearchRequest, given, **more)).results[0]
    frame = presentation.candidates_frame(result, given["column"], given["method"])
    present, keep = presentation.candidate, ("lake_column",)
    return call.page(frame, "candidates", result.matches, present=present, keep=keep)


@_tool(
    answers.Why,
    "Comparing the columns.",
    LAKE_COLUMN,
    QUERY,
    _argument(
        "what",
        Literal["pairs", "unmatched"],
        "List the pairs that match, or your values without a match.",
        "pairs",
    ),
    _options(ExplainRequest, "max_distance"),
    _pages("entries", 50),
)
def explain_match(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    """Explain why a query column and one column of the lake match, or not: pair by pair.

    Give the same query as to find_joins, and the lake_column of a candidate. A right match has
    pairs that mean the same thing; if they do not, take the next candidate.
    """
    explanation = call.service.run(call.request(ExplainRequest, given))
    frame, entries = presentation.why(explanation, given["what"])
    return call.page(frame, "entries", entries)


@_tool(answers.Preview, "Joining the tables.", LAKE_COLUMN, QUERY, JOIN, _pages("rows", 10))
def preview_join(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    """Make a join and show its first rows, its warnings and its fan-out; nothing is written.

    Give the same query as to find_joins, and the lake_column of a candidate. With column or
    file your whole table is joined; with values a table of one column.
    """
    return presentation.preview(call, _joined(call, given), given["lake_column"])


def _joined(call: Call, given: dict[str, Any]) -> Any:
    if given["by_program"]:
        for name, usual in (("max_distance", None), ("join_values", "nearest")):
            if given[name] != usual:
                raise RequestError(f"A join by a program has no use for {name}: leave it out.")
    return call.service.run(call.request(JoinRequest, given))


@_tool(
    answers.Sql,
    "Writing the statement.",
    LAKE_COLUMN,
    QUERY,
    _options(JoinSqlRequest, "how", "values", "max_distance"),
    TOKENS,
)
def join_sql(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    """Write the join as one statement of SQL, with statements of DuckDB that read both tables.

    Give the same query as to find_joins, and the lake_column of a candidate. The statement
    lists the pairs of texts that differ; where they are too many, `sql` is null: use
    max_tokens, or write_join where it is offered.
    """
    sql_join = call.service.run(call.request(JoinSqlRequest, given))
    return presentation.sql(call, sql_join, given["lake_column"])


@_tool(
    answers.Lake,
    "Reading the catalog.",
    _options(BrowseRequest, "what", "text", "table"),
    _argument("reload", bool, "First switch to the newest state of the index.", False),
    _pages("entries", 50),
)
def describe_lake(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    """List what the lake holds: its tables, or columns, or what was left out and why.

    Not needed before find_joins when you have values to search with. Use it to learn names:
    filter by text rather than reading every page.
    """
    info = call.service.run(InfoRequest.of(index=call.index))
    listing = call.service.run(call.request(BrowseRequest, given))
    return call.page(
        presentation.lake_frame(info, listing, given["text"]),
        "entries",
        listing.items,
        total=listing.total,
        present=presentation.lake_entry,
        keep=("lake_column",),
    )


@_tool(
    answers.Program,
    "Learning from both columns.",
    LAKE_COLUMN,
    QUERY,
    _options(JoinRequest, "many_to_one"),
    _pages("pairs", 20),
)
def learn_transformation(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    """Learn a rule that rewrites one column in the form of the other, in words, SQL and Python.

    For keys that are written in different forms, such as names and e-mail addresses, where
    find_joins found few similar values. To join by the rule, call preview_join with by_program.
    """
    request = call.request(JoinRequest, given, transform=True, aggregate="first")
    learned = call.service.run(request).transformed
    return presentation.program(call, learned, given["lake_column"])


@_tool(
    answers.Keys,
    "Looking for keys.",
    _argument("table", str | None, "A table of the lake.", None),
    _argument("file", str | None, "Or a file in a folder of --allow-read.", None),
    _argument(
        "key", list[str] | None, "Two columns or more; null: the first key that is proposed.", None
    ),
    _pages("candidates", 10),
)
def find_composite_joins(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    """Propose keys of a table, and find the tables that join by a key of several columns.

    For rows that only several columns identify, such as country and year. The search needs
    the part "composite" of the index; keys are proposed without it too.
    """
    table, file = given["table"], given["file"]
    read = path, reading = call.table(table, file)
    keys = call.service.run(KeysRequest.of(table=path, **reading)).to_dict()
    return presentation.keys(call, read, table or str(file), keys, given["key"])


@_tool(
    answers.Graph,
    "Comparing all columns.",
    _argument("table", str | None, "Only the joins of this table of the lake.", None),
    _options(GraphRequest, "method", "min_joinability", "max_distance"),
    _pages("edges", 20),
)
def join_graph(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    """List the pairs of columns of different tables of the lake that join, strongest first.

    For how tables of the lake hang together. All columns are compared, which takes a while for a
    large lake: for one column call find_joins.
    """
    table, index = given["table"], call.service.open(call.index)
    if table is not None:
        table = index.catalog.known(table, index.lake)
    return presentation.graph(call, call.service.run(call.request(GraphRequest, given)), table)


@_tool(
    answers.Verified,
    "Verifying the joins.",
    _argument("file", str, "A TOML file of declared joins, in a folder that may be read."),
    _pages("joins", 20),
)
def verify_joins(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    """Say which declared joins still hold, and what broke those that do not.

    The user declares them by `pexeso verify`; their tables lie beside the file.
    """
    if call.service.open(call.index)._opened.view.rights is not None:
        raise InputError("Only who may see the whole lake can verify joins.")
    path = readable_spec(given["file"], call.allow_read)
    return presentation.verified(call, call.service.run(VerifyRequest.of(path=path)))


@_tool(
    answers.Redundant,
    "Comparing all tables.",
    _options(RedundancyRequest, "min_containment"),
    _pages("entries", 50),
)
def find_redundancy(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    """List tables of the lake that are contained in others, and which of them could go.

    Nothing is deleted. The index needs the part "redundancy".
    """
    request = RedundancyRequest.of(lake=call.index, min_containment=given["min_containment"])
    report = call.service.run(request, progress=presentation.stages(call))
    return presentation.redundancy(call, report.to_dict())


@_tool(
    answers.Written,
    "Joining and writing.",
    LAKE_COLUMN,
    _argument("output", str, "Name of a .csv or .parquet file, inside the allowed folder."),
    QUERY,
    JOIN,
    _argument("overwrite", bool, "Replace an existing file.", False),
    TOKENS,
)
def write_join(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    """Write a join to a file in the folder that the user allowed; preview it first.

    The arguments are those of preview_join.
    """
    if call.allow_write is None:  # the tool is not offered then
        raise PermissionError("no folder may be written to")
    path = writable_file(given["output"], call.allow_write, overwrite=given["overwrite"])
    joined = _joined(call, given)
    return presentation.write(
        joined, given["lake_column"], path, call.allow_write, given["overwrite"]
    )


@_tool(
    answers.Judged,
    "Recording the judgement.",
    LAKE_COLUMN,
    QUERY,
    _options(JudgeRequest, "verdict", verdict=UNSURE),
    _argument("your_value", str, "Judge this value of the query, not the columns.", ""),
    _argument("lake_value", str, "With your_value: the value of the lake.", ""),
    TOKENS,
)
def judge_join(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    """Record what the user said of a join, or of two values in it: yes, no or unsure.

    Only the user decides: ask first. A rejected join is not found again, rejected values do not
    match, accepted ones do. Give the same query as to find_joins, which may not be values.
    """
    if call.allow_write is None:  # the tool is not offered then
        raise PermissionError("nothing may be written")
    return presentation.judged(call, given)
