"""The service: runs requests of any verb on indexes that it keeps open; one is served to many."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import replace
from importlib import import_module
from threading import BoundedSemaphore, Lock
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from pexeso.build.parts.metadata import normaliser_of, require_contents
from pexeso.errors import PexesoError, StoredIndexError
from pexeso.faces.service import (
    acquisition,
    graph,
    index_requests,
    judging,
    lake,
    redundancy,
    requests,
    searches,
    transform,
)
from pexeso.faces.service.bases import (
    REQUESTS,
    Answer,
    CheckResponse,
    DistanceRequest,
    DoctorResponse,
    Request,
    RulesResponse,
    SearchResponse,
)
from pexeso.lake.normalise.rules import DEFAULT_RULES

if TYPE_CHECKING:
    from pexeso.build.diagnostics.estimate import Estimate
    from pexeso.build.diagnostics.info import IndexInfo, ReasonListing
    from pexeso.build.report import BuildReport
    from pexeso.contracts import JoinChecks
    from pexeso.faces.service.graph import GraphBase
    from pexeso.faces.service.requests import SearchRequest
    from pexeso.index import Index, Snapshot
    from pexeso.semantic.encoded_query import EncodedQuery
    from pexeso.semantic.thresholds.advice import Advice
    from pexeso.store.local.reader import Store


# Whether an index that is open is the one that is stored, or an older one, or the last of it.
State = Literal["current", "newer", "gone"]


class Service:
    """Answers requests by indexes that it opens.

    With `keep_open` every index that was searched stays open, for a process that answers many
    requests. With `follow` the newest generation of such an index is searched, else the one that
    was opened, even if it is deleted, until `reload`.
    """

    def __init__(self, *, keep_open: bool = False, follow: bool = True) -> None:
        self._keep_open = keep_open
        self._follow = follow
        self._indexes: dict[tuple[Any, ...], Index] = {}
        self._lock = Lock()

    def run(self, request: Request, **live: Any) -> Any:
        """Run a request; `live` has what JSON cannot hold, such as `progress`, a callable."""
        return VERBS[request.verb].answer(self, lake.with_file(self, request), **live)

    def answer(self, values: Mapping[str, Any]) -> Answer:
        """Run a request given as plain JSON, and return the response as plain JSON."""
        return self.run(Request.from_dict(values)).to_dict()

    def open(
        self,
        path: str,
        device: str = "auto",
        budget: str | int | None = None,
        model: str | None = None,
    ) -> Index:
        from pexeso.index import open_index

        key = (path, device, budget, model)
        with self._lock:
            cached_index = self._indexes.get(key)
            if cached_index is not None:
                if self._follow:
                    cached_index.refresh()
                return cached_index
            index = open_index(
                path, device=device, memory_budget=budget, model=model, keep_files=not self._follow
            )
            if self._keep_open:
                self._indexes[key] = index
            return index

    def open_for(self, request: DistanceRequest | GraphBase) -> Index:
        """Return the index of a request, open where it is to be searched."""
        return self.open(request.index, request.device, request.memory_budget, request.model)

    def pinned(self) -> Self:
        """Return what shares all that is open, and keeps it after a `reload` of this one."""
        return copy(self)

    def is_open(self, path: str) -> bool:
        return bool(self._opened(path))

    def _opened(self, path: str) -> list[Index]:
        with self._lock:
            return [index for (open_path, *_), index in self._indexes.items() if open_path == path]

    def store(self, path: str) -> Store:
        """Return the files of an index: those that are open, where these are to be kept."""
        from pexeso.build.visible import open_visible

        return open_visible(path) if self._follow else self.open(path)._opened.whole

    def reload(self, path: str) -> bool:
        """Switch what is open of an index to its newest generation; return if there was one."""
        with self._lock:
            # What is pinned has the indexes as they were.
            indexes = {
                key: copy(index) if key[0] == path else index
                for key, index in self._indexes.items()
            }
            newer = [index.refresh() for key, index in indexes.items() if key[0] == path]
            self._indexes = indexes
            return any(newer)

    def state(self, path: str) -> State:
        """Return how what is kept open of an index compares with what is stored."""
        from pexeso.build.visible import open_visible

        indexes = self._opened(path)
        if indexes and all(index.store.is_newest() for index in indexes):
            return "current"
        try:
            stored = open_visible(path).manifest.snapshot
        except StoredIndexError:
            return "gone"
        same = all(index.store.manifest.snapshot == stored for index in indexes)
        return "current" if same else "newer"

    def searches(self, path: str) -> Snapshot:
        """Return what searches an index by equal values, keys and programs, and finds tables.

        Models are not loaded, unless indexes are kept open.
        """
        if self._keep_open:
            return self.open(path)._snapshot
        from pexeso.index import Snapshot
        from pexeso.semantic.open_index import open_without_models

        return Snapshot(open_without_models(path))


def run(request: Request, **live: Any) -> Any:
    return Service().run(request, **live)


def _call(home: str, first: str = "index") -> Callable[..., Any]:
    """Return what calls the function at ``module:name`` with a first and the other fields."""

    def answer(service: Service, request: Request, **live: Any) -> Any:
        arguments = request.arguments()
        module, _, name = home.partition(":")
        return getattr(import_module(module), name)(arguments.pop(first), **arguments, **live)

    return answer


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
    from pexeso.build.diagnostics.info import check_index

    response = CheckResponse(check_index(request.index, **live))
    if response.failures:
        return response
    manifest = service.store(request.index).manifest
    return replace(response, n_files=sum(1 for _ in manifest.files()), n_bytes=manifest.n_bytes)


def _rules(service: Service, request: requests.RulesRequest) -> RulesResponse:
    if request.index is None:
        return RulesResponse(DEFAULT_RULES, {})

    store = service.store(request.index)
    require_contents(store.manifest)
    normaliser = normaliser_of(store)
    return RulesResponse(normaliser.rules, normaliser.extra)


def _verify(service: Service, request: requests.VerifyRequest) -> JoinChecks:
    from pexeso.contracts import record_join, verify

    if request.left is None or request.right is None:
        return verify(request.path)
    return record_join(
        request.path,
        request.left,
        request.right,
        max_distance=request.max_distance,
        rules=request.reading_rules,
    )


def _doctor(service: Service, request: requests.DoctorRequest) -> DoctorResponse:
    from pexeso.build.diagnostics.doctor import diagnose

    return DoctorResponse(diagnose(request.folder))


class Verb(NamedTuple):
    """How requests of one class are answered, and how the command line prints the response."""

    answer: Callable[..., Any]
    lines: Callable[[Any], Iterable[str]] | None = None


VERBS: dict[str, Verb] = {}


def add_verb(
    kind: type[Request],
    answer: Callable[..., Any],
    lines: Callable[[Any], Iterable[str]] | None = None,
) -> None:
    """Add a verb: its request, its answer, and, for a command of its own, the lines that it prints.

    A capability calls this for itself; those of pexeso are added below.
    """
    REQUESTS[kind.verb] = kind
    VERBS[kind.verb] = Verb(answer, lines)


for _kind, _answer in (
    (index_requests.BuildRequest, _build),
    (index_requests.AppendRequest, _call("pexeso.build.updates:append")),
    (index_requests.DeleteRequest, _call("pexeso.build.updates:delete")),
    (index_requests.CompactRequest, _call("pexeso.build.updates:compact")),
    (index_requests.AddPartsRequest, _call("pexeso.build.updates:add_parts")),
    (index_requests.AddModelRequest, _call("pexeso.build.updates:add_model")),
    (requests.SearchRequest, searches.search),
    (requests.BatchRequest, searches.batch),
    (requests.JoinRequest, searches.join),
    (requests.JoinSqlRequest, searches.join_sql),
    (requests.ExplainRequest, searches.explain),
    (requests.TuneRequest, _tune),
    (judging.JudgeRequest, judging.judge),
    (index_requests.EstimateRequest, _estimate),
    (requests.InfoRequest, _info),
    (requests.RulesRequest, _rules),
    (requests.KeysRequest, _call("pexeso.composite.candidate_keys:find_keys", "table")),
    (requests.CheckRequest, _check),
    (requests.VerifyRequest, _verify),
    (requests.DoctorRequest, _doctor),
    (redundancy.RedundancyRequest, redundancy.redundancy),
    (redundancy.VerifyPlanRequest, _call("pexeso.redundancy.plan_actions:verify_plan", "plan")),
    (redundancy.ApplyPlanRequest, redundancy.apply_plan),
    (redundancy.UndoPlanRequest, redundancy.undo_plan),
    (transform.TransformRequest, transform.transform),
    (acquisition.AcquireRequest, acquisition.acquire),
    (lake.BrowseRequest, lake.browse),
    (graph.GraphRequest, graph.graph),
    (graph.ExportRequest, graph.export),
):
    add_verb(_kind, _answer)


# Columns that are kept; of more, the one not used for longest is dropped.
KEPT = 8

# Distinct values of a column that is kept: at 100 dimensions it takes 40 MB at most.
MAX_VALUES = 100_000


class EncodedQueries:
    """Keeps encoded query columns, for files that do not change."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[object, ...], EncodedQuery] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: tuple[object, ...], encode: Callable[[], EncodedQuery]) -> EncodedQuery:
        """Return the column of a key, which names the index's state too; encode it if it is new."""
        with self._lock:
            cached_query = self._kept.get(key)
            if cached_query is not None:
                self._kept.move_to_end(key)
                return cached_query
        encoded = encode()
        if len(encoded.values) <= MAX_VALUES:
            with self._lock:
                self._kept[key] = encoded
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
        return encoded


