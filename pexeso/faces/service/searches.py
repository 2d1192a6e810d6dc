"""Answers to searches, explanations, joins, joins as SQL, and batches."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from pexeso.errors import OutputError
from pexeso.faces.service import transform
from pexeso.faces.service.bases import (
    Answer,
    BatchResponse,
    JoinResponse,
    QueryRequest,
    RequestError,
    SearchResponse,
)
from pexeso.faces.service.requests import (
    BatchRequest,
    ExplainRequest,
    JoinRequest,
    JoinSqlRequest,
    SearchRequest,
    split_lake_column,
)
from pexeso.lake.columns import label_columns
from pexeso.lake.containers.reader import read_table, read_typed_table
from pexeso.lake.judgements import REJECTED
from pexeso.options import DEFAULT_COLUMNS, SearchOptions, parse_bytes
from pexeso.results.query import QueryColumn, batch_lines

if TYPE_CHECKING:
    from pexeso.composite.key_explanation import KeyExplanation
    from pexeso.composite.key_table import KeyTable, TablePair
    from pexeso.composite.searches import CompositeSearches
    from pexeso.faces.service.verbs import EncodedQueries, Service
    from pexeso.index import Index
    from pexeso.joins.sql import JoinSql
    from pexeso.results.matches import Explanation, Match
    from pexeso.semantic.batch_file import BatchRun, NumberedLine


def search(
    service: Service, request: SearchRequest, *, encoded: EncodedQueries | None = None
) -> SearchResponse:
    """Answer a search; `encoded` keeps query columns of files that do not change."""
    if request.keys is not None:
        request = request.with_key()
    if request.method == "transform":
        return transform.search_by_programs(service, request)
    if (key := request.read_key()) is not None:
        options = request.key_options(similar=key.is_similar)
        if key.is_similar:
            result = service.open_for(request).search_composite(key, **options)
        else:
            result = service.searches(request.index).composite.search(key, **options)
        return SearchResponse(request, [result])
    if request.method in ("overlap", "containment"):
        token_searches = service.searches(request.index).equal_text
        find = token_searches.overlap if request.method == "overlap" else token_searches.contain
        options = request.token_options()
        columns = request.read_columns(numbers=True)
        return SearchResponse(request, [find(column, **options) for column in columns])
    index, arguments = service.open_for(request), request.options()
    arguments |= {"exclude_self": request.exclude_self, "fold_copies": request.fold_copies}
    if request.method == "all":
        from pexeso.semantic.combined import search_combined

        if request.max_candidates is not None:
            arguments["max_candidates"] = request.max_candidates
        arguments["models"] = None if request.model is None else (request.model,)
        queries = request.read_columns(numbers=True)
        return SearchResponse(
            request, [search_combined(index, one, **arguments) for one in queries]
        )
    queries: list[Any] = []
    if encoded is not None and not request.all_columns:
        opened = index._opened
        snapshot = (request.index, request.model, opened.whole.manifest.snapshot)
        file = (*snapshot, request.query, request.reading)
        queries.append(encoded.get(file, lambda: opened.encode(request.read_column())))
    else:
        queries += request.read_columns(numbers=False)
    return SearchResponse(request, index.search_batch(queries, rerank=request.rerank, **arguments))


def explain(service: Service, request: ExplainRequest) -> Explanation | KeyExplanation:
    what, rules = "The explanation of a composite key", request.reading_rules
    ends = _ends_of(service, request, request.lake_column, rules, usable=_OF_KEYS, what=what)
    if isinstance(ends, _OfKeys):
        from pexeso.composite.key_evidence import explain_keys

        return explain_keys(ends.pair, ends.columns)
    return ends.index.explain(ends.column, *ends.named, **request.options())


_OF_KEYS = ("index", "query", "lake_column", "reading_rules")
_OF_KEY_JOINS = (*_OF_KEYS, *transform.KEY_JOIN_OPTIONS)


@dataclass(frozen=True)
class _OfKeys:
    """A table of yours, one of the lake, and its columns that are equal to the key or not."""

    pair: TablePair
    columns: str | list[str] | None


@dataclass(frozen=True)
class _OfDistances:
    """A column of yours, and one of the lake whose values are compared by their distance."""

    column: QueryColumn
    index: Index
    named: tuple[str, str]
    match: Match | None  # Where no column of the lake is named: the one that a search lists first


def _ends_of(
    service: Service,
    request: QueryRequest,
    named: str | None,
    rules: tuple[str, ...] = (),
    *,
    usable: Collection[str],
    what: str,
) -> _OfKeys | _OfDistances:
    """Return what a query is joined with: the columns `named`, or else those that are best."""
    match = None
    if (key := request.read_key()) is not None:
        request.require_use(usable, what)
        searches = service.searches(request.index).with_readings(rules).composite
        table, columns = _named_key(searches, named, key)
        return _OfKeys(searches.pair(key, None, table), columns)
    column, index = request.read_column(), service.open_for(request).with_readings(*rules)
    if named is None:
        match = _best_match(index, column, request.options())
        return _OfDistances(column, index, (match.table, match.column), match)
    from pexeso.semantic.explanation import is_compared

    table, label = split_lake_column(index.catalog, named)
    if is_compared(index.store, table, label):
        return _OfDistances(column, index, (table, label), None)
    # The values of columns that are left out of the index, such as numbers, are equal or not.
    request.require_use(usable, "The column of the lake is compared by equal values alone, which")
    searches = service.searches(request.index).with_readings(rules).composite
    return _OfKeys(searches.pair(_key_of(column), None, table), [label])


def _key_of(column: QueryColumn) -> KeyTable:
    """Return the table of a query column, which is a key of one column."""
    from pexeso.composite.key_table import key_table

    if column.file is None:
        table = pa.table([column.values], names=[column.column or "value"])
        return key_table(table, ["#0"], min_columns=1)
    labels = label_columns(read_table(column.file, options=column.reading).names)
    position = labels.index(str(column.column))
    return key_table(column.file, [f"#{position}"], reading=column.reading, min_columns=1)


def join(service: Service, request: JoinRequest) -> JoinResponse:
    """Answer a request for a join: by similar values, a composite key or a program."""
    if request.transform:
        if request.lake_column is None:
            request = transform.with_best_table(service, request)
        return transform.join_by_program(service, request)
    what, rules = "A join by a composite key", request.reading_rules
    ends = _ends_of(service, request, request.lake_column, rules, usable=_OF_KEY_JOINS, what=what)
    if isinstance(ends, _OfKeys):
        key, lake_key = ends.pair.query_table, ends.pair.theirs(ends.columns)
        joined = ends.pair.join(lake_key, request.chosen(transform.KEY_JOIN_OPTIONS))
        return JoinResponse(key.describe(), ends.pair.keys_joined(lake_key), None, joined)
    column, match, advised, is_rejected = ends.column, ends.match, None, False
    if match is None or request.is_auto:
        # The best distance to find a column with is not the best to join it with.
        explanation = ends.index.explain(column, *ends.named, **request.options())
        match, advised = explanation.match, explanation.options
        is_rejected = explanation.is_rejected
    # By the texts that were searched with: those of dates and the like differ from Arrow's.
    table, texts = _query_table(column)
    joined = match._details.join(
        match, table, None, None, vars(request.join_options()), texts=texts
    )
    if is_rejected:
        joined = joined.noted(REJECTED)
    return JoinResponse(column.describe(), match, advised, joined)


def _named_key(
    searches: CompositeSearches, named: str | None, key: KeyTable
) -> tuple[str, str | list[str] | None]:
    """Return the table and columns that are named, or else those that a search lists first."""
    if named is not None:
        return searches.opened.catalog.split(named)
    result = searches.search(key, k=1, exclude_self=True)
    if not result.matches:
        raise RequestError(
            "No table of the lake has a row with a whole key of '%s': %s.",
            key.file,
            ", ".join(column.label for column in key.key),
        )
    return result[0].table, list(result[0].columns)


def _best_match(index: Index, column: QueryColumn, options: Mapping[str, Any]) -> Match:
    """Return the column that a search lists first, or else the best that few values match."""
    result = index.search(column, exclude_self=True, **options)
    if not len(result):  # a number of columns is given however low their joinability
        result = index.search(column, exclude_self=True, **options, k=DEFAULT_COLUMNS)
    name = column.column or "values"
    if not result.query["distinct"]:
        raise RequestError("'%s' has no value that a column of the lake could match.", name)
    if not len(result):
        raise RequestError(
            "No column of the lake has a value within distance %s of '%s'. Try a larger "
            "{max_distance}.",
            f"{result.options.max_distance:g}",
            name,
        )
    return result[0]


def _query_table(column: QueryColumn) -> tuple[pa.Table, pa.StringArray]:
    """Return the table of a query column, with the types of its file, and the column as texts."""
    if column.file is None:
        return pa.table([column.values], names=[column.column or "value"]), column.values
    table, typed = read_typed_table(column.file, options=column.reading)
    labels = label_columns(table.names)
    texts = table.columns[labels.index(str(column.column))]
    return pa.Table.from_arrays(typed or table.columns, names=labels), texts


def join_sql(service: Service, request: JoinSqlRequest) -> JoinSql:
    from pexeso.joins.sql import LAKES, YOURS, reader_of_yours

    usable, reader = ("index", "query", "lake_column", "how"), None
    what = "A join by a composite key"
    ends = _ends_of(service, request, request.lake_column, usable=usable, what=what)
    if isinstance(ends, _OfKeys):
        key = ends.pair.query_table
        sql = ends.pair.sql(ends.pair.theirs(ends.columns), how=request.how, names=(YOURS, LAKES))
        positions = [column.position for column in key.key]
        names = [key.names[at] for at in positions]
        if key.file is not None:
            texts = pa.Table.from_arrays(list(key.cells), names=label_columns(key.names))
            reader = reader_of_yours(key.file, texts, positions, names, reading=key.reading)
    else:
        column = ends.column
        match = ends.index.explain(column, *ends.named, **request.options()).match
        name = column.column or "value"
        sql = match.sql_with_pairs(
            YOURS, name, lake_table=LAKES, values=request.values, how=request.how
        )
        if column.file is not None:
            read = read_table(column.file, options=column.reading)
            labels = label_columns(read.names)
            texts = pa.Table.from_arrays(read.columns, names=labels)
            at = labels.index(name)
            reader = reader_of_yours(column.file, texts, [at], [name], reading=column.reading)
    readers = {YOURS: reader, LAKES: sql.tables[LAKES]}
    views = {
        name: None if reader is None else f"CREATE VIEW {name} AS SELECT * FROM {reader};"
        for name, reader in readers.items()
    }
    return replace(sql, tables=views)


@contextmanager
def index_of_run(open_index: Callable[[Any], Index], request: Any) -> Iterator[tuple[Index, int]]:
    """Yield the index of a request, here or on Spark, and its number of concurrent passes."""
    if request.master is None:
        yield open_index(request), 1
        return
    # Device and memory are those of the tasks.
    index = open_index(msgspec.structs.replace(request, device="cpu", memory_budget=None))
    from pexeso.build.spark.session import spark_session
    from pexeso.semantic.spark_executor import on_spark, passes_of

    budget = None if request.memory_budget is None else parse_bytes(request.memory_budget)
    where = {"device": request.device, "kernel": "auto", "memory_budget": budget}
    with spark_session(request.master, conf=request.conf) as spark:
        yield on_spark(index, spark, **where), passes_of(index, spark)


def batch(
    service: Service,
    request: BatchRequest,
    *,
    lines: Iterable[NumberedLine] | None = None,
    begin: Callable[[SearchOptions], None] | None = None,
    write: Callable[[list[Answer]], object] | None = None,
    progress: Callable[[BatchRun], None] | None = None,
) -> BatchResponse:
    from pexeso.semantic.batch_file import BatchRun, answer_lines, run_batch

    lines = _batch_lines(request) if lines is None else lines
    # What ends the batch may be held, and the frames of it.
    closed = closing(lines) if isinstance(lines, Generator) else nullcontext()
    with index_of_run(service.open_for, request) as (index, passes), closed:
        if begin is not None:
            begin(index.search_options(request.options()))
        options = request.chosen(("explain", "rerank", "exclude_self", "fold_copies"))
        options |= {**request.options(), "passes": passes, "reading": request.reading}
        if request.output is not None:
            options |= {"resume": request.resume, "overwrite": request.overwrite}
            options["progress"] = progress
            return BatchResponse(run_batch(index, lines, request.output, **options))
        response = BatchResponse(BatchRun())
        for answers in answer_lines(index, lines, **options):
            for answer in answers:
                response.run.note(answer)
            (response.answers.extend if write is None else write)(answers)
        return response


def _batch_lines(request: BatchRequest) -> Iterable[NumberedLine]:
    """Return the lines of a batch, once their file has proved to be readable."""
    if not isinstance(request.queries, str):
        return enumerate(map(json.dumps, request.queries), 1)
    both_exist = os.path.exists(request.queries) and os.path.exists(request.output or "")
    if both_exist and os.path.samefile(request.queries, request.output):
        raise OutputError(
            f"'{request.output}' is the file of queries: choose another name for the answers."
        )
    for _ in batch_lines(request.queries):
        break
    return batch_lines(request.queries)
