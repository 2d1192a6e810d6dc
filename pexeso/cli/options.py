"""The options that several commands share: what is searched for and where, and how an index is built."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

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
    max_distance_of_cosine,
    parse_bytes,
    search_options,
)
from pexeso.registry import choices
from pexeso.thresholds.advice import require_min_precision

if TYPE_CHECKING:
    from pexeso.index import Index

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class Asked:
    """What was asked for on the command line; None and False where an option was not given.

    Attributes
    ----------
    max_distance, min_joinability, k, counts, exact, ignore_missing
        See `pexeso.options.SearchOptions`.
    auto : bool
        Let the index choose the thresholds; see `pexeso.index.Index.advise`.
    min_precision : float or None
        The same, so that this share of what is found is right.
    min_cosine : float or None
        Instead of `max_distance`.
    exclude_self : bool
    device, memory_budget, kernel : str or None
        See `pexeso.index.open_index`.
    """

    max_distance: float | None = None
    auto: bool = False
    min_precision: float | None = None
    min_cosine: float | None = None
    min_joinability: float | None = None
    k: int | None = None
    counts: str | None = None
    exact: bool = False
    ignore_missing: bool = False
    exclude_self: bool = False
    device: str = "auto"
    memory_budget: str | None = None
    kernel: str = "auto"

    def __post_init__(self) -> None:
        if self.max_distance is not None and self.min_cosine is not None:
            raise click.UsageError("Give --max-distance or --min-cosine, not both.")
        self._require_one_choice()
        # Looked at here, so that a mistake is told at once and not after an index has been opened.
        advised = ("auto", "min_precision")
        search_options({name: value for name, value in self.to_options().items() if name not in advised})
        if self.memory_budget is not None:
            parse_bytes(self.memory_budget)

    def _require_one_choice(self) -> None:
        if not self.is_auto:
            return
        if self.max_distance is not None or self.min_cosine is not None:
            way = "--auto" if self.min_precision is None else "--min-precision"
            given = "--min-cosine" if self.max_distance is None else "--max-distance"
            raise click.UsageError(f"{way} chooses the distance, and {given} gives one: leave one of them out.")
        if self.min_precision is not None:
            require_min_precision(self.min_precision)

    @property
    def is_auto(self) -> bool:
        """Whether the index is to choose the thresholds."""
        return self.auto or self.min_precision is not None

    def to_search(self) -> dict[str, Any]:
        """Return the arguments of `Index.search`: only what was asked for, since some defaults hang on others."""
        names = ("max_distance", "min_joinability", "k", "counts", "exact", "ignore_missing", "exclude_self")
        names += ("auto", "min_precision")
        asked = {name: getattr(self, name) for name in names}
        given = {name: value for name, value in asked.items() if value is not None and value is not False}
        if self.min_cosine is not None:
            given["max_distance"] = max_distance_of_cosine(self.min_cosine)
        return given

    def to_options(self) -> dict[str, Any]:
        """Return the arguments of `Index.search_options`."""
        return {name: value for name, value in self.to_search().items() if name != "exclude_self"}

    def open(self, path: str) -> Index:
        """Open the index where the search is to run."""
        from pexeso.index import open_index

        index = open_index(path, device=self.device, memory_budget=self.memory_budget, kernel=self.kernel)
        metric = index.store.manifest.options["grid"]["metric"]
        if self.min_cosine is not None and metric != "euclidean":
            raise InputError(
                f"--min-cosine is for indexes with the euclidean metric; '{path}' has the {metric} metric. Give --max-distance instead."
            )
        return index


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


def search_settings(command: Command) -> Command:
    """Add all options of a search, as the parameter `asked`."""
    return _collected((*_DISTANCE_OPTIONS, *_CHOICE_OPTIONS, *_RUN_OPTIONS), command)


def distance_settings(command: Command) -> Command:
    """Add the options of a search that make sense where the column to compare with is known, as `asked`."""
    return _collected((*_DISTANCE_OPTIONS, *_RUN_OPTIONS), command)


def _collected(options: tuple[Callable[[Any], Any], ...], command: Command) -> Command:
    @functools.wraps(command)
    def with_asked(**given: Any) -> Any:
        names = {each.name for each in fields(Asked)} & given.keys()
        return command(asked=Asked(**{name: given.pop(name) for name in names}), **given)

    return _with_options(options, with_asked)


def _with_options(options: tuple[Callable[[Any], Any], ...], command: Any) -> Any:
    for option in reversed(options):
        command = option(command)
    return command


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
        metavar="SIZE",
        help="Most bytes of one partition, which is what a search holds at a time.  [default: 1GiB]",
    ),
)
_COLUMN_OPTIONS = (
    click.option(
        "--column-types",
        "kinds",
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
    metavar="PART,...",
    default="",
    help=f"Parts for joins by equal values, of {' and '.join(choices())}; pexeso overlap and contain ask them.",
)
_SEED = click.option("--seed", type=int, default=_DEFAULTS.seed, show_default=True, help="Of samples and choices.")


def build_settings(command: Command) -> Command:
    """Add all options of a build, as the parameter `options`, a `BuildOptions`."""
    options = (
        *_MODEL_OPTIONS,
        *_GRID_OPTIONS,
        *_PARTITION_OPTIONS,
        *_COLUMN_OPTIONS,
        *_NORMALISER_OPTIONS,
        _PARTS,
        _SEED,
    )

    @functools.wraps(command)
    def with_options(**given: Any) -> Any:
        if given["n_partitions"] is not None and given["partition_bytes"] is not None:
            raise click.UsageError("Give --n-partitions or --partition-bytes, not both.")
        rules = {each.name: given.pop(each.name) for each in fields(ColumnRules)}
        rules["kinds"] = tuple(kind.strip() for kind in rules["kinds"].split(","))
        given["parts"] = tuple(part.strip() for part in given["parts"].split(",") if part.strip())
        normaliser = _DEFAULTS.normaliser.switched(on=given.pop("rules_on"), off=given.pop("rules_off"))
        chosen = {each.name: given.pop(each.name) for each in fields(BuildOptions) if each.name in given}
        for name in ("partition_bytes", "max_table_bytes"):
            chosen[name] = getattr(_DEFAULTS, name) if chosen[name] is None else parse_bytes(chosen[name])
        return command(options=BuildOptions(**chosen, rules=ColumnRules(**rules), normaliser=normaliser), **given)

    return _with_options(options, with_options)
