"""Requests: one class for each verb, which declares its fields, their ranges and help texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import msgspec

from pexeso.composite import DEFAULT_KEYS, DEFAULT_MAX_COLUMNS, DEFAULT_NEARLY, LARGEST_KEY
from pexeso.errors import InputError, QueryError
from pexeso.faces.service.bases import (
    Conf,
    DistanceRequest,
    ExcludeSelf,
    FoldCopies,
    IndexRequest,
    Limit,
    Master,
    MaxDistance,
    MinJoinability,
    Model,
    Overwrite,
    QueryRequest,
    ReadingRequest,
    Request,
    RequestError,
    require_master,
    top_k,
)
from pexeso.faces.service.schema import FIND, OUTPUT, THRESHOLDS, Positive, Share, option
from pexeso.joins.options import AGGREGATIONS, HOW, PROVENANCE, VALUES, JoinOptions
from pexeso.lake.choose import KINDS
from pexeso.options import DEFAULT_COLUMNS, DEFAULT_MIN_CONTAINMENT, METHODS
from pexeso.results.query import TEXT_KINDS, QueryColumn, read_every_query

if TYPE_CHECKING:
    from pexeso.lake.catalog import Catalog

_OF_KEYS = ("k", "min_joinability", "exclude_self")
_OF_SIMILAR_KEYS = ("max_distance", "explain", "device", "memory_budget", "model")
_OF_TRANSFORM = (
    "index", "query", "lake_column", "transform", "program", "how", "aggregate", "suffix",
    "provenance", "many_to_many", "many_to_one", "accept_rule",
)  # fmt: skip
_OF_TOKENS = ("index", "query", "all_columns", "explain", "exclude_self", "k", "fold_copies")


class SearchRequest(QueryRequest, frozen=True, kw_only=True):
    """Find the columns that a query column can be joined with.

    `min_joinability` is the smallest containment where `method` is that. `keys` takes a file alone,
    and searches by the key that `pexeso.find_keys` proposes first. `explain` adds the values that
    match to the JSON form of the response.
    """

    verb: ClassVar[str] = "search"

    method: Annotated[
        Literal[METHODS],  # type: ignore[valid-type]
        option(
            "semantic (similar values), overlap and containment (equal values), transform (values "
            "that a learned rule rewrites), or all of these in one list.",
            group=FIND,
            metavar="METHOD",
            label="What joins",
            labels={
                "semantic": "similar values",
                "overlap": "most equal values",
                "containment": "holds my values",
                "transform": "a learned rule",
                "all": "all evidence",
            },
        ),
    ] = "semantic"
    k: Annotated[
        Limit,
        top_k(
            "The N best columns. Without {min_joinability}, N columns however few of their values "
            "match; all: every column that meets the thresholds.",
            f"{DEFAULT_COLUMNS} that meet the thresholds",
        ),
    ] = None
    all_columns: Annotated[
        bool,
        option(
            "Search with each text column of FILE; by equal values, with columns of numbers too.",
            group=FIND,
        ),
    ] = False
    exclude_self: ExcludeSelf = False
    fold_copies: FoldCopies = True
    keys: Annotated[
        Literal["auto"] | None,
        option("auto: search by the key that pexeso keys proposes first.", group=FIND),
    ] = None
    max_candidates: Annotated[
        Positive | None,
        option(
            "With --method transform or all: learn programs from the N columns of the lake that "
            "share most pieces of text with yours.",
            group=FIND,
            metavar="N",
            default="100, or 32 with all",
            expert=True,
        ),
    ] = None
    min_joinability: MinJoinability = None
    explain: Annotated[
        bool,
        option("Show why: the values that match, with their distances and kinds.", group=OUTPUT),
    ] = False
    rerank: Annotated[
        bool,
        option(
            "Order columns by the average similarity of your values; or by joinability.",
            group=OUTPUT,
        ),
    ] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.all_columns and (self.column is not None or not isinstance(self.query, str)):
            conflict = "values" if self.column is None else f"the column {self.column!r} too"
            raise RequestError("{all_columns} takes a file alone. Got %s.", conflict)
        if self.method == "semantic" and self.max_candidates is not None:
            raise RequestError("Semantic search has no use for {max_candidates}: leave it out.")
        if self.method in ("semantic", "all"):
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
        """Return the same request with the columns of the key that is found for the file."""
        if self.column is not None or not isinstance(self.query, str) or self.all_columns:
            raise RequestError("{keys} takes a file alone. Got %r.", self.query)
        from pexeso.composite.candidate_keys import choose_key

        key = choose_key(self.query, reading=self.reading)
        columns = ",".join(f"#{position}" for position in key.positions)
        return msgspec.structs.replace(self, query=f"{self.query}:{columns}", keys=None)

    def key_options(self, *, similar: bool) -> dict[str, Any]:
        names = (*_OF_KEYS, "max_distance") if similar else _OF_KEYS
        usable = {"index", "query", *names, *(_OF_SIMILAR_KEYS if similar else ())}
        columns = "with similar values" if similar else "without a column marked ~"
        self.require_use(usable, f"A search by a composite key {columns}")
        return self.chosen(names)

    def program_options(self) -> dict[str, Any]:
        options = self.chosen(("k", "min_joinability", "exclude_self", "fold_copies"))
        if self.max_candidates is not None:
            options["max_candidates"] = self.max_candidates
        return options

    def token_options(self) -> dict[str, Any]:
        options = self.chosen(("k", "exclude_self", "fold_copies"))
        if self.method == "containment":
            share = self.min_joinability
            options["min_containment"] = DEFAULT_MIN_CONTAINMENT if share is None else share
            options["verify"] = True
        return options

    def read_columns(self, *, numbers: bool) -> list[QueryColumn]:
        """Return the query columns; `all_columns` takes those of numbers only with `numbers`."""
        if not self.all_columns:
            return [self.read_column()]
        queries = read_every_query(
            str(self.query), kinds=KINDS if numbers else TEXT_KINDS, reading=self.reading
        )
        if not queries:
            kinds = "text, dates or numbers" if numbers else "text or dates"
            raise QueryError(f"'{self.query}' has no column of {kinds} to search with.")
        return queries


ReadingRules = Annotated[
    tuple[str, ...],
    option(
        "Read codes by a further rule of pexeso rules, such as leading-zeros.",
        "--rule",
        metavar="NAME,...",
        label="Read codes by further rules",
    ),
]


class ExplainRequest(QueryRequest, frozen=True, kw_only=True):
    """Explain why a query column and one of the lake match or not.

    `lake_column` is ``TABLE:COLUMN``, as results name it; for a key of several columns
    ``TABLE:COLUMN,COLUMN``, or ``TABLE`` for the columns that join most; None: the one that a
    search lists first.
    """

    verb: ClassVar[str] = "explain"

    lake_column: str | None = None
    reading_rules: ReadingRules = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lake_column is not None and not self.may_be_key:
            require_lake_column(self.lake_column)


JoinedValues = Annotated[
    Literal[VALUES],  # type: ignore[valid-type]
    option(
        "Join the nearest value of the lake; each value at most once, as many as possible; or all "
        "values that match.",
        label="Values to join",
    ),
]
JoinType = Annotated[
    Literal[HOW],  # type: ignore[valid-type]
    option(
        "left keeps rows without a match, inner drops them.",
        "--type",
        label="Rows without a match",
        labels={"left": "keep (left)", "inner": "drop (inner)"},
    ),
]


class JoinRequest(QueryRequest, frozen=True, kw_only=True):
    """Add to a table the matching rows of one of the lake; see `pexeso.joins.options.JoinOptions`.

    `lake_column` is that of `ExplainRequest`; None: the one that a search lists first. `transform`
    joins by programs that are learned from the two tables, or read from the file `program`; see
    `pexeso.learn_transformation`.
    """

    verb: ClassVar[str] = "join"

    lake_column: str | None = None
    reading_rules: ReadingRules = ()
    values: JoinedValues = "nearest"
    how: JoinType = "left"
    aggregate: Annotated[
        str | Mapping[str, str] | None,
        option(
            "Keep each row one where several rows of the lake match: "
            f"{', '.join(AGGREGATIONS)}. For a column of the lake's table, or for all columns that "
            "are not named (first). May be repeated.",
            metavar="[COLUMN=]WAY",
            is_repeated=True,
            label="Several rows of the lake",
        ),
    ] = None
    suffix: Annotated[
        str | None,
        option(
            "Suffix for column names of the lake's table that your table has too.",
            metavar="TEXT",
            default="they become TABLE:COLUMN",
        ),
    ] = None
    provenance: Annotated[
        tuple[str, ...],
        option(
            "Add the columns match_NAME, which say what a row was joined with, for each NAME of "
            f"{', '.join(PROVENANCE)}.",
            metavar="NAME,...|none",
        ),
    ] = ("value", "distance")
    many_to_many: Annotated[
        bool,
        option(
            "Allow a join that makes more than ten rows from each of yours on average. Without it, "
            "only a join of at most 5,000 rows may.",
            label="Allow many more rows than my table has",
        ),
    ] = False
    transform: Annotated[
        bool, option("Join by a rule that is learned from both tables and rewrites one key.")
    ] = False
    program: Annotated[
        str | None,
        option(
            "With {transform}: use programs that pexeso transform --save wrote, instead of "
            "learning.",
            metavar="FILE",
        ),
    ] = None
    many_to_one: Annotated[
        bool,
        option(
            "Allow a learned rule that makes one key from several values.",
            label="Allow a rule that makes one key from several values",
        ),
    ] = False
    accept_rule: Annotated[
        bool,
        option(
            "Accept a learned rule that chance may explain, and apply a saved one to all rows.",
            label="Accept a rule that chance may explain",
        ),
    ] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.join_options()
        if self.transform:
            self.require_use(_OF_TRANSFORM, "A join by a program")
            if self.lake_column is None and self.program is not None:
                raise RequestError(
                    "{program} is for a table of the lake that you name: add TABLE or TABLE:COLUMN."
                )
            return
        for name in ("program", "many_to_one", "accept_rule"):
            if getattr(self, name):
                raise RequestError(f"{{{name}}} is for a join by a program: add {{transform}}.")
        if self.lake_column is not None and not self.may_be_key:
            require_lake_column(self.lake_column)

    def join_options(self) -> JoinOptions:
        return JoinOptions(**self.chosen(_JOIN_OPTIONS))


_JOIN_OPTIONS = tuple(JoinOptions.__dataclass_fields__)


class JoinSqlRequest(QueryRequest, frozen=True, kw_only=True):
    """Write the join that `JoinRequest` makes as a statement of SQL; the fields are its own."""

    verb: ClassVar[str] = "join_sql"

    lake_column: str
    values: JoinedValues = "nearest"
    how: JoinType = "left"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.may_be_key:
            require_lake_column(self.lake_column)


class BatchRequest(DistanceRequest, frozen=True, kw_only=True):
    """Answer many queries; on Spark where `master` is given.

    `queries` is a file of JSON lines, or the lines as objects. A line may say for itself how its
    file is read, by the names of the fields for that. `output` is the file of answers; None: the
    response has them.
    """

    verb: ClassVar[str] = "batch"

    queries: str | tuple[Mapping[str, Any], ...]
    output: str | None = None
    k: Annotated[
        Limit,
        top_k(
            "The N best columns of each query; all: every column that meets the thresholds.",
            f"{DEFAULT_COLUMNS} that meet the thresholds",
        ),
    ] = None
    exclude_self: ExcludeSelf = False
    fold_copies: FoldCopies = True
    min_joinability: MinJoinability = None
    explain: Annotated[
        bool, option("Add the values that match, with their distances and kinds.", group=OUTPUT)
    ] = False
    rerank: Annotated[
        bool, option("Order columns by similarity, or by joinability.", group=OUTPUT)
    ] = True
    resume: Annotated[bool, option("Resume an existing file of answers.", group=OUTPUT)] = False
    overwrite: Overwrite = False
    master: Master = None
    conf: Conf = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.resume and self.overwrite:
            raise RequestError("Give {resume} or {overwrite}, not both.")
        if self.output is None and (self.resume or self.overwrite):
            raise RequestError("{resume} and {overwrite} need a file of answers: {output}.")
        require_master(self.master, self.conf, "a search")


class InfoRequest(IndexRequest, frozen=True, kw_only=True):
    """Show what is in an index.

    With `report` show what the last build or update did instead, with `left_out` every table and
    column that was left out, with `notes` every note about a table that was repaired.
    """

    verb: ClassVar[str] = "info"

    report: Annotated[bool, option("Show what the last build or update did.")] = False
    left_out: Annotated[
        bool, option("List every file and column that was left out, with the reason.")
    ] = False
    notes: Annotated[bool, option("List what was repaired or guessed while tables were read.")] = (
        False
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.report + self.left_out + self.notes > 1:
            raise RequestError("Give one of {report}, {left_out} and {notes}.")


class CheckRequest(IndexRequest, frozen=True, kw_only=True):
    """Compare every byte of an index with its checksums."""

    verb: ClassVar[str] = "check"


class TuneRequest(ReadingRequest, frozen=True, kw_only=True):
    """Choose thresholds from a table of labelled pairs; see `pexeso.Index.tune`."""

    verb: ClassVar[str] = "tune"

    index: str
    labels: str | None = None
    min_precision: Annotated[
        Share | None,
        option(
            "Minimum precision on the labels.",
            group=THRESHOLDS,
            metavar="0..1",
            default="that of the highest F1",
            usual="It is the share of what is found that must be right: 0.9 is usual.",
        ),
    ] = None
    model: Model = None


class RulesRequest(Request, frozen=True, kw_only=True):
    """List the rules by which values are normalised: by default, or in an index."""

    verb: ClassVar[str] = "rules"

    index: str | None = None


class KeysRequest(ReadingRequest, frozen=True, kw_only=True):
    """Propose keys for a table; see `pexeso.find_keys`."""

    verb: ClassVar[str] = "keys"

    table: str
    max_columns: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=LARGEST_KEY)],
        option(f"Maximum number of columns of a key, up to {LARGEST_KEY}.", metavar="N"),
    ] = DEFAULT_MAX_COLUMNS
    nearly: Annotated[
        Share,
        option(
            "If no key is unique, propose keys that identify at least this share of the rows; 1: "
            "none.",
            metavar="0..1",
        ),
    ] = DEFAULT_NEARLY
    k: Annotated[Positive, option("The N best keys.", "-k", "--top-k", metavar="N")] = DEFAULT_KEYS


class VerifyRequest(Request, frozen=True, kw_only=True):
    """Compare the joins that a file declares with the tables of now; see `pexeso.verify`.

    With `left` and `right`, columns as ``FILE:COLUMN``, that join is added to the file instead.
    """

    verb: ClassVar[str] = "verify"

    path: str
    left: str | None = None
    right: str | None = None
    max_distance: MaxDistance = None
    reading_rules: ReadingRules = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.left is not None and self.right is None:
            raise RequestError("A join that is added has two columns: FILE:COLUMN FILE:COLUMN.")
        for name, value in (
            ("max_distance", self.max_distance),
            ("reading_rules", self.reading_rules),
        ):
            if self.left is None and value not in (None, ()):
                raise RequestError(
                    f"{{{name}}} is for a join that is added: the others have theirs in their file."
                )


class DoctorRequest(Request, frozen=True, kw_only=True):
    """See whether this machine has what pexeso needs, to write an index to `folder` too."""

    verb: ClassVar[str] = "doctor"

    folder: str = "."


def require_lake_column(spec: str) -> None:
    """Refuse a text that cannot be ``TABLE:COLUMN`` of the lake."""
    if ":" not in spec[1:]:
        raise _no_column(spec)


def split_lake_column(catalog: Catalog, spec: str) -> tuple[str, str]:
    """Split ``TABLE:COLUMN`` of the lake; see `pexeso.lake.catalog.Catalog.split`."""
    table, column = catalog.split(spec)
    if not table or column is None:
        raise _no_column(spec)
    return table, column


def _no_column(spec: str) -> InputError:
    return InputError(
        f"A column of the lake must be given as TABLE:COLUMN, as search prints them. Got {spec!r} "
        "instead."
    )