# Seconds between two looks at whether the index has changed.
LOOK_EVERY = 2.0


class ServedIndex:
    """An index for many clients at a time; it is opened on first use, or by `of`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._service = Service(keep_open=True, follow=False)
        self._encoded = EncodedQueries()
        # Of two at least, so that a long request does not hold up all others.
        self._turns = BoundedSemaphore(max(2, os.cpu_count() or 1))
        self._looked: float | None = None
        self._state: State = "current"

    @classmethod
    def of(cls, path: str) -> ServedIndex:
        served = cls(path)
        served._service.open(path)
        return served

    @property
    def index(self) -> Index:
        return self._service.open(self.path)

    @contextmanager
    def turn(self) -> Iterator[Service]:
        """Wait for a turn, of which there are few, and yield a service of the snapshot of now."""
        with self._turns:
            yield self._service.pinned()

    def prepare(self) -> None:
        """Load what the first search needs ahead of it; the search reports what goes wrong."""
        with suppress(PexesoError, OSError):
            self.index._opened.loader  # noqa: B018

    def run(self, request: Request, **live: Any) -> Any:
        with self.turn() as service:
            return service.run(request, **live)

    def search(self, request: SearchRequest, *, is_kept: bool) -> SearchResponse:
        """Answer a search; `is_kept`: the file of its query column does not change."""
        return self.run(request, encoded=self._encoded if is_kept else None)

    def state(self) -> State:
        """Return whether the index has been updated or deleted since it was opened."""
        now = time.monotonic()
        if self._looked is None or now - self._looked >= LOOK_EVERY:
            self._looked = now
            with suppress(PexesoError, OSError):  # of a storage that cannot be reached now
                self._state = self._service.state(self.path)
        return self._state

    def reload(self) -> None:
        """Answer from the newest state of the index from now on; turns that have begun go on."""
        self._service.reload(self.path)
        self._looked = None
