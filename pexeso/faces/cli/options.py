"""Options of commands, made of the fields of requests, and requests made of what was given."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin

import click
import msgspec
from click.shell_completion import CompletionItem

from pexeso.errors import InputError
from pexeso.faces.cli.standard_input import take_standard_input, written_out
from pexeso.faces.service.bases import OF_READING, REQUESTS, Request, RequestError
from pexeso.faces.service.schema import (
    GROUPS,
    READING,
    alternatives,
    bare,
    defaults_of,
    hints_of,
    meta_of,
    option_names,
)
from pexeso.joins.options import AGGREGATIONS, OTHERS
from pexeso.lake.choose import KINDS, ColumnRules
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.options import ALL, parse_bytes

Command = TypeVar("Command", bound=Callable[..., Any])

NONE = "none"
"""What a list of names is that has none."""


@functools.cache
def _options_of_fields() -> dict[str, str]:
    """Return the options of fields whose names are not theirs."""
    names = {
        name: meta.extra["names"][0]
        for kind in REQUESTS.values()
        for name, hint in hints_of(kind).items()
        if (meta := meta_of(hint)) is not None and meta.extra["names"]
    }
    reading = {name: f"--read {name}" for name in OF_READING}
    reading |= {f"target_{name}": f"--read target_{name}" for name in OF_READING}
    return {**names, **reading, "output": "-o"}


def option_name(field: str) -> str:
    """Return the option by which a field of a request is given."""
    return _options_of_fields().get(field, f"--{field.replace('_', '-')}")


class GroupedOption(click.Option):
    """An option that is listed in a group of the help text, or by ``--help-all`` alone."""

    def __init__(self, *names: Any, group: str = "", expert: bool = False, **settings: Any) -> None:
        super().__init__(*names, **settings)
        self.group, self.expert = group, expert


class GroupedCommand(click.Command):
    """A command whose options are listed in groups.

    Where some are for experts, ``--help`` says in short what the command does and leaves them out,
    so that it fits on a screen; ``--help-all`` has everything.
    """

    @property
    def has_experts(self) -> bool:
        """Whether there are options for experts."""
        return any(getattr(parameter, "expert", False) for parameter in self.params)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, with ``--help-all`` where there are options for experts."""
        params = super().get_params(ctx)
        if not self.has_experts:
            return params
        help_all = click.Option(
            ["--help-all"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=self._help_all,
            help="Show the whole help, with options for experts.",
        )
        return [*params, help_all]

    def _help_all(self, context: click.Context, parameter: click.Parameter, value: bool) -> None:
        if value and not context.resilient_parsing:
            click.echo(self.full_help(context), color=context.color)
            context.exit()

    def full_help(self, context: click.Context) -> str:
        """Return the help text with everything."""
        context.meta[_EVERYTHING] = True
        return self.get_help(context)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the command does: all of it, or its first paragraph and the example."""
        text = inspect.cleandoc(self.help or "")
        if self.has_experts and not ctx.meta.get(_EVERYTHING):
            lines = "\n\n".join(text.split("\n\n")[:2]).splitlines()
            text = "\n".join(lines[:N_SHORT_LINES])
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(text)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by groups."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Argument):  # the usage has it
                continue
            record = parameter.get_help_record(ctx)
            hidden = getattr(parameter, "expert", False) and not ctx.meta.get(_EVERYTHING)
            if record is not None and not hidden:
                group = getattr(parameter, "group", None)
                title = "Help" if group is None else group or "Options"
                sections.setdefault(title, []).append(record)
        for title in sorted(sections, key=_order):
            with formatter.section(title):
                formatter.write_dl(sections[title])


_EVERYTHING = "pexeso.help_all"
N_SHORT_LINES = 10
"""Lines of a command's text in its short help: what it does, and some examples."""


def _order(title: str) -> int:
    """Return where a group of options is listed: a command's own come first, help last."""
    return 1 + GROUPS.index(title) if title in GROUPS else len(GROUPS) + 1 if title == "Help" else 0


class QueryCommand(GroupedCommand):
    """A command that takes ``-`` and ``-:COLUMN`` for a file."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Write ``-`` out before click takes ``-:COLUMN`` for an option."""
        return super().parse_args(ctx, written_out(self.params, args))


cli_option = functools.partial(click.option, cls=GroupedOption)
"""An option that is no field of a request."""

command = functools.partial(click.command, cls=GroupedCommand)


def takes(
    kind: type[Request], *, without: Collection[str] = (), **help_texts: str
) -> Callable[[Command], Command]:
    """Add the options of a request's fields, and pass the request before all other parameters."""

    def decorate(function: Command) -> Command:
        @functools.wraps(function)
        def with_request(**values: Any) -> Any:
            values |= values.pop("reading", {})
            names = {*kind.__struct_fields__} & values.keys()
            fields = {name: values.pop(name) for name in names}
            given = {name: value for name, value in fields.items() if value is not None}
            try:
                request = kind.of(**kind.completed(given))
            except RequestError as error:
                raise click.UsageError(error.written(option_name)) from error
            return function(request, **values)

        options = [
            _field_option(kind, name, meta, help_texts.get(name))
            for name, hint in hints_of(kind).items()
            if name not in without and (meta := meta_of(hint)) is not None
        ]
        return with_options(*options)(with_request)

    return decorate


def with_options(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Return a decorator that adds options in this order."""
    return lambda command: functools.reduce(
        lambda decorated, option: option(decorated), reversed(options), command
    )


def _field_option(
    kind: type[Request], name: str, meta: msgspec.Meta, help_text: str | None
) -> Callable[[Any], Any]:
    """Return the option of a field; it is None where it is not given."""
    hint, default = hints_of(kind)[name], defaults_of(kind).get(name)
    extra: Mapping[str, Any] = meta.extra or {}
    names = option_names(kind, name)
    settings: dict[str, Any] = {"default": None, "type": str, "metavar": extra["metavar"]}
    kinds = [bare(one) for one in alternatives(hint) if one is not NoneType]
    shown = extra["default"]
    if kinds == [bool]:
        settings = {"default": None, "is_flag": True}
        if default:
            names = (f"{names[0]}/--no-{names[0][2:]}",)
            shown = names[0].partition("/")[0][2:]
    elif name in _READERS or kinds == [tuple[str, ...]]:
        settings |= {"multiple": True, "callback": _list_reader(name, extra)}
        if default and kinds == [tuple[str, ...]]:
            shown = ",".join(default)
        elif isinstance(default, str):
            shown = shown or default
    elif extra.get("is_size"):
        settings |= {"metavar": "SIZE", "callback": _size}
    elif get_origin(kinds[0]) is Literal:
        settings["type"] = click.Choice(get_args(kinds[0]))
        shown = shown or default
    elif int in kinds and len(kinds) > 1 and str not in kinds:
        settings["type"] = CountOrAll()
    elif kinds[0] in (int, float):
        settings["type"] = kinds[0]
        shown = default if shown is None else shown
    elif isinstance(default, str):
        shown = shown or default
    text = help_text or meta.description or ""
    if shown is not None:
        text = f"{text}  [default: {shown}]"
    group, expert = extra["group"], bool(extra.get("expert"))
    return cli_option(
        *names,
        name,
        help=text,
        group=group,
        expert=expert,
        required=name not in defaults_of(kind),
        **settings,
    )


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


def _size(context: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    return None if text is None else parse_bytes(text)


def read_names(
    context: click.Context | None, parameter: click.Parameter | None, texts: Sequence[str] | str
) -> tuple[str, ...]:
    """Read names with commas between them, which may be given several times too."""
    text = texts if isinstance(texts, str) else ",".join(texts)
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _list_reader(name: str, extra: Mapping[str, Any]) -> Callable[..., Any]:
    """Return a callback that reads what was given of an option in any number of texts."""

    def read(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> Any:
        if not texts:
            return None
        if name in _READERS:
            return _READERS[name](texts)
        if extra.get("is_repeated"):
            return texts
        names = read_names(context, parameter, texts)
        return () if names == (NONE,) and NONE in (extra["metavar"] or "") else names

    return read


def spark_settings(texts: Sequence[str]) -> dict[str, str]:
    """Read settings of Spark, each ``KEY=VALUE``."""
    settings = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise InputError(
                "--spark-conf must be KEY=VALUE, such as spark.driver.memory=8g. Got "
                f"{text!r} instead."
            )
        settings[key.strip()] = value.strip()
    return settings


def read_ways(texts: Sequence[str]) -> dict[str, str]:
    """Read what ``--aggregate`` was given.

    Examples
    --------
    >>> read_ways(("list", "staff=sum"))
    {'*': 'list', 'staff': 'sum'}
    """
    ways: dict[str, str] = {}
    for text in texts:
        column, equals, way = text.rpartition("=")
        column = column if equals else OTHERS
        if way not in AGGREGATIONS:
            raise InputError(
                f"--aggregate takes COLUMN=WAY or WAY, a way of {', '.join(AGGREGATIONS)}. Got "
                f"{text!r}."
            )
        if column in ways:
            what = "all other columns" if column == OTHERS else repr(column)
            raise InputError(f"--aggregate was given twice for {what}: {ways[column]} and {way}.")
        ways[column] = way
    return ways


LIMITS = tuple(name for name in ColumnRules.__dataclass_fields__ if name != "kinds")
"""What ``--column-rule`` names."""


def read_limits(texts: Sequence[str]) -> dict[str, float]:
    """Read what ``--column-rule`` was given.

    Examples
    --------
    >>> read_limits(("min_rows=2", "max_missing_fraction=0.5"))
    {'min_rows': 2, 'max_missing_fraction': 0.5}
    """
    limits: dict[str, float] = {}
    for text in ",".join(texts).split(","):
        name, _, value = text.partition("=")
        name = name.strip().replace("-", "_")
        try:
            number = msgspec.json.decode(value.strip(), type=int | float)
        except msgspec.MsgspecError:
            number = None
        if name not in LIMITS or number is None:
            raise InputError(
                f"--column-rule takes NAME=N, a name of {', '.join(LIMITS)}. Got {text!r}."
            )
        limits[name] = number
    return limits


def read_switches(texts: Sequence[str]) -> Normaliser:
    """Read what ``--rule`` was given.

    Examples
    --------
    >>> "articles" in read_switches(("articles", "no-opponents")).rules
    True
    """
    off = [text[3:] for text in texts if text.startswith("no-")]
    on = [text for text in texts if not text.startswith("no-")]
    return Normaliser().switched(on=on, off=off)


_READERS: dict[str, Callable[[Sequence[str]], Any]] = {
    "conf": spark_settings,
    "aggregate": read_ways,
    "rules": read_limits,
    "normaliser": read_switches,
    "model": ",".join,
}


def column_types_option(function: Command) -> Command:
    """Add ``--column-types``, which is one of the rules of columns."""

    @functools.wraps(function)
    def with_rules(*, kinds: tuple[str, ...] | None, rules: dict[str, float] | None, **others: Any):
        limits: dict[str, Any] = {**(rules or {})}
        if kinds is not None:
            limits["kinds"] = kinds
        return function(rules=ColumnRules(**limits) if limits else None, **others)

    added = cli_option(
        "--column-types",
        "kinds",
        multiple=True,
        group="Columns",
        metavar="KIND,...",
        callback=_list_reader("kinds", {"metavar": None}),
        help=f"Kinds of columns that are indexed, of {', '.join(KINDS)}.  [default: text,date]",
    )
    return added(with_rules)


def reading_option(*, of: str = "FILE", and_target: bool = False) -> Callable[[Command], Command]:
    """Return the option that says how a file is read."""
    names = (*OF_READING, *(f"target_{name}" for name in OF_READING if and_target))
    target = " target_delimiter and so on are for TARGET." if and_target else ""

    def read(
        context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
    ) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for text in texts:
            field, equals, value = text.partition("=")
            field = field.strip().replace("-", "_")
            if field not in names or not equals:
                raise click.UsageError(
                    f"--read takes NAME=VALUE, a name of {', '.join(names)}. Got {text!r}."
                )
            is_number = field.endswith(("header", "skip_rows"))
            if is_number and not value.strip().lstrip("-").isdecimal():
                raise click.UsageError(f"--read {field} is a whole number. Got {value!r}.")
            fields[field] = int(value) if is_number else value
        return fields

    return cli_option(
        "--read",
        "reading",
        multiple=True,
        group=READING,
        metavar="NAME=VALUE",
        callback=read,
        help=f"How {of} is read, if it is delimited text: delimiter=';' (or tab, space), "
        "encoding=latin-1, header=1 (rows; 0: none), skip_rows=3 (lines before the "
        f"header).{target} May be repeated.  [default: detected]",
    )


def complete_path(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Let the shell complete a path; the parameter `shell_complete` of an argument."""
    return [CompletionItem(incomplete, type="file")]


index_argument = click.argument("index", metavar="INDEX", shell_complete=complete_path)

query_argument = with_options(
    click.argument(
        "query",
        metavar="FILE:COLUMN",
        callback=take_standard_input,
        shell_complete=complete_path,
    ),
    reading_option(),
)
"""Of a `QueryCommand`."""
