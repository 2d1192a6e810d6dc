"""Options of names with commas between them take all names, however they are given."""

import click
import pytest

from pexeso.faces.cli.main import cli


def read(command, *arguments):
    """Return the parameters that a command reads, without running it."""
    parent = click.Context(cli, **cli.context_settings)  # click keeps the names of --help
    return cli.commands[command].make_context(command, list(arguments), parent=parent).params


@pytest.mark.parametrize(
    "given",
    [
        ["--include", "composite,containment"],
        ["--include", "composite", "--include", "containment"],
        ["--include", "composite", "--include", " containment,"],
    ],
)
def test_parts_of_several_options_are_all_built(given):
    assert read("index", "lake", "out.pexeso", *given)["parts"] == ("composite", "containment")


def test_names_replace_what_stands_without_any():
    assert read("index", "lake", "out.pexeso")["parts"] is None
    several = read("index", "lake", "out.pexeso", "--model", "lexical", "--model", "hashing")
    assert several["model"] == "lexical,hashing"
    join = ("join", "out.pexeso", "a.csv:b", "c.csv:d")
    assert read(*join)["provenance"] is None
    assert read(*join, "--provenance", "none")["provenance"] == ()
    both = read(*join, "--provenance", "match_value", "--provenance", "match_table")
    assert both["provenance"] == ("match_value", "match_table")


def test_none_beside_names_is_refused(fail, small_index):
    given = ("--provenance", "none", "--provenance", "value")
    said = fail(2, "join", small_index, "a.csv:b", "c.csv:d", *given)
    assert "Each of provenance must be one of table, column, value, distance. Got 'none'" in said


def test_every_such_option_takes_several():
    options = [
        option
        for command in cli.commands.values()
        for option in command.params
        # One thing with commas in it is no list of things.
        if isinstance(option, click.Option) and ",..." in (option.metavar or "")
        if option.name != "have"
    ]
    assert len(options) > 4
    assert [option.name for option in options if not option.multiple] == []
