"""How a file of yours is read can be said to every command that reads one."""

import json

import click
import pandas as pd
import pytest

import pexeso
from pexeso import ReadingOptions
from pexeso.errors import InputError
from pexeso.faces.cli.main import cli
from pexeso.faces.cli.options import WithVerbs
from tests.acquisition.small_market import PEOPLE
from tests.acquisition.small_market import small_index as small_market
from tests.transform.joins.small_tables import MAILS, NAMES

TITLE = "exported; 2019\n"
"""Above the header of files of cells with ! between them, which are read wrongly without help."""
SAID = ("--read", "delimiter=!", "--read", "skip_rows=1")
READING = ReadingOptions(delimiter="!", skip_rows=1)
OPTIONS = {"--read"}
READERS = {*("search", "batch", "join", "explain", "tune", "transform", "acquire"), "keys"}


@pytest.fixture
def messy(tmp_path):
    """Return a function that writes a table so that its file must be said how to read."""

    def write(name, table):
        path = tmp_path / name
        rows = pd.DataFrame(table).to_csv(None, sep="!", index=False)
        path.write_text(TITLE + rows, encoding="utf-8")
        return path

    return write


@pytest.fixture
def places(messy):
    names = ["Oslo", "Rome", "MADRID", "Xyzzyx", "Bern"]
    return messy("places.csv", {"place": names, "visits": [3, 1, 2, 1, 5]})


def options_of(command):
    return {name for parameter in command.params for name in parameter.opts}


def test_every_command_that_reads_a_file_has_the_options():
    commands = {
        name: command.default if isinstance(command, WithVerbs) else command
        for name, command in cli.commands.items()
    }
    assert {name for name, command in commands.items() if options_of(command) >= OPTIONS} == READERS
    takes_file = {
        name
        for name, command in commands.items()
        for argument in command.params
        if isinstance(argument, click.Argument) and "FILE" in (argument.metavar or "")
    }
    assert takes_file, "no command names its argument FILE any more"
    assert takes_file - READERS == {"verify"}, "a contract has no way of reading"


@pytest.mark.parametrize(
    "command",
    [
        ("search",),
        ("search", "--method", "overlap"),
        ("search", "--method", "containment", "--min-joinability", "0.1"),
        ("join",),
        ("explain",),
    ],
    ids=" ".join,
)
def test_a_query_column(run, fail, small_index, places, command):
    verb, *options = command
    words = [verb, small_index, f"{places}:place", *options]
    if verb in ("join", "explain"):
        words.insert(3, "cities.csv:city")
    assert "no column 'place'" in fail(2, *words)
    assert (
        "Oslo" in run(*words, *SAID, *(() if verb in ("join", "explain") else ["--explain"])).stdout
    )


