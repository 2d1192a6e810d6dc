"""Requests for joins by learned programs, and what answers them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec

from pexeso.errors import OutputError
from pexeso.faces.service.bases import (
    JoinResponse,
    Overwrite,
    ReadingRequest,
    RequestError,
    SearchResponse,
    reading_of,
)
from pexeso.faces.service.schema import Natural, option
from pexeso.store.io.temporary import require_free
from pexeso.transform import MAX_PROGRAMS

if TYPE_CHECKING:
    from pexeso.faces.service.requests import JoinRequest, SearchRequest
    from pexeso.faces.service.verbs import Service
    from pexeso.lake.readers.options import ReadingOptions
    from pexeso.transform.joins.joined import TransformJoin


# The options of joins by a composite key or a program.
KEY_JOIN_OPTIONS = ("how", "aggregate", "suffix", "provenance", "many_to_many")

# As `pexeso.transform.transformation` has it.
DEFAULT_PROGRAMS = 12


class TransformRequest(ReadingRequest, frozen=True, kw_only=True):
    """Learn a program that joins two tables; see `pexeso.learn_transformation`.

    `source` and `target` are ``FILE``, ``FILE:COLUMN``, ``FILE:COLUMN,COLUMN``, or
    ``INDEX.pexeso:TABLE`` and a column. `target_delimiter` and so on say how the file of `target`
    is read.
    """

    verb: ClassVar[str] = "transform"

    source: str
    target: str
    target_delimiter: str | None = None
    target_encoding: str | None = None
    target_header: int | None = None
    target_skip_rows: int | None = None
    target_as_of: str | None = None
    program: Annotated[
        str | None, option("Use programs that --save wrote, instead of learning.", metavar="FILE")
    ] = None
    save: Annotated[str | None, option("Write the programs, for --program.", metavar="FILE")] = None
    fuzzy: Annotated[
        bool,
        option(
            "Also join nearly equal keys of rows that no program joins, and similar keys if the "
            "named columns have no program."
        ),
    ] = True
    accept_rule: Annotated[
        bool,
        option(
            "Accept the best rule even if chance may explain it, and apply a saved one also to "
            "rows unlike those that it was learned from."
        ),
    ] = False
    max_programs: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=MAX_PROGRAMS)],
        option(
            "Maximum number of programs to learn. Each is learned from the rows that earlier "
            "programs left.",
            metavar="N",
            expert=True,
        ),
    ] = DEFAULT_PROGRAMS
    seed: Annotated[Natural, option("Random seed.", metavar="N", expert=True)] = 0
    overwrite: Overwrite = False

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.target_reading

    @property
    def target_reading(self) -> ReadingOptions:
        return reading_of(self.fields(), "target_")


def search_by_programs(service: Service, request: SearchRequest) -> SearchResponse:
    if request.read_key() is not None:
        raise RequestError(
            "{method} transform takes one column. Got several in %r: learn from one after the "
            "other, or from all with two tables by pexeso transform.",
            request.query,
        )
    searches = service.searches(request.index).transform
    queries = request.read_columns(numbers=True)
    results = [searches.search(query, **request.program_options()) for query in queries]
    return SearchResponse(request, results)


def with_best_table(service: Service, request: JoinRequest) -> JoinRequest:
    """Name the column of the lake that joins most values after a program."""
    column = request.read_column()
    searches = service.searches(request.index).transform
    result = searches.search(column, k=1, exclude_self=True, fold_copies=False)
    if not len(result):
        raise RequestError(
            "No column of the lake joins '%s' by a program. Name TABLE or TABLE:COLUMN to learn "
            "one from two tables alone.",
            column.column or "values",
        )
    best = f"{result[0].table}:{result[0].column}"
    return msgspec.structs.replace(request, lake_column=best)


def learn_with_lake(service: Service, request: JoinRequest) -> TransformJoin:
    """Learn, or read, the programs that join a table with the one of the lake that is named."""
    return _learned(service, request)[1]


def _learned(service: Service, request: JoinRequest) -> tuple[str, TransformJoin]:
    from pexeso.semantic.open_index import OpenIndex
    from pexeso.transform.joins.learned import join_learned
    from pexeso.transform.joins.sides import lake_side, side_of
    from pexeso.transform.transformation import TransformOptions

    store = service.store(request.index)
    name, columns = OpenIndex(store).catalog.split(str(request.lake_column))
    target = lake_side(store, request.index, name, columns)
    query = request.query
    source_table = query if isinstance(query, str) else {"values": list(query)}
    source = side_of(source_table, reading=request.reading)
    options = TransformOptions(accept=request.accept_rule)
    return name, join_learned(source, target, program=request.program, options=options)


def join_by_program(service: Service, request: JoinRequest) -> JoinResponse:
    """Join a table with one of the lake by a program, learned or saved."""
    from pexeso.joins.options import JoinOptions
    from pexeso.transform.joins.lake_join import join_sides, keys_joined

    name, join = _learned(service, request)
    source = join.source
    options = JoinOptions(**request.chosen(KEY_JOIN_OPTIONS))
    columns_of_query = [source.texts.names[at] for at in join.source_columns]
    described = {"file": source.file, "columns": columns_of_query, "rows": source.n_rows}
    joined = join_sides(join, name, options, many_to_one=request.many_to_one)
    return JoinResponse(described, keys_joined(join, name), None, joined, join)


def transform(
    service: object,
    request: TransformRequest,
    *,
    check: Callable[[TransformJoin], None] | None = None,
    **live: Any,
) -> TransformJoin:
    """Answer a request for a program; `check` may refuse the join before it is written."""
    from pexeso.transform.joins.learned import learn_transformation

    if request.save is not None:
        require_free(request.save, overwrite=request.overwrite)
    joined = learn_transformation(
        request.source,
        request.target,
        program=request.program,
        fuzzy=request.fuzzy,
        accept_rule=request.accept_rule,
        max_programs=request.max_programs,
        seed=request.seed,
        reading=request.reading,
        target_reading=request.target_reading,
    )
    if check is not None:
        check(joined)
    if request.save is not None:
        if joined.tried is not None:
            raise OutputError(
                f"'{request.save}' is not written, as no rule was learned that could be saved: "
                f"{joined.tried}. -o writes the joined rows."
            )
        joined.save(request.save, overwrite=request.overwrite)
    return joined
