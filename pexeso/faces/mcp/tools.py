"""The tools: what an agent can ask an index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult
from pydantic import Field

from pexeso.faces.mcp import answers, telling
from pexeso.faces.mcp.asking import Call, Desk
from pexeso.faces.mcp.budget import DEFAULT_TOKENS, MAX_TOKENS, MIN_TOKENS, page
from pexeso.faces.mcp.folders import writable_file
from pexeso.faces.service.by_verb.join_sql import JoinSqlRequest
from pexeso.faces.service.by_verb.lake import BrowseRequest
from pexeso.faces.service.by_verb.redundancy import RedundancyRequest
from pexeso.faces.service.requests import (
    ExplainRequest,
    InfoRequest,
    JoinRequest,
    KeysRequest,
    SearchRequest,
)
from pexeso.semantic.answers.by_method import METHODS

MIN_JOINABILITY = 0.05
"""Share of values from which on a column is found, where an agent names none."""

MOST_ENTRIES = 10_000
"""Entries of one page, at most; fewer fit."""

Ask = Context[Any, Any]
Column = Annotated[
    str | None,
    Field(description="Search with this column of the lake: TABLE:COLUMN as answers name it."),
]
Values = Annotated[
    list[str | int | float | bool | None] | None,  # an id of 17 digits is no float
    Field(description="Search with these values, one a row; null is an empty cell."),
]
File = Annotated[
    str | None,
    Field(description="Search with a column of a file, FILE:COLUMN, in a folder of --allow-read."),
]
LakeColumn = Annotated[
    str, Field(description="The lake_column of a candidate of find_joins, exactly as it stands.")
]
Offset = Annotated[
    int,
    Field(ge=0, le=10**9, description="First entry, from 0: next_offset of the page before."),
]
Tokens = Annotated[
    int,
    Field(
        description=f"Longest answer in tokens, {MIN_TOKENS} to {MAX_TOKENS}; lists are cut to it."
    ),
]
Distance = Annotated[
    float | None,
    Field(description="Largest distance of values that match, 0 to 1; null: what suits the index."),
]
Entries = Annotated[int, Field(ge=1, le=MOST_ENTRIES, description="Most entries.")]
How = Annotated[
    Literal["left", "inner"],
    Field(description="left keeps your rows without a match, inner drops them."),
]
OneOf = Annotated[
    Literal["nearest", "one-to-one", "all"],
    Field(description="Which of the lake values that match one of yours are joined."),
]
Aggregate = Annotated[
    Literal["first", "list", "distinct", "count", "mean", "sum", "min", "max"] | None,
    Field(description="Keep each of your rows one, where several rows of the lake match it."),
]
ManyToMany = Annotated[
    bool, Field(description="Allow a join of more than ten rows for each of yours.")
]
ManyToOne = Annotated[bool, Field(description="Allow a rule that makes one key of several values.")]
ByProgram = Annotated[
    bool,
    Field(
        description="Join by a rule, for candidates of method transform; by equal values, for "
        "columns of numbers and ids that explain_match refuses."
    ),
]


class ReadTools:
    """The tools that read."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def describe_lake(
        self,
        context: Ask,
        what: Annotated[
            Literal["tables", "columns", "left_out"],
            Field(description="List tables, columns with their counts, or what no search finds."),
        ] = "tables",
        text: Annotated[
            str, Field(description="Only those with this text in their table's or column's name.")
        ] = "",
        table: Annotated[str | None, Field(description="Only those of this table.")] = None,
        reload: Annotated[
            bool, Field(description="First switch to the newest state of the index.")
        ] = False,
        offset: Offset = 0,
        limit: Entries = 50,
        max_tokens: Tokens = DEFAULT_TOKENS,
    ) -> Annotated[CallToolResult, answers.Lake]:
        """List what the lake holds: its tables, or columns, or what was left out and why.

        Not needed before find_joins when you have values to search with. Use it to learn names:
        filter by text rather than reading every page.
        """

        def work(call: Call, tokens: int) -> dict[str, Any]:
            info = call.service.run(InfoRequest.of(index=call.index))
            listing = call.service.run(
                BrowseRequest.of(
                    index=call.index,
                    what=what,
                    text=text,
                    table=table,
                    offset=offset,
                    limit=limit,
                )
            )
            return page(
                telling.lake_frame(info, listing, text),
                "entries",
                listing.items,
                total=listing.total,
                offset=offset,
                limit=limit,
                max_tokens=tokens,
                tell=telling.lake_entry,
                keep=("lake_column",),
            )

        return await self._desk.answer(
            context, max_tokens, "Reading the catalog.", work, reload=reload
        )

    async def find_joins(
        self,
        context: Ask,
        column: Column = None,
        values: Values = None,
        file: File = None,
        method: Annotated[
            Literal[METHODS],  # type: ignore[valid-type]
            Field(
                description="semantic: similar values (start here); overlap and containment: equal "
                "values; transform: values that a rule rewrites, such as names and e-mail "
                "addresses; all: every evidence in one list. Some need parts of the index that it "
                "may not have; the error then says so."
            ),
        ] = "semantic",
        max_distance: Distance = None,
        min_joinability: Annotated[
            float | None,
            Field(description=f"Least share of values that match; null: {MIN_JOINABILITY}."),
        ] = None,
        exclude_own_table: Annotated[
            bool, Field(description="Do not find the table that the column is from.")
        ] = True,
        fold_copies: Annotated[
            bool,
            Field(description="Fold columns of nearly the same values into one; or list each."),
        ] = True,
        offset: Offset = 0,
        limit: Annotated[int, Field(ge=1, le=MOST_ENTRIES, description="Most candidates.")] = 10,
        max_tokens: Tokens = DEFAULT_TOKENS,
    ) -> Annotated[CallToolResult, answers.Candidates]:
        """Find the columns of the lake that a column can be joined with, best first.

        Call this first. Give exactly one of column, values and file. Take the first candidate
        unless its examples are wrong; `brings` says which columns a join with it adds, and `copies`
        are other columns with nearly the same values. Then call explain_match to be sure, and
        preview_join or join_sql with the candidate's lake_column and the same query.
        """

        def work(call: Call, tokens: int) -> dict[str, Any]:
            options = telling.search_fields(method, max_distance, min_joinability, MIN_JOINABILITY)
            result = call.service.run(
                SearchRequest.of(
                    index=call.index,
                    method=method,
                    exclude_self=exclude_own_table,
                    fold_copies=fold_copies,
                    **options,
                    **call.query(column, values, file),
                )
            ).results[0]
            return page(
                telling.candidates_frame(result, column, method),
                "candidates",
                result.matches,
                offset=offset,
                limit=limit,
                max_tokens=tokens,
                tell=telling.candidate,
                keep=("lake_column",),
            )

        return await self._desk.answer(context, max_tokens, "Searching the lake.", work)

    async def explain_match(
        self,
        context: Ask,
        lake_column: LakeColumn,
        column: Column = None,
        values: Values = None,
        file: File = None,
        what: Annotated[
            Literal["pairs", "unmatched"],
            Field(description="List the pairs that match, or your values without a match."),
        ] = "pairs",
        max_distance: Distance = None,
        offset: Offset = 0,
        limit: Entries = 50,
        max_tokens: Tokens = DEFAULT_TOKENS,
    ) -> Annotated[CallToolResult, answers.Why]:
        """Explain why a query column and one column of the lake match, or not: pair by pair.

        Give the same query as to find_joins, and the lake_column of a candidate. A right match has
        pairs that mean the same thing; if they do not, take the next candidate.
        """

        def work(call: Call, tokens: int) -> dict[str, Any]:
            explanation = call.service.run(
                ExplainRequest.of(
                    index=call.index,
                    lake_column=call.lake_column(lake_column),
                    max_distance=max_distance,
                    **call.query(column, values, file),
                )
            )
            frame, entries = telling.why(explanation, what)
            return page(frame, "entries", entries, offset=offset, limit=limit, max_tokens=tokens)

        return await self._desk.answer(context, max_tokens, "Comparing the columns.", work)

    async def preview_join(
        self,
        context: Ask,
        lake_column: LakeColumn,
        column: Column = None,
        values: Values = None,
        file: File = None,
        how: How = "left",
        join_values: OneOf = "nearest",
        aggregate: Aggregate = None,
        by_program: ByProgram = False,
        many_to_many: ManyToMany = False,
        many_to_one: ManyToOne = False,
        max_distance: Distance = None,
        offset: Offset = 0,
        limit: Annotated[int, Field(ge=1, le=MOST_ENTRIES, description="Most rows.")] = 10,
        max_tokens: Tokens = DEFAULT_TOKENS,
    ) -> Annotated[CallToolResult, answers.Preview]:
        """Make a join and show its first rows, its warnings and its fan-out; nothing is written.

        Give the same query as to find_joins, and the lake_column of a candidate. With column or
        file the whole table of yours is joined; with values a table of one column.
        """

        def work(call: Call, tokens: int) -> dict[str, Any]:
            join = call.service.run(
                telling.join_request(
                    call,
                    call.query(column, values, file),
                    lake_column,
                    how=how,
                    values=join_values,
                    aggregate=aggregate,
                    many_to_many=many_to_many,
                    many_to_one=many_to_one,
                    max_distance=max_distance,
                    transform=by_program,
                )
            )
            return telling.preview(join, lake_column, offset, limit, tokens)

        return await self._desk.answer(context, max_tokens, "Joining the tables.", work)

    async def join_sql(
        self,
        context: Ask,
        lake_column: LakeColumn,
        column: Column = None,
        values: Values = None,
        file: File = None,
        how: How = "left",
        join_values: OneOf = "nearest",
        max_distance: Distance = None,
        max_tokens: Tokens = DEFAULT_TOKENS,
    ) -> Annotated[CallToolResult, answers.Sql]:
        """Write the join as one statement of SQL, with statements of DuckDB that read both tables.

        Give the same query as to find_joins, and the lake_column of a candidate. The statement
        lists the pairs of texts that differ; where they are too many, `sql` is null: use
        max_tokens, or write_join where it is offered.
        """

        def work(call: Call, tokens: int) -> dict[str, Any]:
            join = call.service.run(
                JoinSqlRequest.of(
                    index=call.index,
                    lake_column=call.lake_column(lake_column),
                    how=how,
                    values=join_values,
                    max_distance=max_distance,
                    **call.query(column, values, file),
                )
            )
            return telling.sql(join, lake_column, tokens)

        return await self._desk.answer(context, max_tokens, "Writing the statement.", work)

    async def learn_transformation(
        self,
        context: Ask,
        lake_column: LakeColumn,
        column: Column = None,
        values: Values = None,
        file: File = None,
        many_to_one: ManyToOne = False,
        offset: Offset = 0,
        limit: Annotated[int, Field(ge=1, le=MOST_ENTRIES, description="Most pairs.")] = 20,
        max_tokens: Tokens = DEFAULT_TOKENS,
    ) -> Annotated[CallToolResult, answers.Program]:
        """Learn a rule that rewrites one column in the form of the other, in words, SQL and Python.

        For keys that are written in different forms, such as names and e-mail addresses, where
        find_joins found few values alike. To join by the rule, call preview_join with by_program.
        """

        def work(call: Call, tokens: int) -> dict[str, Any]:
            join = call.service.run(
                JoinRequest.of(
                    index=call.index,
                    lake_column=call.lake_column(lake_column),
                    transform=True,
                    aggregate="first",
                    many_to_one=many_to_one,
                    **call.query(column, values, file),
                )
            )
            return telling.program(join.transformed, lake_column, offset, limit, tokens)

        return await self._desk.answer(context, max_tokens, "Learning from both columns.", work)

    async def find_redundancy(
        self,
        context: Ask,
        min_containment: Annotated[
            float, Field(description="Least share of a table's rows that are in another, 0 to 1.")
        ] = 1.0,
        offset: Offset = 0,
        limit: Entries = 50,
        max_tokens: Tokens = DEFAULT_TOKENS,
    ) -> Annotated[CallToolResult, answers.Redundant]:
        """List tables of the lake that are contained in others, and which of them could go.

        Nothing is deleted. The index needs the part "redundancy".
        """

        def work(call: Call, tokens: int) -> dict[str, Any]:
            request = RedundancyRequest.of(lake=call.index, min_containment=min_containment)
            report = call.service.run(request, progress=telling.stages(call)).to_dict()
            return telling.redundancy(report, offset, limit, tokens)

        return await self._desk.answer(context, max_tokens, "Comparing all tables.", work)

    async def find_composite_joins(
        self,
        context: Ask,
        table: Annotated[str | None, Field(description="A table of the lake.")] = None,
        file: Annotated[
            str | None, Field(description="Or a file in a folder of --allow-read.")
        ] = None,
        key: Annotated[
            list[str] | None,
            Field(description="Two columns or more; null: the first key that is proposed."),
        ] = None,
        offset: Offset = 0,
        limit: Annotated[int, Field(ge=1, le=MOST_ENTRIES, description="Most candidates.")] = 10,
        max_tokens: Tokens = DEFAULT_TOKENS,
    ) -> Annotated[CallToolResult, answers.Keys]:
        """Propose keys of a table, and find the tables that join by a key of several columns.

        For rows that only several columns tell apart, such as country and year. The search needs
        the part "composite" of the index; keys are proposed without it too.
        """

        def work(call: Call, tokens: int) -> dict[str, Any]:
            read = path, reading = telling.table_of(call, table, file)
            keys = call.service.run(KeysRequest.of(table=path, **reading)).to_dict()
            return telling.keys(call, read, table or str(file), keys, key, offset, limit, tokens)

        return await self._desk.answer(context, max_tokens, "Looking for keys.", work)

    def all(self) -> Sequence[Any]:
        """Return the tools, in the order in which an agent meets them."""
        return (
            self.find_joins,
            self.explain_match,
            self.preview_join,
            self.join_sql,
            self.describe_lake,
            self.learn_transformation,
            self.find_composite_joins,
            self.find_redundancy,
        )


