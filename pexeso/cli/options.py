"""The options that several commands share.

Also how what was given becomes a request of the service.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from embed.half import PRECISIONS
from embed.lexical.weights import VALUE_VECTORS
from pexeso.cli.name_lists import name_list, read_names_or_none, together
from pexeso.cli.standard_input import take_standard_input
from pexeso.errors import InputError
from pexeso.lake.choose import KINDS, ColumnRules
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.options import (
    ALL,
    CELLS,
    DEFAULT_COLUMNS,
    DEFAULT_MIN_JOINABILITY,
    JOINABILITY_OF,
    KERNELS,
    MAPS,
    METRICS,
    USUAL_BY_MODEL,
    BuildOptions,
    parse_bytes,
)
from pexeso.parts.presets import PRESETS, with_preset
from pexeso.registry import DEFAULT_FILTERS, ROW_FILTERS, choices
from pexeso.service.bases import DistanceRequest, QueryRequest, Request, RequestError
from pexeso.service.requests import SearchRequest

Command = TypeVar("Command", bound=Callable[..., Any])


OPTION_OF = {
    "counts": "--early-stop",
    "conf": "--spark-conf",
    "master": "--spark-master",
    "output": "-o ANSWERS.jsonl",
}
"""The options of fields whose names are not theirs."""


def option_name(field: str) -> str:
    """Return the option by which a field of a request is given."""
    return OPTION_OF.get(field, f"--{field.replace('_', '-')}")


def takes(kind: type[Request]) -> Callable[[Command], Command]:
    """Pass the parameters that are fields of a request as one, before all others."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_request(**values: Any) -> Any:
            names = {field.name for field in fields(kind)} & values.keys()
            try:
                request = kind(**{name: values.pop(name) for name in names})
            except RequestError as error:
                raise click.UsageError(error.written(option_name)) from error
            return command(request, **values)

        return with_request

    return decorate


