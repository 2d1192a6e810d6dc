"""What requests share: they check themselves, go to JSON and back, and read query columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_type_hints

from pexeso.errors import InputError
from pexeso.options import (
    JOINABILITY_OF,
    SearchOptions,
    max_distance_of_cosine,
    parse_bytes,
    require_k,
    search_options,
)
from pexeso.parts.presets import with_preset
from pexeso.runtime.formatting import shown
from pexeso.service.plain_fields import from_plain, to_plain, typed
from pexeso.thresholds.advice import ADVICE_OPTIONS, require_min_precision

if TYPE_CHECKING:
    from pexeso.composite_search.query import KeyTable
    from pexeso.lake.readers.options import ReadingOptions
    from pexeso.search.query import QueryColumn

REQUESTS: dict[str, type[Request]] = {}
"""The class of each verb."""

OF_READING = ("delimiter", "encoding", "header", "skip_rows")
"""The fields of a request that say how its file is read."""

_FIELD = re.compile(r"{(\w+)}")


class RequestError(InputError):
    """Fields of a request do not go together.

    Parameters
    ----------
    text : str
        With names of fields in braces, so that a face can write its own for them.
    *values
        What stands for ``%s`` in it.

    Examples
    --------
    >>> error = RequestError("Give {resume} or {restart}, not both.")
    >>> str(error), error.written(lambda name: f"--{name}")
    ('Give resume or restart, not both.', 'Give --resume or --restart, not both.')
    """

    def __init__(self, text: str, *values: Any) -> None:
        super().__init__(text, *values)

    def __str__(self) -> str:
        return self.written(str)

    def written(self, name: Callable[[str], str]) -> str:
        """Return the message with each field under the name that a face has for it."""
        return _FIELD.sub(lambda match: name(match[1]), self.args[0]) % self.args[1:]


@dataclass(frozen=True, kw_only=True)
class Request:
    """Base of all requests.

    Raises
    ------
    InputError
        A field is unknown, is missing, or has a value of another type or out of its range.

    Examples
    --------
    >>> request = Request.from_dict({"verb": "delete", "index": "a.pexeso", "tables": ["a.csv"]})
    >>> request
    DeleteRequest(index='a.pexeso', tables=('a.csv',))
    >>> request.to_dict()
    {'verb': 'delete', 'index': 'a.pexeso', 'tables': ['a.csv']}
    """

    verb: ClassVar[str] = ""

    def __init_subclass__(cls, verb: str = "") -> None:
        cls.verb = verb
        if verb:
            REQUESTS[verb] = cls

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for own_field in fields(self):
            value = typed(hints[own_field.name], getattr(self, own_field.name), own_field.name)
            object.__setattr__(self, own_field.name, value)
        if hasattr(super(), "__post_init__"):  # of options that the request has as fields
            super().__post_init__()

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
        return from_plain(kinds[verb], kinds[verb].completed(field_values))

    @classmethod
    def completed(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Return the fields that were given, with those that follow from them."""
        return given

    def require_use(self, usable: Collection[str], what: str) -> None:
        """Refuse fields that were given and have no use.

        Parameters
        ----------
        usable : collection of str
            The other fields.
        what : str
            What has no use for them, as the message begins.

        Raises
        ------
        RequestError
            There is such a field.
        """
        useless = [
            f"{{{own_field.name}}}"
            for own_field in fields(self)
            if own_field.name not in usable and getattr(self, own_field.name) != own_field.default
        ]
        if useless:
            raise RequestError(
                f"{what} has no use for {', '.join(useless)}: leave "
                f"{'it' if len(useless) == 1 else 'them'} out."
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the verb and all fields as plain JSON."""
        return {"verb": self.verb, **to_plain(self)}


@dataclass(frozen=True, kw_only=True)
class PresetRequest(Request):
    """A request with the options of a build, which a preset may set; see `pexeso.parts.presets`."""

    preset: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        with_preset(vars(self), self.preset)

    @classmethod
    def completed(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Add the options of the preset."""
        return with_preset(given, given.get("preset"))


@dataclass(frozen=True, kw_only=True)
class IndexRequest(Request):
    """Base of what is asked of an index.

    Attributes
    ----------
    index : str
        Path or URL.
    """

    index: str


@dataclass(frozen=True, kw_only=True)
class SparkRequest(IndexRequest):
    """Base of what can run on Spark.

    Attributes
    ----------
    master : str or None
        Of Spark, such as ``"local[*]"``.
    conf : mapping of str to str
        Settings of Spark.
    """

    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ReadingRequest(Request):
    """Base of what reads a file of the user.

    Attributes
    ----------
    delimiter, encoding, header, skip_rows
        How the file is read, where it is delimited text; see
        `pexeso.lake.readers.options.ReadingOptions`. None: found.
    """

    delimiter: str | None = None
    encoding: str | None = None
    header: int | None = None
    skip_rows: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reading and (source := self._got_no_file()) is not None:
            option_names = ", ".join(f"{{{name}}}" for name in self.reading.to_dict())
            raise RequestError(f"{option_names} tell how a file is read. Got {source}.")

    def _got_no_file(self) -> str | None:
        """Return what was given in the place of a file."""
        return None

    @property
    def reading(self) -> ReadingOptions:
        """How the file is read."""
        return reading_of(vars(self))

    def arguments(self) -> dict[str, Any]:
        """Return the other fields, and `reading` in the place of those that it is made of."""
        others = {name: value for name, value in vars(self).items() if name not in OF_READING}
        return {**others, "reading": self.reading}


def reading_of(values: Mapping[str, Any], prefix: str = "") -> ReadingOptions:
    """Return how a file is read by the values that say it, with a prefix of their names."""
    from pexeso.lake.readers.options import ReadingOptions

    return ReadingOptions(**{name: values.get(prefix + name) for name in OF_READING})


@dataclass(frozen=True, kw_only=True)
class QueryRequest(IndexRequest, ReadingRequest):
    """Base of what is asked with a query column; it says too how the file of that is read.

    Attributes
    ----------
    query : str or tuple
        ``FILE:COLUMN``, ``FILE:#3`` (by position from 0), ``FILE`` (its text column with most
        distinct values is taken), or the values themselves, one a row.
    from_lake : bool
        `query` is no file: ``TABLE:COLUMN`` of the lake, as results name it.
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
        """Refuse fields that were given and have no use; a file may always be told how to read."""
        super().require_use({*usable, *OF_READING, "from_lake"}, what)

    @property
    def column(self) -> str | None:
        """The column that `query` names; None where it is a file alone or values."""
        from pexeso.search.query import split_spec

        return split_spec(self.query)[1] if isinstance(self.query, str) else None

    @property
    def may_be_key(self) -> bool:
        """Whether `query` may name several columns: whether it does, the file tells."""
        return "," in (self.column or "")

    def read_key(self) -> KeyTable | None:
        """Return the table and the columns of a composite key; None where `query` is no such key.

        Raises
        ------
        TableReadError, ColumnNotFoundError, QueryError
            The file cannot be read, or columns that it names make no key.
        """
        from pexeso.composite_search.query import composite_spec

        return composite_spec(self.query, self.reading)

    def read_column(self) -> QueryColumn:
        """Return the query column.

        Raises
        ------
        TableReadError, ColumnNotFoundError, QueryError
            There is no such column.
        """
        from pexeso.search.query import query_from_values, read_query

        if isinstance(self.query, str):
            return read_query(self.query, reading=self.reading)
        return query_from_values(self.query)


@dataclass(frozen=True, kw_only=True)
class ColumnsRequest(QueryRequest):
    """Base of searches for columns.

    Attributes
    ----------
    all_columns : bool
        `query` is a file: search with each of its columns.
    k : int, "all" or None
        So many columns, 1 or more; None: 20.
    fold_copies : bool
        Fold columns of the same values, or nearly the same, into one.
    exclude_self : bool
        Do not find the table that the query column is read from.
    explain : bool
        The JSON form of the response has the values that match.
    """

    all_columns: bool = False
    k: int | Literal["all"] | None = None
    fold_copies: bool = True
    exclude_self: bool = False
    explain: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.all_columns and (self.column is not None or not isinstance(self.query, str)):
            conflict = "values" if self.column is None else f"the column {self.column!r} too"
            raise RequestError("{all_columns} takes a file alone. Got %s.", conflict)
        require_k(self.k)

    def read_columns(self, *, numbers: bool) -> list[QueryColumn]:
        """Return the query columns; `all_columns` takes those of numbers only with `numbers`.

        Raises
        ------
        TableReadError, ColumnNotFoundError, QueryError
            There is no such column.
        """
        from pexeso.errors import QueryError
        from pexeso.lake.choose import KINDS
        from pexeso.search.query import TEXT_KINDS, read_every_query

        if not self.all_columns:
            return [self.read_column()]
        queries = read_every_query(
            str(self.query), kinds=KINDS if numbers else TEXT_KINDS, reading=self.reading
        )
        if not queries:
            kinds = "text, dates or numbers" if numbers else "text or dates"
            raise QueryError(f"'{self.query}' has no column of {kinds} to search with.")
        return queries


@dataclass(frozen=True, kw_only=True)
class DistanceRequest(IndexRequest):
    """Base of what compares values by their distance.

    Attributes
    ----------
    max_distance : float or None
        In [0, 1]; None: 0 for columns of dates, numbers or codes, else what suits the model of the
        index.
    min_cosine : float or None
        In [-1, 1], in place of `max_distance`.
    auto : bool
        Let the index choose the thresholds.
    min_precision : float or None
        In (0, 1]: the same, so that this share of what is found is right.
    joinability_of : {"values", "rows"} or None
        What joinability counts, of the query column; None: distinct values.
    ignore_missing, exact : bool
        See `pexeso.options.SearchOptions`.
    device, memory_budget, kernel, model
        See `pexeso.open_index`.
    """

    max_distance: float | None = None
    min_cosine: float | None = None
    auto: bool = False
    min_precision: float | None = None
    joinability_of: Literal[JOINABILITY_OF] | None = None  # type: ignore[valid-type]
    ignore_missing: bool = False
    exact: bool = False
    device: str = "auto"
    memory_budget: str | int | None = None
    kernel: str = "auto"
    model: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_distance is not None and self.min_cosine is not None:
            raise RequestError("Give {max_distance} or {min_cosine}, not both.")
        if self.is_auto and (self.max_distance is not None or self.min_cosine is not None):
            way = "{auto}" if self.min_precision is None else "{min_precision}"
            option = "{min_cosine}" if self.max_distance is None else "{max_distance}"
            template = "chooses the distance, and %s gives one: leave one of them out."
            raise RequestError(f"{way} {template % option}")
        if self.min_precision is not None:
            require_min_precision(self.min_precision)
        options = self.options()
        search_options({name: options[name] for name in options if name not in ADVICE_OPTIONS})
        if self.memory_budget is not None:
            parse_bytes(self.memory_budget)

    @property
    def is_auto(self) -> bool:
        """Whether the index is to choose the thresholds."""
        return self.auto or self.min_precision is not None

    def options(self) -> dict[str, Any]:
        """Return the arguments of `Index.search_options` that were given."""
        names = (*SearchOptions.__dataclass_fields__, *ADVICE_OPTIONS)
        # Only what was given: some defaults depend on others.
        options = {
            name: value
            for name, value in vars(self).items()
            if name in names and value is not None and value is not False
        }
        if self.min_cosine is not None:
            options["max_distance"] = max_distance_of_cosine(self.min_cosine)
        return options