class WriteTools:
    """The tool that writes, of a desk with a folder that may be written to."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def write_join(
        self,
        context: Ask,
        lake_column: LakeColumn,
        output: Annotated[
            str, Field(description="Name of a .csv or .parquet file, inside the allowed folder.")
        ],
        column: Column = None,
        values: Values = None,
        file: File = None,
        how: How = "left",
        join_values: OneOf = "nearest",
        aggregate: Aggregate = None,
        by_program: ByProgram = False,
        many_to_many: ManyToMany = False,
        many_to_one: ManyToOne = False,
        overwrite: Annotated[bool, Field(description="Replace a file that is there.")] = False,
        max_distance: Distance = None,
        max_tokens: Tokens = DEFAULT_TOKENS,
    ) -> Annotated[CallToolResult, answers.Written]:
        """Write a join to a file in the folder that the user allowed; preview it first.

        The arguments are those of preview_join.
        """

        def work(call: Call, tokens: int) -> dict[str, Any]:
            if call.allow_write is None:  # the tool is not offered then
                raise PermissionError("no folder may be written to")
            path = writable_file(output, call.allow_write, overwrite=overwrite)
            join = call.service.run(
                telling.join_request(
                    call,
                    call.query(column, values, file),
                    lake_column,
                    how=how,
                    values=join_values,
                    aggregate=aggregate,
                    many_to_many=many_to_many,
                    many_to_one=many_to_one,
                    max_distance=max_distance,
                    transform=by_program,
                )
            )
            return telling.write(join, lake_column, path, call.allow_write, overwrite)

        return await self._desk.answer(context, max_tokens, "Joining and writing.", work)
