"""The options that several commands share, and how what was given becomes a request of the service."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

import click

from pexeso.errors import InputError
from pexeso.lake.choose import KINDS, ColumnRules
from pexeso.options import (
    CELLS,
    DEFAULT_MAX_DISTANCE,
    DEFAULT_MIN_JOINABILITY,
    KERNELS,
    MAPS,
    METRICS,
    USUAL_MAX_DISTANCES,
    BuildOptions,
    parse_bytes,
)
from pexeso.registry import choices
from pexeso.service.bases import Request, RequestError

Command = TypeVar("Command", bound=Callable[..., Any])


OPTION_OF = {
    "counts": "--early-stop",
    "conf": "--spark-conf",
    "master": "--spark-master",
    "output": "-o ANSWERS.jsonl",
}
"""The options of fields whose names are not theirs."""


def option_name(field: str) -> str:
    """Return the option by which a field of a request is given.

    Examples
    --------
    >>> option_name("max_distance"), option_name("counts")
    ('--max-distance', '--early-stop')
    """
    return OPTION_OF.get(field, f"--{field.replace('_', '-')}")


def takes(kind: type[Request]) -> Callable[[Command], Command]:
    """Pass the parameters that are fields of a request as one, before all others."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_request(**given: Any) -> Any:
            names = {each.name for each in fields(kind)} & given.keys()
            try:
                request = kind(**{name: given.pop(name) for name in names})
            except RequestError as error:
                raise click.UsageError(error.written(option_name)) from error
            return command(request, **given)

        return with_request

    return decorate


