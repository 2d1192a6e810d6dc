"""The service: runs a request of any verb, and keeps indexes open for the next one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pexeso.faces.service import index_requests, requests
from pexeso.faces.service.bases import Request, RequestError
from pexeso.faces.service.by_verb import (
    acquisition,
    batch,
    composite_keys,
    graph,
    join_sql,
    lake,
    redundancy,
    transform,
)
from pexeso.faces.service.open_indexes import OpenIndexes
from pexeso.faces.service.responses import (
    Answer,
    CheckResponse,
    DoctorResponse,
    JoinResponse,
    RulesResponse,
    SearchResponse,
)
from pexeso.options import DEFAULT_COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa

    from pexeso.build.diagnostics.estimate import Estimate
    from pexeso.build.diagnostics.info import IndexInfo
    from pexeso.build.diagnostics.reason_listing import ReasonListing
    from pexeso.build.report import BuildReport
    from pexeso.composite.candidate_keys import FoundKeys
    from pexeso.composite.key_explanation import KeyExplanation
    from pexeso.faces.service.encoded_queries import EncodedQueries
    from pexeso.index import Index
    from pexeso.results.matches import Explanation, Match
    from pexeso.results.query import QueryColumn
    from pexeso.semantic.thresholds.advice import Advice


class Service(OpenIndexes):
    """Answers requests, by indexes that it opens; see `OpenIndexes` for the parameters.

    Examples
    --------
    >>> Service().answer({"verb": "rules"})["version"]
    4
    """

    def run(self, request: Request, **live: Any) -> Any:
        """Run a request.

        Parameters
        ----------
        request : Request
        **live
            What JSON cannot hold: `progress`, a callable, for verbs that take long; see also
            the functions of the verbs in this module.

        Returns
        -------
        object
            The response, with `to_dict`: its type is that of the verb's function in this module.

        Raises
        ------
        PexesoError
            See `pexeso.errors`.
        """
        return _VERBS[request.verb](self, lake.with_file(self, request), **live)

    def answer(self, values: Mapping[str, Any]) -> Answer:
        """Run a request given as plain JSON, and return the response as plain JSON."""
        return self.run(Request.from_dict(values)).to_dict()


def run(request: Request, **live: Any) -> Any:
    """Run one request; see `Service.run`."""
    return Service().run(request, **live)


def _calls(home: str) -> Callable[..., Any]:
    """Return what calls the function at ``module:name`` with the index and the other fields."""

    def answer(service: Service, request: requests.IndexRequest, **live: Any) -> Any:
        arguments = request.fields()
        module, _, name = home.partition(":")
        return getattr(import_module(module), name)(arguments.pop("index"), **arguments, **live)

    return answer


def _search_tokens(service: Service, request: requests.SearchRequest) -> SearchResponse:
    """Answer a search by equal values."""
    searches = service.searches(request.index).equal_text
    search = searches.overlap if request.method == "overlap" else searches.contain
    queries = request.read_columns(numbers=True)
    options = request.token_options()
    return SearchResponse(request, [search(query, **options) for query in queries])


def _search(
    service: Service, request: requests.SearchRequest, *, encoded: EncodedQueries | None = None
) -> SearchResponse:
    """Answer a search."""
    if request.keys is not None:
        request = request.with_key()
    if request.method == "transform":
        return transform.search_by_programs(service, request)
    if (key := request.read_key()) is not None:
        options = request.key_options(similar=key.is_similar)
        if key.is_similar:
            return SearchResponse(
                request, [service.open_for(request).search_composite(key, **options)]
            )
        return SearchResponse(
            request, [service.searches(request.index).composite.search(key, **options)]
        )
    if request.method in ("overlap", "containment"):
        return _search_tokens(service, request)
    index, arguments = service.open_for(request), request.options()
    arguments |= {"exclude_self": request.exclude_self, "fold_copies": request.fold_copies}
    if request.method == "semantic" and encoded is not None and not request.all_columns:
        opened = index._opened
        state = (request.index, request.model, opened.whole.manifest.snapshot)
        query = encoded.get(
            (*state, request.query, request.reading),
            lambda: opened.encode(request.read_column()),
        )
        return SearchResponse(
            request, index.search_batch([query], rerank=request.rerank, **arguments)
        )
    queries = request.read_columns(numbers=request.method == "all")
    if request.method == "semantic":
        results = index.search_batch(queries, rerank=request.rerank, **arguments)
        return SearchResponse(request, results)
    from pexeso.semantic.answers.combined import search_combined

    if request.max_candidates is not None:
        arguments["max_candidates"] = request.max_candidates
    arguments["models"] = None if request.model is None else (request.model,)
    return SearchResponse(
        request, [search_combined(index, query, **arguments) for query in queries]
    )


def _explain(service: Service, request: requests.ExplainRequest) -> Explanation | KeyExplanation:
    if (key := request.read_key()) is not None:
        return composite_keys.explain_key(service.searches(request.index).composite, request, key)
    column, index = request.read_column(), service.open_for(request)
    named = requests.split_lake_column(index.catalog, request.lake_column)
    return index.explain(column, *named, **request.options())


def _join(service: Service, request: requests.JoinRequest) -> JoinResponse:
    if request.transform:
        if request.lake_column is None:
            request = transform.with_best_table(service, request)
        return transform.join_by_program(service, request)
    if (key := request.read_key()) is not None:
        return composite_keys.join_key(service.searches(request.index).composite, request, key)
    column, options, advised = request.read_column(), request.options(), None
    index = service.open_for(request)
    if request.lake_column is None:
        match = _best(index, column, options)
        named = (match.table, match.column)
    else:
        named = requests.split_lake_column(index.catalog, request.lake_column)
    if request.lake_column is not None or request.is_auto:
        # The best distance to find a column with is not the best to join it with: chosen anew.
        explanation = index.explain(column, *named, **options)
        match, advised = explanation.match, explanation.options
    # By the texts that were searched with: those of dates and the like differ from Arrow's.
    table, texts = _table_of(column)
    joined = match._details.join(
        match, table, None, None, vars(request.join_options()), texts=texts
    )
    return JoinResponse(column.describe(), match, advised, joined)


def _best(index: Index, column: QueryColumn, options: Mapping[str, Any]) -> Match:
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


def _table_of(column: QueryColumn) -> tuple[pa.Table, pa.StringArray]:
    """Return the table of a query column, with the types of its file, and the column as texts."""
    import pyarrow as pa

    from pexeso.lake.columns import label_columns
    from pexeso.lake.containers.reader import read_typed_table

    if column.file is None:
        return pa.table([column.values], names=[column.column or "value"]), column.values
    table, typed = read_typed_table(column.file, options=column.reading)
    labels = label_columns(table.names)
    texts = table.columns[labels.index(str(column.column))]
    return pa.Table.from_arrays(typed or table.columns, names=labels), texts


def _build(service: Service, request: index_requests.BuildRequest, **live: Any) -> IndexInfo:
    from pexeso.index import build_index

    arguments = request.fields()
    return build_index(arguments.pop("lake"), arguments.pop("index"), **arguments, **live).info()


def _estimate(service: Service, request: index_requests.EstimateRequest, **live: Any) -> Estimate:
    from pexeso.build.diagnostics.estimate import estimate_build

    return estimate_build(request.lake, request.build_options(), **live)


def _tune(service: Service, request: requests.TuneRequest) -> Advice:
    return service.open(request.index, "cpu", model=request.model).tune(
        request.labels, min_precision=request.min_precision, reading=request.reading
    )


def _info(
    service: Service, request: requests.InfoRequest
) -> IndexInfo | BuildReport | ReasonListing:
    from pexeso.build.diagnostics.info import index_info, last_report, list_reasons

    store = service.store(request.index)
    if request.left_out or request.notes:
        return list_reasons(store, notes=request.notes)
    return (last_report if request.report else index_info)(store)


def _check(service: Service, request: requests.CheckRequest, **live: Any) -> CheckResponse:
    from pexeso.build.diagnostics.check import check_index

    response = CheckResponse(check_index(request.index, **live))
    if response.failures:
        return response
    manifest = service.store(request.index).manifest
    return replace(response, n_files=sum(1 for _ in manifest.files()), n_bytes=manifest.n_bytes)


def _rules(service: Service, request: requests.RulesRequest) -> RulesResponse:
    if request.index is None:
        from pexeso.lake.normalise.rules import DEFAULT_RULES

        return RulesResponse(DEFAULT_RULES, {})
    from pexeso.build.opening import normaliser_of
    from pexeso.build.parts.metadata import require_contents

    store = service.store(request.index)
    require_contents(store.manifest)
    normaliser = normaliser_of(store)
    return RulesResponse(normaliser.rules, normaliser.extra)


def _keys(service: Service, request: requests.KeysRequest) -> FoundKeys:
    from pexeso.composite.candidate_keys import find_keys

    arguments = request.arguments()
    return find_keys(arguments.pop("table"), **arguments)


def _doctor(service: Service, request: requests.DoctorRequest) -> DoctorResponse:
    from pexeso.build.diagnostics.doctor import diagnose

    return DoctorResponse(diagnose(request.folder))


_VERBS: dict[str, Callable[..., Any]] = {
    "build": _build,
    "append": _calls("pexeso.build.append:append"),
    "delete": _calls("pexeso.build.delete:delete"),
    "compact": _calls("pexeso.build.compact:compact"),
    "add_parts": _calls("pexeso.build.add_part:add_parts"),
    "add_model": _calls("pexeso.build.add_model:add_model"),
    "search": _search,
    "batch": batch.batch,
    "join": _join,
    "explain": _explain,
    "tune": _tune,
    "estimate": _estimate,
    "info": _info,
    "rules": _rules,
    "keys": _keys,
    "check": _check,
    "doctor": _doctor,
    "redundancy": redundancy.redundancy,
    "verify_plan": redundancy.verify_plan,
    "apply_plan": redundancy.apply_plan,
    "undo_plan": redundancy.undo_plan,
    "transform": transform.transform,
    "acquire": acquisition.acquire,
    "browse": lake.browse,
    "join_sql": join_sql.join_sql,
    "graph": graph.graph,
    "export": graph.export,
}
