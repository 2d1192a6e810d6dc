"""Options of commands, made of the fields of requests, and requests made of the values given."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin

import click
import msgspec
from click.shell_completion import CompletionItem

from pexeso.errors import InputError, TableReadError, failing_as
from pexeso.faces.service.bases import READING_FIELDS, REQUESTS, Request, RequestError
from pexeso.faces.service.schema import (
    GROUPS,
    READING,
    alternatives,
    bare,
    defaults_of,
    facts_of,
    help_text,
    hints_of,
    option_names,
)
from pexeso.joins.options import AGGREGATIONS, OTHERS
from pexeso.lake.choose import KINDS, ColumnRules
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.normalise.rules import ALL_RULES
from pexeso.lake.readers.table import DEFAULT_MAX_BYTES
from pexeso.options import ALL, parse_bytes

Command = TypeVar("Command", bound=Callable[..., Any])

# What a list of names is that has none.
NONE = "none"

# The name of standard input in messages and answers: `-` is short for it.
STDIN = "/dev/stdin"

_PIECE_BYTES = 1 << 20


@functools.cache
def _special_names() -> dict[str, str]:
    names = {
        name: facts["names"][0]
        for kind in REQUESTS.values()
        for name, hint in hints_of(kind).items()
        if (facts := facts_of(hint)) and facts["names"]
    }
    reading = {name: f"--read {name}" for name in READING_FIELDS}
    reading |= {f"target_{name}": f"--read target_{name}" for name in READING_FIELDS}
    return {**names, **reading, "output": "-o"}


def option_name(field: str) -> str:
    return _special_names().get(field, f"--{field.replace('_', '-')}")


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

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse arguments; what is the value of an option, and no option, is refused with it."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            known = {name for option in self.params for name in option.opts}
            written = _as_value(error.option_name.lstrip("-").replace("-", "_"))
            if written is not None and written.split()[0] in known:
                error.possibilities = [written]
            raise

    @property
    def has_experts(self) -> bool:
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
        context.meta[_EVERYTHING] = True
        return self.get_help(context)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the command does: all of it, or its first paragraph and the example."""
        text = inspect.cleandoc(self.help or "")
        if self.has_experts and not ctx.meta.get(_EVERYTHING):
            lines = "\n\n".join(text.split("\n\n")[:2]).splitlines()
            text = "\n".join(lines[:_SHORT_LINES])
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(text)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by groups: a command's own come first, help last."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Argument):  # the usage has it
                continue
            record = parameter.get_help_record(ctx)
            hidden = getattr(parameter, "expert", False) and not ctx.meta.get(_EVERYTHING)
            if record is not None and not hidden:
                title = getattr(parameter, "group", "Help") or "Options"
                sections.setdefault(title, []).append(record)
        order = (*GROUPS, "Help")
        for title in sorted(sections, key=lambda one: order.index(one) if one in order else -1):
            with formatter.section(title):
                formatter.write_dl(sections[title])


_EVERYTHING = "pexeso.help_all"
# Lines of a command's text in its short help: what it does, and some examples.
_SHORT_LINES = 10


class QueryCommand(GroupedCommand):
    """A command that takes ``-`` and ``-:COLUMN`` for a file: its table is standard input."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Write ``-`` out before click takes ``-:COLUMN`` for an option."""
        with_value = {
            name
            for option in self.params
            if isinstance(option, click.Option) and not option.is_flag and not option.count
            for name in option.opts
        }
        written = [
            STDIN + text[1:]
            if (text == "-" or text.startswith("-:")) and before not in with_value
            else text
            for before, text in pairwise(["", *args])
        ]
        return super().parse_args(ctx, written)


def take_standard_input(context: click.Context, argument: click.Parameter, spec: str) -> str:
    """Return the argument unchanged; if it names standard input, let that be read repeatedly.

    The callback of an argument that is ``FILE`` or ``FILE:COLUMN``. Commands read a query file more
    than once, such as for the rows that a page shows. So what is piped in goes into a temporary
    file first, of at most one byte more than a table may have, and that file becomes the process's
    standard input, which can be opened by its name again and again. Memory: one piece of a MiB.
    """
    if (spec == STDIN or spec.startswith(f"{STDIN}:")) and not context.resilient_parsing:
        root = context.find_root()
        if not root.meta.get(STDIN):  # source and target of one command may both be it
            root.meta[STDIN] = True
            _keep_standard_input(root)
    return spec


def _keep_standard_input(context: click.Context) -> None:
    """Put a temporary file in the place of standard input, until the command has ended."""
    if sys.stdin is None:
        raise TableReadError(
            "Standard input is closed. Pipe a table into the command, or name a file."
        )
    if not os.path.lexists(STDIN):
        raise TableReadError(
            f"A table is read from standard input through {STDIN}, which this system does not "
            "have: name a file."
        )
    if sys.stdin.isatty():
        click.echo(
            "Reading a table from the terminal; Ctrl-D on a line of its own ends it.", err=True
        )
    what = "Standard input cannot be kept in a temporary file"
    way_out = f" Make room in {tempfile.gettempdir()}, or name a file."
    with (
        failing_as(TableReadError, what, way_out),
        tempfile.TemporaryFile(prefix="pexeso-") as file,
    ):
        limit = DEFAULT_MAX_BYTES + 1
        while limit and (piece := sys.stdin.buffer.read(min(limit, _PIECE_BYTES))):
            file.write(piece)
            limit -= len(piece)
        file.flush()
        before = os.dup(0)
        os.dup2(file.fileno(), 0)

    def put_back() -> None:
        os.dup2(before, 0)
        os.close(before)

    context.call_on_close(put_back)


