"""What requests share: they come from JSON and go there, and read query columns; responses."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import msgspec

from pexeso.errors import InputError
from pexeso.faces.service.schema import (
    FIND,
    OUTPUT,
    RUNNING,
    SPARK,
    THRESHOLDS,
    Fraction,
    Positive,
    RequestError,
    Share,
    defaults_of,
    option,
    to_plain,
    validated,
)
from pexeso.lake.frames.tables import texts_of_values
from pexeso.lake.normalise.normaliser import VERSION
from pexeso.lake.normalise.rules import RULES
from pexeso.lake.readers.options import ReadingOptions
from pexeso.options import JOINABILITY_OF, USUAL_BY_MODEL, SearchOptions, parse_bytes
from pexeso.results.query import QueryColumn, query_from_values, read_query, split_spec
from pexeso.runtime.formatting import json_line, plain_json, shown
from pexeso.semantic.thresholds.advice import ADVICE_OPTIONS, DEFAULT_MIN_PRECISION

if TYPE_CHECKING:
    import pyarrow as pa

    from pexeso.build.diagnostics.doctor import Finding
    from pexeso.composite.key_table import JoinedKeys, KeyTable
    from pexeso.joins.tables import Joined
    from pexeso.results.matches import Match, SearchResult
    from pexeso.semantic.batch_file import BatchRun
    from pexeso.semantic.combined import CombinedResult
    from pexeso.sets.results import TokenSearchResult
    from pexeso.store.integrity import Problem
    from pexeso.transform.joins.joined import TransformJoin


# The class of each verb; see `pexeso.faces.service.verbs.add_verb`.
REQUESTS: dict[str, type[Request]] = {}

# The fields of a request that say how its file is read.
READING_FIELDS = ("delimiter", "encoding", "header", "skip_rows", "as_of")
_READING_FIELDS = (*READING_FIELDS, "columns")

# Options that several requests have.
Engine = Annotated[
    Literal["auto", "local", "spark"],
    option(
        "What does the work: processes of this machine (local), Spark (spark), or Spark where a "
        "master or settings are given, else this machine (auto). The index is the same.",
        group=RUNNING,
    ),
]
Master = Annotated[
    str | None,
    option(
        "Spark master: local[*] (all cores), local[4], spark://...",
        "--spark-master",
        group=SPARK,
        metavar="URL",
    ),
]
Conf = Annotated[
    Mapping[str, str],
    option(
        "A Spark setting, such as spark.driver.memory=8g. May be repeated.",
        "--spark-conf",
        group=SPARK,
        metavar="KEY=VALUE",
    ),
]
Model = Annotated[
    str | None,
    option(
        "The model of the index that compares values.",
        group=RUNNING,
        metavar="NAME",
        default="the first",
        expert=True,
    ),
]
Device = Annotated[
    str, option("auto, cpu, cuda or cuda:1.", group=RUNNING, metavar="NAME", expert=True)
]
MemoryBudget = Annotated[
    str | int | None,
    option(
        "Maximum memory on a GPU for partitions and compared pairs, such as 8GiB; on the CPU, for "
        "the pairs of a dense model.",
        group=RUNNING,
        metavar="SIZE",
        expert=True,
    ),
]
FoldCopies = Annotated[
    bool, option("Show columns with (nearly) the same values as one.", group=FIND)
]
ExcludeSelf = Annotated[
    bool, option("Leave out the table that the query column is read from.", group=FIND)
]
MinJoinability = Annotated[
    Share | None,
    option(
        "Minimum share of your distinct values that must match.",
        group=THRESHOLDS,
        metavar="0..1",
        label="Share of my values at least",
        is_slider=True,
        default="0.5; none with -k N; 0.7 for containment",
        usual="It is the share of your values that must match: 0.5 is a usual value.",
    ),
]
MinPrecision = Annotated[
    Share | None,
    option(
        "Choose thresholds for this estimated precision (implies --auto).",
        group=THRESHOLDS,
        metavar="0..1",
        default="0.9",
        usual="It is the share of what is found that must be right: "
        f"{DEFAULT_MIN_PRECISION} is usual.",
    ),
]
MaxDistance = Annotated[
    Fraction | None,
    option(
        "Maximum distance of values that match, as a fraction of the largest possible.",
        group=THRESHOLDS,
        metavar="0..1",
        label="Distance of values at most",
        is_slider=True,
        default="0 for dates, numbers and codes, otherwise by the model: 0.4 for lexical",
        usual=f"It is a fraction of the largest distance: usual are {USUAL_BY_MODEL}.",
    ),
]
Overwrite = Annotated[bool, option("Replace an existing file.", group=OUTPUT)]


class CsvOptions(msgspec.Struct):
    """How a face writes CSV, whatever the request."""

    escape_formulas: Annotated[
        bool, option("In CSV: put ' before cells that a spreadsheet would run as a formula.")
    ] = False


def top_k(description: str, default: str | None, label: str = "Show at most") -> msgspec.Meta:
    """Return the option for the number of entries that an answer has."""
    return option(
        description, "-k", "--top-k", group=FIND, metavar="N|all", default=default, label=label
    )


Limit = Positive | Literal["all"] | None


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all requests.

    What a face is given becomes a request by `of` or `from_dict`, which validate it: below them
    nothing is validated again.
    """

    verb: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Refuse fields that do not go together."""

    @classmethod
    def of(cls, **values: Any) -> Self:
        """Return a request of fields, each held against its type and range."""
        return validated(cls, values)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Make a request from plain JSON; its ``verb`` chooses the class where this is the base."""
        if not isinstance(values, Mapping):
            raise InputError(f"A request must be an object. Got {shown(values)} instead.")
        field_values = dict(values)
        verb = field_values.pop("verb", cls.verb)
        kinds = {cls.verb: cls} if cls.verb else REQUESTS
        if not isinstance(verb, str) or verb not in kinds:
            raise InputError(
                f"verb must be one of {', '.join(sorted(kinds))}. Got {shown(verb)} instead."
            )
        return kinds[verb].of(**kinds[verb].completed(field_values))  # type: ignore[return-value]

    @classmethod
    def completed(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Return the fields that were given, with those that follow from them."""
        return given

    def chosen(self, names: Iterable[str]) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names}

    def fields(self) -> dict[str, Any]:
        return self.chosen(self.__struct_fields__)

    def arguments(self) -> dict[str, Any]:
        """Return the fields as the functions that answer take them."""
        return self.fields()

    def require_use(self, usable: Collection[str], what: str) -> None:
        useless = [
            f"{{{name}}}"
            for name, default in defaults_of(type(self)).items()
            if name not in usable and getattr(self, name) != default
        ]
        if useless:
            raise RequestError(
                f"{what} has no use for {', '.join(useless)}: leave "
                f"{'it' if len(useless) == 1 else 'them'} out."
            )

    def to_dict(self) -> dict[str, Any]:
        return {"verb": self.verb, **to_plain(msgspec.to_builtins(self))}


class IndexRequest(Request, frozen=True, kw_only=True):
    """Base of requests about an index: its path or URL."""

    index: str


class SparkRequest(IndexRequest, frozen=True, kw_only=True):
    """Base of requests that can run on Spark: its master and settings."""

    master: Master = None
    conf: Conf = msgspec.field(default_factory=dict)


def require_master(master: str | None, conf: Mapping[str, str], what: str) -> None:
    if conf and master is None:
        raise RequestError(
            f"{{conf}} is for {what} on Spark: give {{master}} too, such as {{master}} local[*]."
        )


class ReadingRequest(Request, frozen=True, kw_only=True):
    """Base of requests that read a file of the user.

    `delimiter`, `encoding`, `header` and `skip_rows` say how, where it is delimited text, `as_of`
    which state, where it keeps its history, `columns` which of these; see
    `pexeso.lake.readers.options.ReadingOptions`. None: found, or all.
    """

    delimiter: str | None = None
    encoding: str | None = None
    header: int | None = None
    skip_rows: int | None = None
    as_of: str | None = None
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        given = [f"{{{name}}}" for name in READING_FIELDS if getattr(self, name) is not None]
        if given and self.reading and (source := self._got_no_file()) is not None:
            raise RequestError(f"{', '.join(given)} say how a file is read. Got {source}.")

    def _got_no_file(self) -> str | None:
        return None

    @property
    def reading(self) -> ReadingOptions:
        return ReadingOptions(**self.chosen(_READING_FIELDS))

    def arguments(self) -> dict[str, Any]:
        """Return the other fields, and `reading` in the place of those that it is made of."""
        others = {
            name: value for name, value in self.fields().items() if name not in _READING_FIELDS
        }
        return {**others, "reading": self.reading}


def reading_of(values: Mapping[str, Any], prefix: str = "") -> ReadingOptions:
    """Return how a file is read by the values that say it, with a prefix of their names."""
    return ReadingOptions(**{name: values.get(prefix + name) for name in _READING_FIELDS})


class DistanceRequest(ReadingRequest, frozen=True, kw_only=True):
    """Base of requests that compare values of a user's table by their distance.

    None for `max_distance`: 0 for columns of dates, numbers or codes, else what suits the model of
    the index. For `model`, `device` and `memory_budget` see `pexeso.open_index`.
    """

    index: str
    max_distance: MaxDistance = None
    auto: Annotated[
        bool, option("Choose the thresholds for this lake, and say why.", group=THRESHOLDS)
    ] = False
    min_precision: MinPrecision = None
    joinability_of: Annotated[
        Literal[JOINABILITY_OF] | None,  # type: ignore[valid-type]
        option(
            "Count distinct values, or rows, where a value counts as often as it occurs.",
            group=THRESHOLDS,
            default="values",
            expert=True,
        ),
    ] = None
    ignore_missing: Annotated[
        bool,
        option(
            "Do not count values that the model does not know, nor empty rows.",
            group=THRESHOLDS,
            expert=True,
        ),
    ] = False
    model: Model = None
    device: Device = "auto"
    memory_budget: MemoryBudget = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.is_auto and self.max_distance is not None:
            way = "{auto}" if self.min_precision is None else "{min_precision}"
            raise RequestError(
                f"{way} chooses the distance, and {{max_distance}} gives one: leave one of them "
                "out."
            )
        if self.memory_budget is not None:
            parse_bytes(self.memory_budget)

    @property
    def is_auto(self) -> bool:
        return self.auto or self.min_precision is not None

    def options(self) -> dict[str, Any]:
        """Return the arguments of `Index.search_options` that were given."""
        # Only what was given: some defaults depend on others.
        return {
            name: value
            for name in self.__struct_fields__
            if name in _SEARCH_OPTIONS
            and (value := getattr(self, name)) is not None
            and value is not False
        }


_SEARCH_OPTIONS = frozenset((*SearchOptions.__dataclass_fields__, *ADVICE_OPTIONS))


class QueryRequest(DistanceRequest, frozen=True, kw_only=True):
    """Base of requests with a query column, of a file or as values.

    `query` is ``FILE:COLUMN``, ``FILE:#3`` (by position from 0), ``FILE`` (its text column with
    most distinct values is taken), or the values themselves, one a row. With `from_lake` it is
    ``TABLE:COLUMN`` of the lake, as results name it.
    """

    query: str | tuple[Any, ...]
    from_lake: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.from_lake and not isinstance(self.query, str):
            raise RequestError("{from_lake} takes TABLE:COLUMN of the lake. Got values.")

    def _got_no_file(self) -> str | None:
        return None if isinstance(self.query, str) else "values"

    def require_use(self, usable: Collection[str], what: str) -> None:
        """Refuse fields that were given and have no use; how a file is read is never useless."""
        super().require_use({*usable, *_READING_FIELDS, "from_lake"}, what)

    @property
    def column(self) -> str | None:
        """The column that `query` names; None where it is a file alone or values."""
        return split_spec(self.query)[1] if isinstance(self.query, str) else None

    @property
    def may_be_key(self) -> bool:
        """Whether `query` may name several columns; only the file shows whether it does."""
        return "," in (self.column or "")

    def read_key(self) -> KeyTable | None:
        """Return the table and columns of a composite key, or None where `query` is none."""
        if not self.may_be_key:
            return None
        from pexeso.composite.key_table import composite_spec  # brings what joins tables

        return composite_spec(self.query, self.reading)

    def read_column(self) -> QueryColumn:
        if isinstance(self.query, str):
            return read_query(self.query, reading=self.reading)
        return query_from_values(self.query)


def plain_cells(column: pa.ChunkedArray) -> list[Any]:
    """Return the cells of a table as plain JSON.

    Numbers, truth values, texts, lists and objects stay; of other types there are the texts that
    CSV has. An interval is a list of its months, days and nanoseconds.
    """
    texts = texts_of_values(column)
    return [plain_json(cell) for cell in column.to_pylist()] if texts is None else texts


def json_text(document: Any) -> str:
    """Return a document with its outer members, and the entries of lists in it, one a line."""
    if not isinstance(document, dict):
        return json_line(document)
    members = []
    for name, value in document.items():
        text = json_line(value)
        if isinstance(value, list) and value:
            entries = ",\n".join(f"    {json_line(entry)}" for entry in value)
            text = f"[\n{entries}\n  ]"
        members.append(f"  {json_line(name)}: {text}")
    return "{\n" + ",\n".join(members) + "\n}"


def json_pieces(document: dict[str, Any], name: str, rows: Iterable[Any]) -> Iterator[str]:
    """Yield what `json_text` returns, with a line feed, and in it, last, a list of any length."""
    yield json_text({**document, name: []}).removesuffix("]\n}")
    between = "\n"
    for row in rows:
        yield f"{between}    {json_line(row)}"
        between = ",\n"
    yield "]\n}\n" if between == "\n" else "\n  ]\n}\n"


# Plain JSON.
Answer = dict[str, Any]


@dataclass(frozen=True)
class SearchResponse:
    """What a search found: a result for each query column."""

    request: Any
    results: list[SearchResult] | list[TokenSearchResult] | list[CombinedResult]

    def to_dict(self) -> Answer:
        """Return the JSON form of the result, or with `all_columns` of all under ``columns``."""
        answers = [
            result.to_dict(explain=self.request.explain, hints=True) for result in self.results
        ]
        return {"columns": answers} if self.request.all_columns else answers[0]


@dataclass(frozen=True)
class JoinResponse:
    query: dict[str, Any]
    match: Match | JoinedKeys
    advised: SearchOptions | None
    joined: Joined
    transformed: TransformJoin | None = None

    def to_dict(self) -> Answer:
        """Return the column joined with, the report, and the joined table as names and rows."""
        table = self.joined.table
        columns = [plain_cells(column) for column in table.columns]
        programs = {}
        if self.transformed is not None:
            programs = {"programs": self.transformed.programs, "tried": self.transformed.tried}
        return {
            "query": self.query,
            **self.match.to_dict(),
            **programs,
            "report": self.joined.report.to_dict(),
            "names": table.column_names,
            "rows": [list(row) for row in zip(*columns, strict=True)],
        }


@dataclass(frozen=True)
class BatchResponse:
    """What a batch did, and its answers where no file has them."""

    run: BatchRun
    answers: list[Answer] = field(default_factory=list)

    def to_dict(self) -> Answer:
        return {**vars(self.run), "answers": self.answers}


@dataclass(frozen=True)
class CheckResponse:
    """What is wrong with an index; and the files and bytes that it has where nothing is."""

    problems: list[Problem]
    n_files: int = 0
    n_bytes: int = 0

    @property
    def failures(self) -> list[Problem]:
        return [problem for problem in self.problems if problem.is_failure]

    def to_dict(self) -> Answer:
        return {"ok": not self.failures, "problems": [vars(problem) for problem in self.problems]}


@dataclass(frozen=True)
class DoctorResponse:
    findings: list[Finding]

    def to_dict(self) -> Answer:
        return {"findings": [vars(finding) for finding in self.findings]}


@dataclass(frozen=True)
class RulesResponse:
    """The names of the rules that are on, and the extra dictionary of words."""

    on: tuple[str, ...]
    extra: Mapping[str, str]

    def to_dict(self) -> Answer:
        described = [
            {
                "name": rule.name,
                "on": rule.name in self.on,
                "default": rule.is_default,
                "does": rule.does,
                "tells_apart": rule.tells_apart,
                "reading": rule.is_reading,
            }
            for rule in RULES
        ]
        return {"version": VERSION, "rules": described, "extra": dict(self.extra)}