def with_options(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Return a decorator that adds options in this order."""
    return lambda command: functools.reduce(lambda made, option: option(made), reversed(options), command)


_DISTANCE_OPTIONS = (
    click.option(
        "--max-distance",
        type=float,
        metavar="0..1",
        help="Largest distance of two values that match, as a fraction of the largest there is.  "
        f"[default: {USUAL_MAX_DISTANCES['hashing']} for hashing, {DEFAULT_MAX_DISTANCE} for other models]",
    ),
    click.option(
        "--min-cosine",
        type=float,
        metavar="-1..1",
        help="The same as a smallest cosine similarity; 0.9928 is a distance of 0.06.",
    ),
    click.option("--auto", is_flag=True, help="Choose the thresholds for this lake, and say why these."),
    click.option(
        "--min-precision",
        type=float,
        metavar="0..1",
        help="Choose them so that this share of what is found is right, as estimated; brings --auto.  [default: 0.9]",
    ),
)
_CHOICE_OPTIONS = (
    click.option(
        "--min-joinability",
        type=float,
        metavar="0..1",
        help=f"Smallest share of your rows that must match.  [default: {DEFAULT_MIN_JOINABILITY}, or none with -k]",
    ),
    click.option(
        "-k",
        "--top-k",
        "k",
        type=int,
        metavar="N",
        help="Only the N best columns; without --min-joinability however few rows match.",
    ),
    click.option("--exclude-self", is_flag=True, help="Leave out the table that the query column is read from."),
    click.option(
        "--early-stop",
        "counts",
        flag_value="decide",
        default=None,
        help="Stop counting once a column is sure to be joinable: what is shown is a lower bound.",
    ),
)
_RUN_OPTIONS = (
    click.option(
        "--ignore-missing",
        is_flag=True,
        help="Do not count rows that are empty, or that the model knows nothing about.",
    ),
    click.option("--exact", is_flag=True, help="Compare everything with everything in float64: slow, the same answer."),
    click.option("--device", default="auto", metavar="NAME", help="auto, cpu, cuda or cuda:1.  [default: auto]"),
    click.option(
        "--memory-budget",
        metavar="SIZE",
        help="Most memory for a partition on a GPU, and for the pairs compared, such as 8GiB.",
    ),
    click.option(
        "--kernel",
        type=click.Choice(KERNELS),
        default="auto",
        show_default=True,
        help="What does the heavy steps; the answer is the same.",
    ),
)


search_settings = with_options(*_DISTANCE_OPTIONS, *_CHOICE_OPTIONS, *_RUN_OPTIONS)
distance_settings = with_options(*_DISTANCE_OPTIONS, *_RUN_OPTIONS)


_DEFAULTS = BuildOptions()
_RULES = ColumnRules()


def _rule(name: str, kind: type, help_text: str) -> Callable[[Any], Any]:
    default = getattr(_RULES, name)
    return click.option(f"--{name.replace('_', '-')}", type=kind, default=default, show_default=True, help=help_text)


_MODEL_OPTIONS = (
    click.option(
        "--model",
        default=_DEFAULTS.model,
        show_default=True,
        metavar="MODEL",
        help="hashing (spelling and rare words; no training), fasttext (trained on the lake), a fastText "
        ".bin file, a file of word vectors (.txt, .vec), or sentence:NAME.",
    ),
    click.option(
        "--dimensions",
        type=int,
        help="Of the vectors.  [default: the model's own, 256 for hashing, 100 for fasttext]",
    ),
    click.option("--metric", type=click.Choice(METRICS), default=_DEFAULTS.metric, show_default=True, help="Distance."),
)


def read_names(context: click.Context, option: click.Parameter, text: str) -> tuple[str, ...]:
    """Read names with commas between them."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _size(context: click.Context, option: click.Parameter, text: str | None) -> int | None:
    return None if text is None else parse_bytes(text)


class _LevelsOrAuto(click.ParamType):
    """A whole number, or ``auto`` for None."""

    name = "levels"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | None:
        return None if value == "auto" else click.INT.convert(value, param, ctx)


_GRID_OPTIONS = (
    click.option(
        "--map",
        type=click.Choice(("auto", *MAPS)),
        default=_DEFAULTS.map,
        show_default=True,
        help="What filters rest on: projected axes, or pivots as published; auto takes what costs least on a sample.",
    ),
    click.option("--n-axes", type=int, help="Axes of the projection.  [default: what costs least]"),
    click.option(
        "--n-pivots", type=int, default=_DEFAULTS.n_pivots, show_default=True, help="Pivots, with --map pivots."
    ),
    click.option(
        "--cells",
        type=click.Choice(CELLS),
        default=_DEFAULTS.cells,
        show_default=True,
        help="Equal blocks, or the grid as published (with --map).",
    ),
    click.option(
        "--n-levels",
        type=_LevelsOrAuto(),
        default=_DEFAULTS.n_levels,
        show_default=True,
        metavar="N|auto",
        help="Levels of the grid, with --cells grid; auto chooses them by the published cost model.",
    ),
)
_PARTITION_OPTIONS = (
    click.option("--n-partitions", type=int, help="How many partitions; without it as many as --partition-bytes asks."),
    click.option(
        "--partition-bytes",
        callback=_size,
        metavar="SIZE",
        help="Most bytes of one partition, which is what a search holds at a time.  [default: 1GiB]",
    ),
)
_COLUMN_OPTIONS = (
    click.option(
        "--column-types",
        "kinds",
        callback=read_names,
        default=",".join(_RULES.kinds),
        show_default=True,
        metavar="KIND,...",
        help=f"Kinds of columns that are indexed, of {', '.join(KINDS)}.",
    ),
    _rule("min_rows", int, "Tables with fewer rows are left out."),
    _rule("min_distinct", int, "Columns with fewer different values are left out."),
    _rule("max_number_fraction", float, "A column is one of numbers where more of its values are numbers."),
    _rule("max_median_tokens", float, "Columns whose median value has more words are left out as free text."),
    _rule("max_missing_fraction", float, "Columns with more of their cells empty are left out."),
    click.option(
        "--max-table-bytes",
        callback=_size,
        metavar="SIZE",
        help="Larger files are left out; a table is read whole by one task.  [default: 1GiB]",
    ),
)
_NORMALISER_OPTIONS = (
    click.option(
        "--rule",
        "rules_on",
        multiple=True,
        metavar="NAME",
        help="Switch a rule for normalising values on, such as articles; pexeso rules lists them. May be repeated.",
    ),
    click.option(
        "--no-rule",
        "rules_off",
        multiple=True,
        metavar="NAME",
        help="Switch a rule for normalising values off, such as opponents. May be repeated.",
    ),
)
_PARTS = click.option(
    "--with",
    "parts",
    callback=read_names,
    metavar="PART,...",
    default="",
    help=f"Parts for joins by equal values, of {' and '.join(choices())}; pexeso overlap and contain ask them.",
)
_SEED = click.option("--seed", type=int, default=_DEFAULTS.seed, show_default=True, help="Of samples and choices.")


_BUILD_OPTIONS = with_options(
    *_MODEL_OPTIONS,
    *_GRID_OPTIONS,
    *_PARTITION_OPTIONS,
    *_COLUMN_OPTIONS,
    *_NORMALISER_OPTIONS,
    _PARTS,
    _SEED,
)


def build_settings(command: Command) -> Command:
    """Add all options of a build, as the parameters that are fields of `BuildOptions`."""

    @functools.wraps(command)
    def with_rules(**given: Any) -> Any:
        if given["n_partitions"] is not None and given["partition_bytes"] is not None:
            raise click.UsageError("Give --n-partitions or --partition-bytes, not both.")
        given["rules"] = ColumnRules(**{each.name: given.pop(each.name) for each in fields(ColumnRules)})
        given["normaliser"] = _DEFAULTS.normaliser.switched(on=given.pop("rules_on"), off=given.pop("rules_off"))
        for name in ("partition_bytes", "max_table_bytes"):
            given[name] = getattr(_DEFAULTS, name) if given[name] is None else given[name]
        return command(**given)

    return _BUILD_OPTIONS(with_rules)


def spark_setting(text: str) -> tuple[str, str]:
    """Read ``KEY=VALUE``.

    Raises
    ------
    InputError
        It has no key, or no equals sign.

    Examples
    --------
    >>> spark_setting("spark.driver.memory=8g")
    ('spark.driver.memory', '8g')
    """
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise InputError(f"--spark-conf must be KEY=VALUE, such as spark.driver.memory=8g. Got {text!r} instead.")
    return key.strip(), value.strip()


spark_options = with_options(
    click.option(
        "--spark-master", "master", metavar="URL", help="Spark master: local[*] (all cores), local[4], spark://..."
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
index_argument = click.argument("index", metavar="INDEX")
query_argument = click.argument("query", metavar="FILE:COLUMN")