class _OwnPath(click.Context):
    """The context of a command that is called by the name of its group."""

    @property
    def command_path(self) -> str:
        return self.parent.command_path if self.parent is not None else super().command_path


class WithVerbs(click.Group):
    """A command that goes by the name of a group, such as ``redundancy``, beside others of it."""

    def __init__(self, name: str, default: click.Command, *others: click.Command) -> None:
        self.default = default
        default.context_class = _OwnPath
        super().__init__(
            name,
            commands={str(command.name): command for command in others},
            help=default.help,
            short_help=default.short_help,
            add_help_option=False,
            context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        named = bool(args) and args[0] in self.commands
        return super().parse_args(ctx, args if named else [self.default.name or "", *args])

    def get_command(self, ctx: click.Context, cmd_name: str) -> Any:
        return self.default if cmd_name == self.default.name else self.commands.get(cmd_name)


# An option that is no field of a request.
cli_option = functools.partial(click.option, cls=GroupedOption)

command = functools.partial(click.command, cls=GroupedCommand)


def takes(kind: type[Request], *, without: Collection[str] = ()) -> Callable[[Command], Command]:
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
            _field_option(kind, name, facts)
            for name, hint in hints_of(kind).items()
            if name not in without and (facts := facts_of(hint))
        ]
        return with_options(*options)(with_request)

    return decorate


def with_options(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    return lambda command: functools.reduce(
        lambda decorated, option: option(decorated), reversed(options), command
    )


def _field_option(kind: type[Request], name: str, facts: Mapping[str, Any]) -> Callable[[Any], Any]:
    default, shown = defaults_of(kind).get(name), facts["default"]
    names = option_names(kind, name)
    settings: dict[str, Any] = {"type": str, "metavar": facts["metavar"]}
    kinds = [bare(one) for one in alternatives(hints_of(kind)[name]) if one is not NoneType]
    is_list = kinds == [tuple[str, ...]]
    usual: Any = default if isinstance(default, str) else None
    if kinds == [bool]:
        settings = {"is_flag": True}
        if default:
            names = (f"{names[0]}/--no-{names[0][2:]}",)
            usual = names[0].partition("/")[0][2:]
    elif name in _READERS or is_list:
        settings |= {"multiple": True, "callback": _list_reader(name, facts)}
        if default and is_list:
            usual = ",".join(default)
    elif facts.get("is_size"):
        settings |= {"metavar": "SIZE", "callback": _size}
    elif get_origin(kinds[0]) is Literal:
        settings["type"] = click.Choice(get_args(kinds[0]))
    elif int in kinds and len(kinds) > 1 and str not in kinds:
        settings["type"] = CountOrAll()
    elif kinds[0] in (int, float):
        settings["type"], usual = kinds[0], default
    shown = usual if shown is None else shown
    text = help_text(kind, name, option_name)
    # None as a default counts as given.
    settings |= {"default": None} if name in defaults_of(kind) else {"required": True}
    return cli_option(
        *names,
        name,
        help=text if shown is None else f"{text}  [default: {shown}]",
        group=facts["group"],
        expert=bool(facts.get("expert")),
        **settings,
    )


class CountOrAll(click.ParamType):
    """A whole number of at least 1, or ``all``."""

    name = "count"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
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


def _list_reader(name: str, facts: Mapping[str, Any]) -> Callable[..., Any]:
    """Return a callback that reads an option that was given in any number of texts."""

    def read(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> Any:
        if not texts:
            return None
        if name in _READERS:
            return _READERS[name](texts)
        if facts.get("is_repeated"):
            return texts
        names = read_names(context, parameter, texts)
        return () if names == (NONE,) and NONE in (facts["metavar"] or "") else names

    return read


def spark_settings(texts: Sequence[str]) -> dict[str, str]:
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
    """Read the values of ``--aggregate``."""
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


def _as_value(name: str) -> str | None:
    """Return how a name is given that is part of the value of an option."""
    rule = name.replace("_", "-")
    if name in LIMITS:
        return f"--column-rule {name}=N"
    if name in READING_FIELDS:
        return f"--read {name}=VALUE"
    return f"--rule {rule}" if rule.removeprefix("no-") in ALL_RULES else None


LIMITS = tuple(name for name in ColumnRules.__dataclass_fields__ if name != "kinds")


def read_limits(texts: Sequence[str]) -> dict[str, float]:
    """Read the values of ``--column-rule``."""
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
    """Read the values of ``--rule``."""
    off = [text[3:] for text in texts if text.startswith("no-")]
    return Normaliser().switched(on=[text for text in texts if text[:3] != "no-"], off=off)


_READERS: dict[str, Callable[[Sequence[str]], Any]] = {
    "conf": spark_settings,
    "aggregate": read_ways,
    "rules": read_limits,
    "normaliser": read_switches,
    "model": ",".join,
}


def column_types_option(function: Command) -> Command:

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
    names = (*READING_FIELDS, *(f"target_{name}" for name in READING_FIELDS if and_target))
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
        f"header). as_of=TIME is for Delta, Iceberg.{target} May be repeated.  [default: detected]",
    )


def complete_path(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Let the shell complete a path; the parameter `shell_complete` of an argument."""
    return [CompletionItem(incomplete, type="file")]


path_argument = functools.partial(click.argument, shell_complete=complete_path)
file_argument = functools.partial(path_argument, callback=take_standard_input)
index_argument = path_argument("index", metavar="INDEX")
# Of a `QueryCommand`.
query_argument = with_options(file_argument("query", metavar="FILE:COLUMN"), reading_option())
