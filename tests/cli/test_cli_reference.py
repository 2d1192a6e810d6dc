"""The help texts teach, and the page made of them is up to date."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from pexeso.cli.groups import WithVerbs
from pexeso.cli.main import cli

ROOT = Path(__file__).resolve().parent.parent.parent
NAMES = [
    "demo",
    "index",
    "append",
    "delete",
    "compact",
    "add-model",
    "add-part",
    "search",
    "overlap",
    "contain",
    "batch",
    "join",
    "explain",
    "tune",
    "transform",
    "acquire",
    "graph",
    "export",
    "redundancy",
    "serve",
    "mcp",
    "keys",
    "estimate",
    "info",
    "rules",
    "check",
    "doctor",
]


VERBS = {
    "overlap": ["build"],
    "contain": ["build"],
    "redundancy": ["verify", "apply", "undo"],
}
"""Commands with others beside them."""

WITHOUT_TWIN = ("serve", "mcp", "demo", "tune", "rules", "doctor")

EVERY_NAME = [
    path for name in NAMES for path in (name, *(f"{name} {verb}" for verb in VERBS.get(name, ())))
]


def command_of(name: str) -> click.Command:
    """Return a command by its name as typed, also those that go by the name of a group."""
    first, _, verb = name.partition(" ")
    command = cli.commands[first]
    if isinstance(command, WithVerbs):
        return command.commands[verb] if verb else command.default
    return command


@pytest.fixture(scope="module")
def writer():
    spec = importlib.util.spec_from_file_location(
        "write_cli", ROOT / "docs" / "reference" / "write_cli.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_commands_are_those_promised(run):
    assert list(cli.commands) == NAMES
    said = run("-h").stdout
    listed = said.partition("Commands:\n")[2]
    assert [line.split()[0] for line in listed.splitlines()] == NAMES
    assert "..." not in listed, "a first line is too long to be listed"


def test_the_page_is_up_to_date(writer):
    assert writer.PAGE.read_text(encoding="utf-8") == writer.page(), (
        "run: python docs/reference/write_cli.py"
    )


@pytest.mark.parametrize("name", EVERY_NAME)
def test_help_says_what_it_does_then_shows_it(run, name):
    said = run(*name.split(), "-h").stdout
    assert said == run(*name.split(), "--help").stdout
    usage, first, example, line = [line.strip() for line in said.splitlines() if line.strip()][:4]
    assert usage.startswith(f"Usage: pexeso {name} ")
    assert first.endswith(".")
    assert example == "Example:"
    assert line.startswith(f"pexeso {name}")


@pytest.mark.parametrize("name", EVERY_NAME)
def test_every_option_has_help(name):
    options = [option for option in command_of(name).params if isinstance(option, click.Option)]
    assert [option.name for option in options if not option.help] == []


@pytest.mark.parametrize("name", [name for name in EVERY_NAME if name not in WITHOUT_TWIN])
def test_a_command_names_its_twin_in_python(run, name):
    assert "In Python: pexeso." in run(*name.split(), "-h").stdout


def test_the_twins_in_python_are_there(run):
    """Names behind ``pexeso.`` exist after ``import pexeso`` and the imports that are named."""
    script = ["import pexeso"]
    for name in EVERY_NAME:
        twin = " ".join(run(*name.split(), "-h").stdout.partition("In Python: ")[2].split())
        twin = twin.partition("Options:")[0]
        script += re.findall(r"import pexeso[.\w]*\w", twin)
        script += re.findall(r"(?<!import )pexeso(?:\.\w+)+", twin)
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(script)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_query_may_be_of_any_format_that_is_read(run):
    said = run("search", "-h").stdout
    assert all(word in said for word in ("CSV", "Excel", "SQLite", "JSON", "Parquet"))


@pytest.mark.parametrize("name", VERBS)
def test_the_page_has_a_command_and_its_verbs(writer, name):
    page = writer.page()
    for command in (name, *(f"{name} {verb}" for verb in VERBS[name])):
        section = page.partition(f"## pexeso {command}\n")[2].partition("\n## ")[0]
        assert f"Usage: pexeso {command} [OPTIONS] " in section


def test_an_unknown_command_is_a_misuse(fail):
    assert "No such command 'serach'" in fail(2, "serach")


def test_without_a_command_there_is_help(run):
    result = run()
    assert "Usage: pexeso [OPTIONS] COMMAND [ARGS]..." in result.output


RETIRED = {"--how", "--best", "-n", "--every-column", "--kinds", "--master", "--conf", "--counts"}


def test_renamed_options_have_no_aliases():
    names = {
        name
        for command in EVERY_NAME
        for option in command_of(command).params
        for name in option.opts
    }
    assert {
        "--method",
        "--type",
        "--top-k",
        "--all-columns",
        "--column-types",
        "--early-stop",
    } <= names
    assert {"--spark-master", "--spark-conf"} <= names
    assert names & RETIRED == set()
