"""The help texts teach, and the page made of them is up to date."""

import importlib.util
import re
import sys
from pathlib import Path

import click
import pytest
from processes import ran

from pexeso.faces.cli.main import cli
from pexeso.faces.cli.options import WithVerbs

ROOT = Path(__file__).resolve().parents[3]
NAMES = [
    "demo", "index", "append", "delete", "compact", "add-model", "add-part", "search", "batch",
    "join", "verify", "explain", "tune", "judge", "transform", "acquire", "graph", "export",
    "redundancy", "serve", "mcp", "keys", "estimate", "info", "rules", "check", "doctor",
]  # fmt: skip

VERBS = {"redundancy": ["verify", "apply", "undo"]}
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


def whole_help(run, name: str) -> str:
    """Return the help text of a command with everything."""
    option = "--help-all" if command_of(name).has_experts else "--help"
    return run(*name.split(), option).stdout


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
    assert "In Python: pexeso." in whole_help(run, name)


def test_the_twins_in_python_are_there(run):
    """Names behind ``pexeso.`` exist after ``import pexeso`` and the imports that are named."""
    script = ["import pexeso"]
    for name in EVERY_NAME:
        twin = " ".join(whole_help(run, name).partition("In Python: ")[2].split())
        twin = twin.partition("Options:")[0]
        script += re.findall(r"import pexeso[.\w]*\w", twin)
        script += re.findall(r"(?<!import )pexeso(?:\.\w+)+", twin)
    done = ran([sys.executable, "-c", "\n".join(script)])
    assert (done.returncode, done.stderr) == (0, "")


def test_a_query_may_be_of_any_format_that_is_read(run):
    said = whole_help(run, "search")
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
    assert "Usage: pexeso [OPTIONS] COMMAND [ARGS]..." in run(code=2).output


RETIRED = {
    *("--how", "--best", "-n", "--every-column", "--kinds", "--master", "--conf", "--counts"),
    *("--restart", "--with", "--first-column", "--row-filter", "--row-filters", "--early-stop"),
    *("--min-cosine", "--kernel", "--exact", "--table", "--threshold", "--max-upload", "--jsonl"),
}


def options_of(name: str) -> list[click.Option]:
    return [option for option in command_of(name).params if isinstance(option, click.Option)]


def test_renamed_options_have_no_aliases():
    names = {name for command in EVERY_NAME for one in options_of(command) for name in one.opts}
    assert {"--method", "--type", "--top-k", "--all-columns", "--column-types"} <= names
    assert {"--spark-master", "--spark-conf", "--overwrite"} <= names
    assert names & RETIRED == set()


MAX_DISTINCT, MAX_SLOTS, MAX_SHOWN = 85, 228, 20
"""Options of all commands together, under how many names; and those that --help shows of one."""


def test_there_are_few_options():
    slots = [max(one.opts, key=len) for command in EVERY_NAME for one in options_of(command)]
    assert len(set(slots)) <= MAX_DISTINCT
    assert len(slots) <= MAX_SLOTS


@pytest.mark.parametrize("name", EVERY_NAME)
def test_experts_options_are_shown_by_help_all_alone(run, name):
    few, everything = run(*name.split(), "-h").stdout, run(*name.split(), "--help-all", code=None)
    options = options_of(name)
    experts = {max(one.opts, key=len) for one in options if one.expert}
    assert len(options) - len(experts) <= MAX_SHOWN
    assert bool(experts) == (everything.exit_code == 0)
    for option in experts:
        assert f"  {option} " not in few
        assert f"  {option} " in everything.stdout


def test_the_help_of_a_search_fits_on_a_screen(run):
    assert len(run("search", "--help").stdout.splitlines()) <= 70