@pytest.mark.parametrize("by", ["option", "line"])
def test_files_of_a_batch(run, small_index, places, write, by):
    own = {"delimiter": "!", "skip_rows": 1} if by == "line" else {}
    lines = [{"file": str(places), "column": "place", **own}, {"values": ["Oslo", "Rome"]}]
    queries = write("queries.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines))
    result = run("batch", small_index, queries, "-k", 1, *(SAID if by == "option" else ()))
    first, second = map(json.loads, result.stdout.splitlines())
    assert first["query"]["column"] == "place"
    assert first["results"], "nothing was found with the values of the file"
    assert second["results"]


def test_a_line_of_a_batch_wins(run, small_index, tmp_path, write, places):
    plain = write("plain.csv", "Oslo\nRome\nMadrid\n")
    own = {"delimiter": ",", "skip_rows": 0, "header": 0}
    queries = tmp_path / "queries.jsonl"
    lines = [
        {"file": str(plain), **own},
        {"file": str(plain), "delimiter": "ab"},
        {"file": str(plain), "skip_rows": "1"},
    ]
    queries.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    result = run("batch", small_index, queries, "-k", 1, *SAID, code=1)
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert answers[0]["query"]["rows"] == 3
    assert "line 2: delimiter must be" in answers[1]["error"]
    assert "line 3: skip_rows must be" in answers[2]["error"]


def test_labels(run, fail, small_index, messy):
    labels = messy(
        "labels.csv",
        {
            "query_value": ["oslo", "rome", "oslo", "paris"],
            "lake_value": ["Oslo", "Rome", "Rome", "Tokyo"],
            "same": ["yes", "yes", "no", "no"],
        },
    )
    assert "must have the header" in fail(2, "tune", small_index, labels)
    result = run("tune", small_index, labels, *SAID)
    index = pexeso.open_index(small_index, device="cpu")
    assert f"--max-distance {index.tune(labels, reading=READING).max_distance:g}" in result.stdout


def test_keys(run, places):
    assert json.loads(run("keys", places, *SAID, "--json").stdout)["keys"][0]["columns"] == [
        "place"
    ]
    assert pexeso.find_keys(places, reading=READING).keys[0].columns == ("place",)
    plain = pexeso.find_keys(places)
    assert not any("place" in key.columns for key in plain.keys)


def test_both_tables_of_a_transformation(run, fail, messy, tmp_path):
    source, target = messy("names.csv", NAMES), messy("mails.csv", MAILS)
    column, key = "name", "mail"
    command = ("transform", f"{source}:{column}", f"{target}:{key}")
    of_target = ("--read", "target_delimiter=!", "--read", "target-skip-rows=1")
    assert f"no column '{column}'" in fail(2, *command, *of_target)
    assert f"no column '{key}'" in fail(2, *command, *SAID)
    result = run(*command, *SAID, *of_target, "--json")
    learned = pexeso.learn_transformation(NAMES, MAILS, columns=[column], target_columns=[key])
    assert json.loads(result.stdout)["program"] == learned.program
    again = pexeso.learn_transformation(
        f"{source}:{column}", f"{target}:{key}", reading=READING, target_reading=READING
    )
    assert again.program == learned.program


def test_columns_to_be_explained(run, fail, messy, monkeypatch, tmp_path):
    index = small_market(tmp_path)
    monkeypatch.setattr("pexeso.semantic.open_index.open_without_models", lambda path: index)
    people = messy("people.csv", PEOPLE)
    command = ("acquire", "lake.pexeso", "--have", f"{people}:sick")
    assert "no column 'sick'" in fail(2, *command)
    result = run(*command, *SAID)
    assert result.stdout.startswith("Columns that explain most of sick of people.csv")
    said = fail(2, "acquire", "lake.pexeso", "--want", "rate", *SAID)
    assert "--read delimiter, --read skip_rows say how a file is read. Got no --have." in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("colour=1", "a name of delimiter, encoding, header, skip_rows, as_of."),
        ("header", "--read takes NAME=VALUE"),
        ("target_header=1", "--read takes NAME=VALUE"),
        ("header=two", "--read header is a whole number. Got 'two'."),
        ("skip_rows=-1", "skip_rows must be"),
    ],
)
def test_what_is_no_way_to_read_is_refused(fail, places, text, said):
    assert said in fail(2, "keys", places, "--read", text)


def test_composite_keys_in_python(small_index, places):
    index = pexeso.open_index(small_index, device="cpu")
    with pytest.raises(InputError, match="no column 'place'"):
        index.explain_composite(places, ["place", "visits"], "cities.csv")
    pair = index.explain_composite(places, ["place", "visits"], "cities.csv", reading=READING)
    assert pair.to_dict()["query"]["columns"] == ["place", "visits"]


@pytest.mark.parametrize("read", [pexeso.find_keys, pexeso.learn_transformation])
def test_tables_in_memory_are_not_read(read):
    tables = [NAMES] if read is pexeso.find_keys else [NAMES, MAILS]
    with pytest.raises(InputError, match=r"skip_rows say how a file is read\. Got a ta"):
        read(*tables, reading=READING)


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