def with_options(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Return a decorator that adds options in this order."""
    return lambda command: functools.reduce(
        lambda decorated, option: option(decorated), reversed(options), command
    )


def field_option(
    kind: type, name: str, help_text: str, *names: str, **more: Any
) -> Callable[[Any], Any]:
    """Return the option of a field of a dataclass, by default with its name, type and default."""
    declared, default = get_type_hints(kind)[name], getattr(kind, name)
    hint = next(
        candidate for candidate in (*get_args(declared), declared) if candidate is not NoneType
    )
    option = option_name(name)
    if declared is bool:
        more = {"is_flag": True, "show_default": default} | more
        names = names or ((f"{option}/--no-{option[2:]}",) if default else (option,))
    elif get_origin(declared) is Literal:
        more = {"type": click.Choice(get_args(declared)), "show_default": True} | more
    elif "flag_value" not in more:
        more = {"type": hint, "show_default": default is not None} | more
    return click.option(*(names or (option,)), name, **{"default": default} | more, help=help_text)


class CountOrAll(click.ParamType):
    """A whole number of at least 1, or ``all``."""

    name = "count"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        """Read the number; ``all`` stays."""
        if value == ALL:
            return ALL
        try:
            number = int(value)
        except ValueError:
            number = 0
        if number < 1:
            self.fail(f"{value!r} is neither 'all' nor a whole number of at least 1.", param, ctx)
        return number


def top_k_option(kind: type, help_text: str) -> Callable[[Any], Any]:
    """Return the option for the number of columns that a search gives."""
    return field_option(kind, "k", help_text, "-k", "--top-k", type=CountOrAll(), metavar="N|all")


def fold_copies_option(kind: type) -> Callable[[Any], Any]:
    """Return the option for columns of the same values."""
    return field_option(
        kind,
        "fold_copies",
        "Fold columns of the same values, or nearly the same, into one line; or list each.",
    )


_of_distance, _of_search = (
    partial(field_option, DistanceRequest),
    partial(field_option, SearchRequest),
)
_of_build, _rule = partial(field_option, BuildOptions), partial(field_option, ColumnRules)
_SHARE, _SIZE = {"metavar": "0..1"}, {"metavar": "SIZE"}

distance_options = (
    _of_distance(
        "max_distance",
        "Largest distance of two values that match, as a fraction of the largest there is.  "
        f"[default: 0 for columns of dates, numbers or codes, else {USUAL_BY_MODEL}]",
        **_SHARE,
    ),
    _of_distance(
        "min_cosine",
        "The same as a smallest cosine similarity; 0.9928 is a distance of 0.06.",
        metavar="-1..1",
    ),
    _of_distance("auto", "Choose the thresholds for this lake, and say why these."),
    _of_distance(
        "min_precision",
        "Choose thresholds for this estimated precision (implies --auto).  [default: 0.9]",
        **_SHARE,
    ),
)
choice_options = (
    _of_search(
        "min_joinability",
        "Smallest share of your distinct values that must match.  [default: "
        f"{DEFAULT_MIN_JOINABILITY}, or none with -k N]",
        **_SHARE,
    ),
    top_k_option(
        SearchRequest,
        "The N best columns, without --min-joinability however few values match; all: every column "
        f"that meets the thresholds.  [default: {DEFAULT_COLUMNS} of these]",
    ),
    fold_copies_option(SearchRequest),
    _of_search("exclude_self", "Leave out the table that the query column is read from."),
    _of_search(
        "counts",
        "Stop counting once a column is sure to be joinable: what is shown is a lower bound.",
        flag_value="decide",
    ),
)
model_option = partial(
    field_option,
    name="model",
    help_text="Which of the models that the index holds compares values.  [default: the first]",
    metavar="NAME",
)
run_options = (
    model_option(DistanceRequest),
    _of_distance(
        "joinability_of",
        "What joinability is a share of: your distinct values, or your rows, where a value counts "
        "as often as it occurs.  [default: values]",
        type=click.Choice(JOINABILITY_OF),
    ),
    _of_distance(
        "ignore_missing",
        "Do not count values that the model knows nothing about, nor rows that are empty.",
    ),
    _of_distance("exact", "Compare everything with everything in float64: slow, the same answer."),
    _of_distance("device", "auto, cpu, cuda or cuda:1.", metavar="NAME"),
    _of_distance(
        "memory_budget",
        "Most memory of a GPU for partitions and the pairs compared, such as 8GiB; on the CPU, for "
        "the pairs of a dense model alone.",
        **_SIZE,
    ),
    _of_distance("kernel", "Compute backend; results are identical.", type=click.Choice(KERNELS)),
)
search_settings = with_options(*distance_options, *choice_options, *run_options)
distance_settings = with_options(*distance_options, *run_options)


def _size(context: click.Context, option: click.Parameter, text: str | None) -> int | None:
    return None if text is None else parse_bytes(text)


def size_option(kind: type, name: str, help_text: str) -> Callable[[Any], Any]:
    """Return the option of a field that is a number of bytes."""

    def read(context: click.Context, option: click.Parameter, text: str | None) -> int:
        return getattr(kind, name) if text is None else parse_bytes(text)

    shown = f"{help_text}  [default: 1GiB]"
    more = {"metavar": "SIZE", "default": None, "type": str, "show_default": False}
    return field_option(kind, name, shown, callback=read, **more)


class _LevelsOrAuto(click.ParamType):
    """A whole number, or ``auto`` for None."""

    name = "levels"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | None:
        return None if value == "auto" else click.INT.convert(value, param, ctx)


# Sizes have no default here: whether one was given is to be known.
_SIZED = {"metavar": "SIZE", "callback": _size, "default": None, "type": str, "show_default": False}
model_settings = with_options(
    _of_build(
        "dimensions",
        "Of the vectors, where the model has any.  [default: the model's own, 256 for hashing, "
        "100 for fasttext]",
    ),
    _of_build(
        "value_vectors",
        "How words of fasttext, a .bin file or a file of word vectors make up a value: centred, "
        "rare words counting more; or the mean of their unit vectors, as published.  [default: "
        "weighted, mean for a file of word vectors]",
        type=click.Choice(VALUE_VECTORS),
    ),
)
_BUILD_OPTIONS = with_options(
    click.option(
        "--preset",
        type=click.Choice(PRESETS),
        help="published: as in the PEXESO paper, on Spark. A fastText model, the mean of unit word "
        "vectors, pivots, the grid with levels by the cost model, 10 partitions or more. Options "
        "that contradict it are refused.",
    ),
    _of_build(
        "model",
        "lexical or hashing (spelling and rare words; sparse, or dense vectors; no training), "
        "fasttext (trained on the lake), a fastText .bin file, a file of word vectors "
        "(.txt, .vec), or sentence:NAME. Several with commas between them: a search takes the "
        "first, or the one that it names.",
        metavar="MODEL,...",
        **name_list((BuildOptions.model,), together),
    ),
    model_settings,
    _of_build(
        "vector_precision",
        "Of vectors: half takes half the room on disk and in memory, and moves a distance by at "
        "most 0.0005; single rounds nothing.",
        type=click.Choice(PRECISIONS),
    ),
    _of_build("metric", "Distance.", type=click.Choice(METRICS)),
    _of_build(
        "map",
        "What filters rest on: projected axes, or pivots as published; auto takes what costs "
        "least on a sample.",
        type=click.Choice(("auto", *MAPS)),
    ),
    _of_build("n_axes", "Axes of the projection.  [default: what costs least]"),
    _of_build("n_pivots", "Pivots, with --map pivots."),
    _of_build(
        "cells", "Equal blocks, or the grid as published (with --map).", type=click.Choice(CELLS)
    ),
    _of_build(
        "n_levels",
        "Levels of the grid, with --cells grid; auto chooses them by the published cost model.",
        type=_LevelsOrAuto(),
        metavar="N|auto",
    ),
    _of_build("n_partitions", "How many partitions; without it as many as --partition-bytes asks."),
    _of_build(
        "partition_bytes",
        "Most bytes of one partition, which is what a search holds at a time.  [default: 1GiB]",
        **_SIZED,
    ),
    _rule(
        "kinds",
        f"Kinds of columns that are indexed, of {', '.join(KINDS)}.",
        "--column-types",
        metavar="KIND,...",
        **name_list(ColumnRules.kinds),
    ),
    _rule("min_rows", "Tables with fewer rows are left out."),
    _rule("min_distinct", "Columns with fewer different values are left out."),
    _rule(
        "max_number_fraction", "A column is one of numbers where more of its values are numbers."
    ),
    _rule(
        "max_median_tokens", "Columns whose median value has more words are left out as free text."
    ),
    _rule("max_missing_fraction", "Columns with more of their cells missing are left out."),
    _of_build(
        "max_table_bytes",
        "Larger files are left out; a table is read whole by one task.  [default: 1GiB]",
        **_SIZED,
    ),
    click.option(
        "--rule",
        "rules_on",
        multiple=True,
        metavar="NAME",
        help="Switch a rule for normalising values on, such as articles; pexeso rules lists "
        "them. May be repeated.",
    ),
    click.option(
        "--no-rule",
        "rules_off",
        multiple=True,
        metavar="NAME",
        help="Switch a rule for normalising values off, such as opponents. May be repeated.",
    ),
    _of_build(
        "aliases",
        "A table of two columns, an alias and what it stands for: both are read as the same value.",
        metavar="FILE",
    ),
    _of_build(
        "parts",
        f"Further parts, of {', '.join(choices())}: for pexeso overlap, pexeso contain "
        "(bands: of signatures, beside its lists), pexeso search with several columns, and pexeso "
        "redundancy.",
        "--include",
        "--with",
        metavar="PART,...",
        **name_list(),
    ),
    _of_build(
        "row_filters",
        f"What sorts out rows that lack a composite key: none, or one of each kind of "
        f"{', '.join(ROW_FILTERS)}.",
        metavar="NAME,...|none",
        **name_list(DEFAULT_FILTERS, read_names_or_none),
    ),
    _of_build("seed", "Of samples and choices."),
)


_BY_DEFAULT = (ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP, None)


def build_settings(command: Command) -> Command:
    """Add all options of a build, as the parameters that are fields of `BuildOptions`."""

    @functools.wraps(command)
    def with_rules(**values: Any) -> Any:
        if values["n_partitions"] is not None and values["partition_bytes"] is not None:
            raise click.UsageError("Give --n-partitions or --partition-bytes, not both.")
        values["rules"] = ColumnRules(
            **{field.name: values.pop(field.name) for field in fields(ColumnRules)}
        )
        values["normaliser"] = Normaliser().switched(
            on=values.pop("rules_on"), off=values.pop("rules_off")
        )
        for name in ("partition_bytes", "max_table_bytes"):
            values[name] = getattr(BuildOptions, name) if values[name] is None else values[name]
        source = click.get_current_context().get_parameter_source
        given = {name: value for name, value in values.items() if source(name) not in _BY_DEFAULT}
        return command(**{**values, **with_preset(given, values["preset"])})

    return _BUILD_OPTIONS(with_rules)


def spark_setting(text: str) -> tuple[str, str]:
    """Read ``KEY=VALUE``."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise InputError(
            f"--spark-conf must be KEY=VALUE, such as spark.driver.memory=8g. Got {text!r} instead."
        )
    return key.strip(), value.strip()


