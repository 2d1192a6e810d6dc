"""Options of names with commas between them take all names, however they are given."""

import click
import pytest

from pexeso.cli.main import cli


def read(command, *arguments):
    """Return the parameters that a command reads, without running it."""
    parent = click.Context(cli, **cli.context_settings)  # click keeps the names of --help
    return cli.commands[command].make_context(command, list(arguments), parent=parent).params


@pytest.mark.parametrize(
    "given",
    [
        ["--include", "composite,containment"],
        ["--include", "composite", "--include", "containment"],
        ["--with", "composite", "--include", " containment,"],
    ],
)
def test_parts_of_several_options_are_all_built(given):
    assert read("index", "lake", "out.pexeso", *given)["parts"] == ("composite", "containment")


def test_names_replace_what_stands_without_any():
    assert read("index", "lake", "out.pexeso")["parts"] == ()
    several = read("index", "lake", "out.pexeso", "--model", "lexical", "--model", "hashing")
    assert several["model"] == "lexical,hashing"
    assert read("index", "lake", "out.pexeso", "--row-filters", "none")["row_filters"] == ()
    join = ("join", "out.pexeso", "a.csv:b", "c.csv:d")
    assert len(read(*join)["provenance"]) > 1
    assert read(*join, "--provenance", "none")["provenance"] == ()
    both = read(*join, "--provenance", "match_value", "--provenance", "match_table")
    assert both["provenance"] == ("match_value", "match_table")


def test_none_beside_names_is_refused(fail, small_lake, tmp_path):
    given = ("--row-filters", "none", "--row-filters", "xash")
    assert "none" in fail(2, "index", small_lake, tmp_path / "out.pexeso", *given)


def test_every_such_option_takes_several():
    options = [
        option
        for command in cli.commands.values()
        for option in command.params
        # One thing with commas in it is no list of things.
        if isinstance(option, click.Option) and ",..." in (option.metavar or "")
        if option.name != "have"
    ]
    assert len(options) > 5
    assert [option.name for option in options if not option.multiple] == []
