"""The service: runs a request of any verb, and keeps indexes open for the next one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any

from pexeso.errors import OutputError
from pexeso.join.options import JoinOptions
from pexeso.options import BuildOptions
from pexeso.service import acquisition, composite_keys, graph, redundancy, requests, transform
from pexeso.service.bases import OF_READING, ColumnsRequest, DistanceRequest, Request, RequestError
from pexeso.service.on_spark import searching
from pexeso.service.responses import (
    Answer,
    BatchResponse,
    CheckResponse,
    DoctorResponse,
    JoinResponse,
    RulesResponse,
    SearchResponse,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from pexeso.acquisition_search.searches import AcquisitionSearches
    from pexeso.build.report import BuildReport
    from pexeso.composite.candidate_keys import FoundKeys
    from pexeso.composite_search.searches import CompositeSearches
    from pexeso.diagnostics.estimate import Estimate
    from pexeso.diagnostics.info import IndexInfo
    from pexeso.explain.key_explanation import KeyExplanation
    from pexeso.index import Index
    from pexeso.lake.left_out.listing import ReasonListing
    from pexeso.options import SearchOptions
    from pexeso.results import Explanation, Match
    from pexeso.search.batch_file import BatchRun, NumberedLine
    from pexeso.search.query import QueryColumn
    from pexeso.store.local.reader import Store
    from pexeso.thresholds.advice import Advice
    from pexeso.token_search.searches import TokenSearches
    from pexeso.transform_search.searches import TransformSearches


class Service:
    """Answers requests.

    Parameters
    ----------
    keep_open : bool
        Keep every index that was searched open, in its newest generation: for a process that
        answers many requests.

    Examples
    --------
    >>> Service().answer({"verb": "rules"})["version"]
    3
    """

    def __init__(self, *, keep_open: bool = False) -> None:
        self._keep_open = keep_open
        self._indexes: dict[tuple[Any, ...], Index] = {}
        self._lock = Lock()

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
        return _VERBS[request.verb](self, request, **live)

    def answer(self, values: Mapping[str, Any]) -> Answer:
        """Run a request given as plain JSON, and return the response as plain JSON."""
        return self.run(Request.from_dict(values)).to_dict()

    def open(
        self,
        path: str,
        device: str = "auto",
        budget: str | int | None = None,
        kernel: str = "auto",
        model: str | None = None,
    ) -> Index:
        """Return an open index; see `pexeso.open_index`."""
        from pexeso.index import open_index

        key = (path, device, budget, kernel, model)
        with self._lock:
            kept = self._indexes.get(key)
            if kept is not None:
                kept.refresh()
                return kept
            index = open_index(
                path, device=device, memory_budget=budget, kernel=kernel, model=model
            )
            if self._keep_open:
                self._indexes[key] = index
            return index

    def open_for(self, request: DistanceRequest) -> Index:
        """Return the index of a request, open where it is to be searched."""
        where = (request.device, request.memory_budget, request.kernel, request.model)
        index = self.open(request.index, *where)
        metric = index.store.manifest.options["grid"]["metric"]
        if request.min_cosine is not None and metric != "euclidean":
            raise RequestError(
                "{min_cosine} is for indexes with the euclidean metric; '%s' has the %s metric. "
                "Give {max_distance} instead.",
                request.index,
                metric,
            )
        return index

    def open_tokens(self, path: str) -> Index | TokenSearches:
        """Return what searches by equal values.

        It is the token sets alone, unless indexes are kept open.
        """
        if self._keep_open:
            return self.open(path)
        from pexeso.token_search.opening import open_token_sets

        return open_token_sets(path)

    def open_transform(self, path: str) -> TransformSearches:
        """Return what searches for columns that join after a program.

        Models are not loaded, unless indexes are kept open.
        """
        if self._keep_open:
            return self.open(path).transform_searches
        from pexeso.transform_search.searches import open_transform_searches

        return open_transform_searches(path)

    def open_composite(self, path: str) -> CompositeSearches:
        """Return what searches and joins by composite keys.

        It is the rows of the index alone, unless indexes are kept open.
        """
        if self._keep_open:
            return self.open(path).composite_searches
        from pexeso.composite_search.searches import open_composite

        return open_composite(path)

    def open_acquisition(self, path: str) -> Index | AcquisitionSearches:
        """Return what finds tables to buy.

        Models are not loaded, unless indexes are kept open.
        """
        if self._keep_open:
            return self.open(path)
        from pexeso.acquisition_search.searches import open_acquisition_searches

        return open_acquisition_searches(path)


def run(request: Request, **live: Any) -> Any:
    """Run one request; see `Service.run`."""
    return Service().run(request, **live)


def _fields_of(kind: type, request: Request) -> dict[str, Any]:
    return {name: vars(request)[name] for name in kind.__dataclass_fields__}


def _calls(home: str) -> Callable[..., Any]:
    """Return what calls the function at ``module:name`` with the index and the other fields."""

    def answer(service: Service, request: requests.IndexRequest, **live: Any) -> Any:
        given = dict(vars(request))
        module, _, name = home.partition(":")
        return getattr(import_module(module), name)(given.pop("index"), **given, **live)

    return answer


def _searches(method: str) -> Callable[..., SearchResponse]:
    """Return what searches by equal values, by a method of an index that takes the other fields."""

    def answer(service: Service, request: ColumnsRequest) -> SearchResponse:
        search = getattr(service.open_tokens(request.index), method)
        others = ("index", "query", "all_columns", "explain", *OF_READING)
        given = {name: value for name, value in vars(request).items() if name not in others}
        queries = request.read_columns(numbers=True)
        return SearchResponse(request, [search(query, **given) for query in queries])

    return answer


def _search(service: Service, request: requests.SearchRequest) -> SearchResponse:
    if request.keys is not None:
        request = request.with_key()
    if request.method == "transform":
        return transform.search_by_programs(service, request)
    if (key := request.read_key()) is not None:
        options = request.by_keys(similar=key.is_similar)
        if key.is_similar:
            return SearchResponse(
                request, [service.open_for(request).search_composite(key, **options)]
            )
        return SearchResponse(
            request, [service.open_composite(request.index).search(key, **options)]
        )
    request.require_for_a_column()
    if request.method in ("overlap", "containment"):
        return service.run(request.by_tokens())
    queries = request.read_columns(numbers=request.method == "all")
    index, asked = service.open_for(request), request.options()
    asked |= {"exclude_self": request.exclude_self, "fold_copies": request.fold_copies}
    if request.method == "semantic":
        found = index.search_batch(queries, rerank=request.rerank, **asked)
        return SearchResponse(request, found)
    from pexeso.answers.combined import search_combined

    if request.max_candidates is not None:
        asked["max_candidates"] = request.max_candidates
    asked["models"] = None if request.model is None else (request.model,)
    return SearchResponse(request, [search_combined(index, query, **asked) for query in queries])


def _explain(service: Service, request: requests.ExplainRequest) -> Explanation | KeyExplanation:
    if (key := request.read_key()) is not None:
        return composite_keys.explain_key(service.open_composite(request.index), request, key)
    column, named = request.read_column(), requests.split_lake_column(request.lake_column)
    return service.open_for(request).explain(column, *named, **request.options())


def _join(service: Service, request: requests.JoinRequest) -> JoinResponse:
    if request.transform:
        if request.lake_column is None:
            request = transform.with_best_table(service, request)
        return transform.join_by_program(request)
    if (key := request.read_key()) is not None:
        return composite_keys.join_key(service.open_composite(request.index), request, key)
    column, options, advised = request.read_column(), request.options(), None
    index = service.open_for(request)
    if request.lake_column is None:
        match = _best(index, column, options)
        named = (match.table, match.column)
    else:
        named = requests.split_lake_column(request.lake_column)
    if request.lake_column is not None or request.is_auto:
        # The best distance to find a column with is not the best to join it with: chosen anew.
        found = index.explain(column, *named, **options)
        match, advised = found.match, found.options
    table, position = _table_of(column)
    joined = match.join_with_report(table, position, **_fields_of(JoinOptions, request))
    return JoinResponse(column.describe(), match, advised, joined)


def _best(index: Index, column: QueryColumn, options: Mapping[str, Any]) -> Match:
    # Of one column there is no order.
    plain = {"k": 1, "exclude_self": True, "rerank": False, "fold_copies": False}
    found = index.search(column, **{**options, **plain})
    if not len(found):
        raise RequestError(
            "No column of the lake has a value within distance %s of '%s'. Try a larger "
            "{max_distance}.",
            f"{found.options.max_distance:g}",
            column.column,
        )
    return found[0]


def _table_of(column: QueryColumn) -> tuple[pa.Table, int]:
    """Return the table of a query column, every cell as text, and the position of the column."""
    import pyarrow as pa

    from pexeso.lake.columns import label_columns
    from pexeso.lake.containers.reader import read_table

    if column.file is None:
        return pa.table([column.values], names=[column.column or "value"]), 0
    table = read_table(column.file, options=column.reading)
    labels = label_columns(table.names)
    return pa.Table.from_arrays(table.columns, names=labels), labels.index(str(column.column))


def _batch(
    service: Service,
    request: requests.BatchRequest,
    *,
    lines: Iterable[NumberedLine] | None = None,
    begin: Callable[[SearchOptions], None] | None = None,
    write: Callable[[list[Answer]], object] | None = None,
    progress: Callable[[BatchRun], None] | None = None,
) -> BatchResponse:
    """Answer a batch.

    Parameters
    ----------
    service, request
    lines : iterable of (number, text), optional
        The lines, where they are no file.
    begin : callable, optional
        Called with the options of all searches before the first.
    write : callable, optional
        Called with the answers of each chunk, where they go to no file; the response then has none.
    progress : callable, optional
        Called after each chunk that went to a file.
    """
    from pexeso.search.batch_file import BatchRun, answer_lines, run_batch

    lines = _lines(request) if lines is None else lines
    with searching(service.open_for, request) as (index, passes):
        if begin is not None:
            begin(index.search_options(request.options()))
        names = ("explain", "rerank", "exclude_self", "fold_copies")
        asked = {name: getattr(request, name) for name in names}
        asked |= {**request.options(), "passes": passes}
        if request.output is not None:
            asked |= {"resume": request.resume, "restart": request.restart, "progress": progress}
            return BatchResponse(run_batch(index, lines, request.output, **asked))
        response = BatchResponse(BatchRun())
        for answers in answer_lines(index, lines, **asked):
            for answer in answers:
                response.run.note(answer)
            (response.answers.extend if write is None else write)(answers)
        return response


def _lines(request: requests.BatchRequest) -> Iterable[NumberedLine]:
    """Return the lines of a batch, after a look at whether their file can be read."""
    from pexeso.search.query import batch_lines

    if not isinstance(request.queries, str):
        return enumerate(map(json.dumps, request.queries), 1)
    there = os.path.exists(request.queries) and os.path.exists(request.output or "")
    if there and os.path.samefile(request.queries, request.output):
        raise OutputError(
            f"'{request.output}' is the file of queries: choose another name for the answers."
        )
    for _ in batch_lines(request.queries):
        break
    return batch_lines(request.queries)


def _build(service: Service, request: requests.BuildRequest, **live: Any) -> IndexInfo:
    from pexeso.index import build_index

    given = dict(vars(request))
    return build_index(given.pop("lake"), given.pop("index"), **given, **live).info()


def _estimate(service: Service, request: requests.EstimateRequest, **live: Any) -> Estimate:
    from pexeso.diagnostics.estimate import estimate_build

    return estimate_build(request.lake, BuildOptions(**_fields_of(BuildOptions, request)), **live)


def _tune(service: Service, request: requests.TuneRequest) -> Advice:
    return service.open(request.index, "cpu", model=request.model).tune(
        request.labels, min_precision=request.min_precision
    )


def _store(request: Any) -> Store:
    from pexeso.store.opening import open_store_anywhere

    return open_store_anywhere(request.index)


def _info(
    service: Service, request: requests.InfoRequest
) -> IndexInfo | BuildReport | ReasonListing:
    from pexeso.diagnostics.info import index_info, last_report, list_reasons

    store = _store(request)
    if request.left_out or request.notes:
        return list_reasons(store, notes=request.notes)
    return (last_report if request.report else index_info)(store)


def _check(service: Service, request: requests.CheckRequest, **live: Any) -> CheckResponse:
    from pexeso.diagnostics.check import check_index

    response = CheckResponse(check_index(request.index, **live))
    if response.failures:
        return response
    manifest = _store(request).manifest
    return replace(response, n_files=sum(1 for _ in manifest.files()), n_bytes=manifest.n_bytes)


def _rules(service: Service, request: requests.RulesRequest) -> RulesResponse:
    if request.index is None:
        from pexeso.lake.normalise.rules import DEFAULT_RULES

        return RulesResponse(DEFAULT_RULES, {})
    from pexeso.parts.metadata import require_contents
    from pexeso.search.opening import normaliser_of

    store = _store(request)
    require_contents(store.manifest)
    normaliser = normaliser_of(store)
    return RulesResponse(normaliser.rules, normaliser.extra)


def _keys(service: Service, request: requests.KeysRequest) -> FoundKeys:
    from pexeso.composite.candidate_keys import find_keys

    given = dict(vars(request))
    return find_keys(given.pop("table"), **given)


def _doctor(service: Service, request: requests.DoctorRequest) -> DoctorResponse:
    from pexeso.diagnostics.doctor import diagnose

    return DoctorResponse(diagnose(request.folder))


_VERBS: dict[str, Callable[..., Any]] = {
    "build": _build,
    "append": _calls("pexeso.build.append:append"),
    "delete": _calls("pexeso.build.delete:delete"),
    "compact": _calls("pexeso.build.compact:compact"),
    "add_parts": _calls("pexeso.build.add_part:add_parts"),
    "add_model": _calls("pexeso.build.add_model:add_model"),
    "search": _search,
    "overlap": _searches("overlap"),
    "contain": _searches("contain"),
    "batch": _batch,
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
    "graph": graph.graph,
    "export": graph.export,
}
