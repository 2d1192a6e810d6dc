"""What can be asked for: one frozen dataclass for each verb."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from pexeso.answers.by_method import METHODS
from pexeso.composite.key_options import (
    DEFAULT_KEYS,
    DEFAULT_MAX_COLUMNS,
    DEFAULT_NEARLY,
    require_key_options,
)
from pexeso.errors import InputError
from pexeso.join.options import JoinOptions
from pexeso.options import (
    DEFAULT_MIN_CONTAINMENT,
    BuildOptions,
    require_min_containment,
)
from pexeso.registry import require_parts
from pexeso.service.bases import (
    OF_READING,
    ColumnsRequest,
    DistanceRequest,
    IndexRequest,
    PresetRequest,
    QueryRequest,
    ReadingRequest,
    Request,
    RequestError,
    SparkRequest,
)
from pexeso.thresholds.advice import require_min_precision

if TYPE_CHECKING:
    from pexeso.lake.catalog import Catalog

WAYS = ("auto", "none", "bloom", "xash", "intersection")
FIRST_COLUMNS = ("postings", "cardinality", "order", "longest")
_OF_EQUAL_KEYS = ("row_filter", "first_column")
_OF_KEYS = ("k", "min_joinability", "exclude_self")
_OF_SIMILAR_KEYS = ("max_distance", "explain", "device", "memory_budget", "kernel", "model")
_OF_TRANSFORM = (
    "index",
    "query",
    "lake_column",
    "transform",
    "program",
    "how",
    "aggregate",
    "suffix",
    "provenance",
    "many_to_many",
    "many_to_one",
)
_OF_TOKENS = (
    *("index", "query", "all_columns", "explain", "exclude_self", "k", "fold_copies"),
    *OF_READING,
)


@dataclass(frozen=True, kw_only=True)
class SearchRequest(ColumnsRequest, DistanceRequest, verb="search"):
    """Find the columns that a query column can be joined with.

    Attributes
    ----------
    method : {"semantic", "overlap", "containment", "transform", "all"}
        By values alike, by equal values, by a learned program, or by all evidence in one list.
    min_joinability : float or None
        In (0, 1]; by containment the smallest one.
    max_candidates : int or None
        By programs: columns of the lake that programs are learned from, at least 1.
    counts : {"exact", "decide"} or None
        See `pexeso.options.SearchOptions`.
    rerank : bool
        Order what semantic search finds by the similarity of all values; other methods have an
        order of their own.
    keys : {"auto"} or None
        `query` is a file alone: search by the key that `pexeso.find_keys` proposes first.
    row_filter : {"auto", "none", "bloom", "xash", "intersection"}
        Of a composite key, ``FILE:COLUMN,COLUMN``: how rows without the key are sorted out. The
        answer is the same.
    first_column : str
        Of a composite key: what chooses the column that is looked up first, see
        `pexeso.composite.query.first_column`. The answer is the same.
    """

    method: Literal[METHODS] = "semantic"  # type: ignore[valid-type]
    min_joinability: float | None = None
    max_candidates: int | None = None
    counts: str | None = None
    rerank: bool = True
    keys: Literal["auto"] | None = None
    row_filter: Literal[WAYS] = "auto"  # type: ignore[valid-type]
    first_column: Literal[FIRST_COLUMNS] = "postings"  # type: ignore[valid-type]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_candidates is not None and self.max_candidates < 1:
            raise InputError(f"max_candidates is at least 1. Got {self.max_candidates!r}.")
        if self.method in ("semantic", "all"):
            if self.method == "semantic":
                others = {field.name for field in fields(self)} - {"max_candidates"}
                self.require_use(others, "Semantic search")
            return
        usable = {*_OF_TOKENS, "method", "rerank"}
        if self.method == "transform":
            usable |= {"min_joinability", "max_candidates"}
            self.require_use(usable, "{method} transform learns programs and")
            return
        if self.method == "containment":
            usable.add("min_joinability")
        self.require_use(usable, f"{{method}} {self.method} compares equal texts and")

    def with_key(self) -> SearchRequest:
        """Return the same request with the columns of the key that is found for the file.

        Raises
        ------
        RequestError
            The request names columns, or values in place of a file.
        QueryError
            The table has no key.
        """
        if self.column is not None or not isinstance(self.query, str) or self.all_columns:
            raise RequestError("{keys} takes a file alone. Got %r.", self.query)
        from pexeso.composite.candidate_keys import choose_key

        key = choose_key(self.query, reading=self.reading)
        columns = ",".join(f"#{position}" for position in key.positions)
        return replace(self, query=f"{self.query}:{columns}", keys=None)

    def by_keys(self, *, similar: bool) -> dict[str, Any]:
        """Return the options of the search where the query is a composite key.

        Parameters
        ----------
        similar : bool
            Whether a column of it matches similar values.

        Raises
        ------
        RequestError
            One was given that has no use there.
        """
        names = (*_OF_KEYS, "max_distance") if similar else (*_OF_KEYS, *_OF_EQUAL_KEYS)
        usable = {"index", "query", *names, *(_OF_SIMILAR_KEYS if similar else ())}
        columns = "with similar values" if similar else "without a column marked ~"
        self.require_use(usable, f"A search by a composite key {columns}")
        return {name: getattr(self, name) for name in names}

    def require_for_a_column(self) -> None:
        """Refuse options of composite keys."""
        self.require_use({field.name for field in fields(self)} - {*_OF_EQUAL_KEYS}, "One column")

    def by_programs(self) -> dict[str, Any]:
        """Return the options of the search where `method` learns programs."""
        names = ("k", "min_joinability", "exclude_self", "fold_copies")
        options = {name: getattr(self, name) for name in names}
        if self.max_candidates is not None:
            options["max_candidates"] = self.max_candidates
        return options

    def by_tokens(self) -> OverlapRequest | ContainRequest:
        """Return the same request as one by equal values, where `method` is such a search."""
        options = {name: value for name in _OF_TOKENS if (value := getattr(self, name)) is not None}
        if self.method == "overlap":
            return OverlapRequest(**options)
        share = DEFAULT_MIN_CONTAINMENT if self.min_joinability is None else self.min_joinability
        return ContainRequest(**options, min_containment=share)


@dataclass(frozen=True, kw_only=True)
class OverlapRequest(ColumnsRequest, verb="overlap"):
    """Find the k columns that share most distinct values with a query column."""


@dataclass(frozen=True, kw_only=True)
class ContainRequest(ColumnsRequest, verb="contain"):
    """Find the columns that contain the values of a query column.

    Attributes
    ----------
    min_containment : float
        In (0, 1]: the share of its distinct values.
    verify : bool
        Of an index with bands: count the values of every candidate; else estimate from signatures.
    """

    min_containment: float = DEFAULT_MIN_CONTAINMENT
    verify: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require_min_containment(self.min_containment)


@dataclass(frozen=True, kw_only=True)
class ExplainRequest(QueryRequest, DistanceRequest, verb="explain"):
    """Explain why a query column and one of the lake match or not.

    Attributes
    ----------
    lake_column : str
        ``TABLE:COLUMN``, as results name it; of a key of several columns
        ``TABLE:COLUMN,COLUMN``, or ``TABLE`` for the columns that join most.
    """

    lake_column: str

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.may_be_key:
            require_lake_column(self.lake_column)


@dataclass(frozen=True, kw_only=True)
class JoinRequest(QueryRequest, DistanceRequest, JoinOptions, verb="join"):
    """Add to a table the matching rows of one of the lake.

    See also `pexeso.join.options.JoinOptions`.

    Attributes
    ----------
    lake_column : str or None
        As in `ExplainRequest`; None: the one that a search lists first.
    transform : bool
        Join by a program that writes keys of one table in the form of the other's, learned from
        the two; see `pexeso.learn_transformation`.
    program : str or None
        A file of programs to use instead of learning.
    many_to_one : bool
        Allow programs that make one key of several values.
    """

    lake_column: str | None = None
    transform: bool = False
    program: str | None = None
    many_to_one: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.transform:
            self.require_use(_OF_TRANSFORM, "A join by a program")
            if self.lake_column is None and self.program is not None:
                raise RequestError(
                    "{program} is for a table of the lake that you name: add TABLE or TABLE:COLUMN."
                )
            return
        if self.program is not None:
            raise RequestError("{program} is for a join by a program: add {transform}.")
        if self.many_to_one:
            raise RequestError("{many_to_one} is for a join by a program: add {transform}.")
        if self.lake_column is not None and not self.may_be_key:
            require_lake_column(self.lake_column)


@dataclass(frozen=True, kw_only=True)
class BatchRequest(SparkRequest, DistanceRequest, ReadingRequest, verb="batch"):
    """Answer many queries; on Spark where `master` is given.

    Attributes
    ----------
    queries : str or tuple of mappings
        A file of JSON lines, or the lines as objects. A line may say for itself how its file is
        read, by the names of the fields for that.
    output : str or None
        The file of answers; None: the response has them.
    min_joinability, k, counts, exclude_self, explain, rerank, fold_copies
        As in `SearchRequest`.
    resume, restart : bool
        Go on with a file of answers that exists; or overwrite it.
    """

    queries: str | tuple[Mapping[str, Any], ...]
    output: str | None = None
    min_joinability: float | None = None
    k: int | Literal["all"] | None = None
    counts: str | None = None
    exclude_self: bool = False
    explain: bool = False
    rerank: bool = True
    fold_copies: bool = True
    resume: bool = False
    restart: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.resume and self.restart:
            raise RequestError("Give {resume} or {restart}, not both.")
        if self.output is None and (self.resume or self.restart):
            raise RequestError("{resume} and {restart} need a file of answers: {output}.")
        if self.conf and self.master is None:
            raise RequestError(
                "{conf} is for a search on Spark: give {master} too, such as {master} local[*]."
            )


@dataclass(frozen=True, kw_only=True)
class BuildRequest(PresetRequest, SparkRequest, BuildOptions, verb="build"):
    """Build an index of a lake; for the other fields see `pexeso.options.BuildOptions`.

    Attributes
    ----------
    lake : str
        A folder of tables, a table, a URL, or the name of a Spark table or database.
    overwrite : bool
        Replace an index that exists.
    """

    lake: str
    overwrite: bool = False


@dataclass(frozen=True, kw_only=True)
class EstimateRequest(PresetRequest, BuildOptions, verb="estimate"):
    """Estimate what a build of a lake, a folder or one table, with the same options will cost."""

    lake: str


@dataclass(frozen=True, kw_only=True)
class AppendRequest(SparkRequest, verb="append"):
    """Add the tables of a lake that are new or have changed; see `pexeso.build.append.append`."""

    lake: str | None = None
    delete_missing: bool = False
    compare: Literal["modified", "content"] = "modified"


@dataclass(frozen=True, kw_only=True)
class CompactRequest(SparkRequest, verb="compact"):
    """Merge small partitions and purge deleted columns; `everything`: divide all columns anew."""

    everything: bool = False


@dataclass(frozen=True, kw_only=True)
class AddPartsRequest(SparkRequest, verb="add_parts"):
    """Add parts, of `pexeso.registry.choices`, to an index that exists."""

    parts: tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        require_parts(self.parts)


@dataclass(frozen=True, kw_only=True)
class AddModelRequest(SparkRequest, verb="add_model"):
    """Add a model to an index that exists; see `pexeso.build.add_model.add_model`."""

    model: str
    dimensions: int | None = None
    value_vectors: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        BuildOptions(model=self.model, dimensions=self.dimensions, value_vectors=self.value_vectors)


@dataclass(frozen=True, kw_only=True)
class DeleteRequest(IndexRequest, verb="delete"):
    """Delete tables, by the names that searches give, from an index."""

    tables: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class InfoRequest(IndexRequest, verb="info"):
    """Show what is in an index.

    With `report` show what the last build or update did instead, with `left_out` every table and
    column that was left out, with `notes` every note about a table that was repaired.
    """

    report: bool = False
    left_out: bool = False
    notes: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.report + self.left_out + self.notes > 1:
            raise RequestError("Give one of {report}, {left_out} and {notes}.")


@dataclass(frozen=True, kw_only=True)
class CheckRequest(IndexRequest, verb="check"):
    """Compare every byte of an index with its checksums."""


@dataclass(frozen=True, kw_only=True)
class TuneRequest(IndexRequest, ReadingRequest, verb="tune"):
    """Choose thresholds from a table of labelled pairs; see `pexeso.Index.tune`."""

    labels: str
    min_precision: float | None = None
    model: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.min_precision is not None:
            require_min_precision(self.min_precision)


@dataclass(frozen=True, kw_only=True)
class RulesRequest(Request, verb="rules"):
    """List the rules by which values are normalised: by default, or in an index."""

    index: str | None = None


@dataclass(frozen=True, kw_only=True)
class KeysRequest(ReadingRequest, verb="keys"):
    """Propose keys for a table; see `pexeso.find_keys`."""

    table: str
    max_columns: int = DEFAULT_MAX_COLUMNS
    nearly: float = DEFAULT_NEARLY
    k: int = DEFAULT_KEYS

    def __post_init__(self) -> None:
        super().__post_init__()
        require_key_options(self.max_columns, self.nearly, self.k)


@dataclass(frozen=True, kw_only=True)
class DoctorRequest(Request, verb="doctor"):
    """See whether this machine has what pexeso needs, to write an index to `folder` too."""

    folder: str = "."


def require_lake_column(spec: str) -> None:
    """Refuse a text that cannot be ``TABLE:COLUMN`` of the lake.

    Raises
    ------
    InputError
        It has no colon, or no table.

    Examples
    --------
    >>> require_lake_column("geo/cities.csv:city")
    """
    if ":" not in spec[1:]:
        raise _no_column(spec)


def split_lake_column(catalog: Catalog, spec: str) -> tuple[str, str]:
    """Split ``TABLE:COLUMN`` of the lake; see `pexeso.lake.catalog.Catalog.split`.

    Raises
    ------
    InputError
        It names no column.
    """
    table, column = catalog.split(spec)
    if not table or column is None:
        raise _no_column(spec)
    return table, column


def _no_column(spec: str) -> InputError:
    return InputError(
        f"A column of the lake must be given as TABLE:COLUMN, as search prints them. Got {spec!r} "
        "instead."
    )