spark_options = with_options(
    click.option(
        "--spark-master",
        "master",
        metavar="URL",
        help="Spark master: local[*] (all cores), local[4], spark://...",
    ),
    click.option(
        "--spark-conf",
        "conf",
        multiple=True,
        callback=lambda context, option, texts: dict(map(spark_setting, texts)),
        metavar="KEY=VALUE",
        help="A Spark setting, such as spark.driver.memory=8g.",
    ),
)


def complete_path(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Let the shell complete a path; the parameter `shell_complete` of an argument."""
    return [CompletionItem(incomplete, type="file")]


index_argument = click.argument("index", metavar="INDEX", shell_complete=complete_path)


def reading_options(
    kind: type, *, of: str = "FILE", prefix: str = ""
) -> Callable[[Command], Command]:
    """Return the options that say how a file is read.

    Parameters
    ----------
    kind : type
        The request.
    of : str
        What the help texts call the file.
    prefix : str
        Of the names of the fields: one request may read two files.
    """
    return with_options(
        field_option(
            kind,
            f"{prefix}delimiter",
            f"What separates the cells of {of}, such as ';', tab or space.",
            metavar="CHARACTER",
        ),
        field_option(
            kind,
            f"{prefix}encoding",
            f"Character encoding of {of}, such as latin-1.",
            metavar="NAME",
        ),
        field_option(
            kind, f"{prefix}header", f"Rows of the header of {of}; 0: it has none.", metavar="ROWS"
        ),
        field_option(
            kind, f"{prefix}skip_rows", f"Lines of {of} before its header.", metavar="LINES"
        ),
    )


query_argument = with_options(
    click.argument(
        "query",
        metavar="FILE:COLUMN",
        callback=take_standard_input,
        shell_complete=complete_path,
    ),
    reading_options(QueryRequest),
)
"""Of a `QueryCommand`."""
