"""Requests for the join graph of a lake, and what answers them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pexeso.faces.service.bases import (
    Device,
    Limit,
    MemoryBudget,
    Model,
    Overwrite,
    RequestError,
    SparkRequest,
    require_master,
    top_k,
)
from pexeso.faces.service.schema import FIND, OUTPUT, THRESHOLDS, Fraction, Share, option
from pexeso.faces.service.searches import index_of_run
from pexeso.joins.exports.files import (
    FORMATS,
    NAMESPACE,
    OF_FILES,
    ExportFormat,
    format_named,
    format_of_file,
    namespace_parts,
    target_of,
    write_export,
)
from pexeso.joins.graph.graphs import (
    METHODS,
    OVERLAP,
    SEMANTIC,
    ColumnGraph,
    EdgeStream,
    GraphOptions,
    stream_edges,
)
from pexeso.options import DEFAULT_COLUMNS, parse_bytes
from pexeso.runtime.formatting import shown

if TYPE_CHECKING:
    from pexeso.faces.service.verbs import Service


_OF_VALUES_ALIKE = {"max_distance", "device", "memory_budget", "model"}


class GraphBase(SparkRequest, frozen=True, kw_only=True):
    """Base of requests for a join graph; see `pexeso.joins.graph.graphs.GraphOptions`."""

    method: Annotated[
        Literal[METHODS] | None,  # type: ignore[valid-type]
        option(
            "By equal values (overlap), or by similar values (semantic).",
            group=FIND,
            default="overlap if the index has that part; semantic with --max-distance or --model",
            label="What joins",
            labels={OVERLAP: "equal values", SEMANTIC: "similar values"},
        ),
    ] = None
    k: Annotated[
        Limit,
        top_k(
            "The N strongest edges of each column; all: every edge.",
            str(DEFAULT_COLUMNS),
            "Joins of a column, at most",
        ),
    ] = None
    fold_copies: Annotated[
        bool,
        option("Let one column represent all columns with (nearly) the same values.", group=FIND),
    ] = False
    min_joinability: Annotated[
        Share | None,
        option(
            "Minimum share of the distinct values of a column that match in the other.",
            group=THRESHOLDS,
            metavar="0..1",
            label="Share of its values, at least",
            default="0.5, and 1 for dbt",
            usual="It is the share of your values that must match: 0.5 is a usual value.",
        ),
    ] = None
    max_distance: Annotated[
        Fraction | None,
        option(
            "Maximum distance of similar values.",
            group=THRESHOLDS,
            metavar="0..1",
            default="0 for columns of dates, numbers or codes, otherwise what suits the model",
        ),
    ] = None
    model: Model = None
    device: Device = "auto"
    memory_budget: MemoryBudget = None
    overwrite: Overwrite = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.options(GraphOptions.min_joinability).method == OVERLAP:
            usable = {*self.__struct_fields__} - _OF_VALUES_ALIKE
            self.require_use(usable, "A graph by equal values")
        require_master(self.master, self.conf, "a graph made")
        if self.memory_budget is not None:
            parse_bytes(self.memory_budget)

    def options(self, min_joinability: float) -> GraphOptions:
        """Return the options of the graph; `min_joinability` where the request has none."""
        threshold = min_joinability if self.min_joinability is None else self.min_joinability
        method = self.method
        if method is None and self.model is not None:
            method = SEMANTIC
        return GraphOptions(method, threshold, self.max_distance, self.k, self.fold_copies)


class GraphRequest(GraphBase, frozen=True, kw_only=True):
    """Find all pairs of columns of a lake that join; the response has the edges, or `output`."""

    verb: ClassVar[str] = "graph"

    output: Annotated[
        str | None,
        option(
            f"Write the edges to a file that ends in {', '.join(OF_FILES)}.",
            "-o",
            "--output",
            group=OUTPUT,
            metavar="FILE",
        ),
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.output is not None:
            format_of_file(self.output)


class ExportRequest(GraphBase, frozen=True, kw_only=True):
    """Write the join graph of a lake for another tool: a file, or a folder where it reads folders.

    For `namespace` see `pexeso.joins.exports.files.namespace_parts`.
    """

    verb: ClassVar[str] = "export"

    format: Literal[tuple(FORMATS)]  # type: ignore[valid-type]
    output: Annotated[
        str,
        option(
            "The file; for dbt a folder, such as models.",
            "-o",
            "--output",
            group=OUTPUT,
            metavar="PATH",
        ),
    ]
    namespace: Annotated[
        str,
        option(
            "Name of the lake in the other tool: the source of dbt, or SERVICE.DATABASE.SCHEMA of "
            "OpenMetadata.",
            group=OUTPUT,
            metavar="NAME",
        ),
    ] = NAMESPACE

    def __post_init__(self) -> None:
        super().__post_init__()
        form = format_named(self.format)
        if form.file is None and PurePath(self.output).suffix.lower() != form.suffix:
            raise RequestError(
                "{output} must end in %s for %s. Got %s instead.",
                *(form.suffix, self.format, shown(self.output)),
            )
        levels = form.levels
        if levels and len(namespace_parts(self.namespace)) != len(levels):
            raise RequestError(
                "{namespace} must be %s for %s, with double quotes around names that have a dot. "
                "Got %s instead.",
                ".".join(levels),
                self.format,
                shown(self.namespace),
            )


@dataclass(frozen=True)
class GraphWritten:
    path: str
    counts: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {"output": self.path, **self.counts}


def graph_document(stream: EdgeStream) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    """Return the members of the JSON form of a graph but its edges, and the edges."""
    document = {"options": stream.options, "columns": stream.n_columns}
    document["copies"] = stream.copies.to_pylist()
    return document, stream.rows()


# Reads a stream while what makes it is open.
Take = Callable[["EdgeStream"], Any]


def graph(
    service: Service, request: GraphRequest, *, take: Take | None = None, **live: Any
) -> ColumnGraph | GraphWritten | Any:
    if request.output is not None:
        form = format_of_file(request.output)
        return _written(service, request, form, request.output, NAMESPACE, live)
    with _edges(service, request, request.options(GraphOptions.min_joinability), live) as stream:
        if take is not None:
            return take(stream)
        return ColumnGraph.of(stream)


def export(service: Service, request: ExportRequest, **live: Any) -> GraphWritten:
    form = format_named(request.format)
    if form.equal_values:
        store = service.searches(request.index).opened.store
        if request.options(form.min_joinability).method_for(store) != OVERLAP:
            raise RequestError(
                "{format} %s takes columns of equal values alone, since it compares values as they "
                "are. Leave out what asks for values alike; an index that has no part for equal "
                "values gets it by 'pexeso add-part %s overlap'.",
                request.format,
                request.index,
            )
    return _written(service, request, form, request.output, request.namespace, live)


def _written(
    service: Service,
    request: GraphBase,
    form: ExportFormat,
    output: str,
    namespace: str,
    live: Mapping[str, Any],
) -> GraphWritten:
    # What cannot be written is refused before anything is compared.
    target_of(form, output, overwrite=request.overwrite)
    with _edges(service, request, request.options(form.min_joinability), live) as stream:
        path = write_export(form, stream, output, namespace=namespace, overwrite=request.overwrite)
        return GraphWritten(str(path), stream.summary())


@contextmanager
def _edges(
    service: Service, request: GraphBase, options: GraphOptions, live: Mapping[str, Any]
) -> Iterator[EdgeStream]:
    opened_sets = service.searches(request.index).opened
    if options.method_for(opened_sets.store) == OVERLAP:
        # Models are not loaded.
        if request.master is None:
            yield stream_edges(opened_sets, options, **live)
            return
        from pexeso.build.spark.session import spark_session
        from pexeso.joins.graph.spark_tasks import edges_on_spark

        with spark_session(request.master, conf=request.conf) as spark:
            yield stream_edges(opened_sets, options, edges_on=edges_on_spark(spark), **live)
        return

    with index_of_run(service.open_for, request) as (index, passes):
        yield index.stream_graph(passes=passes, **vars(options), **live)
