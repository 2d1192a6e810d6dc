"""What the commands print on the demo lake stays as it is in golden_answers.json, in every form.

Run this module as a program, with PYTHONPATH=$PWD, to write the file again; a commit that changes
it names the reason.
"""

import hashlib
import json
import math
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner

import pexeso
from pexeso.faces.cli.main import cli
from tests.long_runs import long_but

GOLDEN = Path(__file__).with_name("golden_answers.json")
DEMO = Path(pexeso.__file__).parent / "demo"
BUILD = "index lake demo.pexeso --include overlap,containment,composite,redundancy"

COMMANDS = {
    "search": "search demo.pexeso my_suppliers.csv:supplier --explain",
    "search by name alone": "search demo.pexeso my_autographs.csv --no-rerank -k 3",
    "search thresholds": (
        "search demo.pexeso my_suppliers.csv:supplier --max-distance 0.3 --min-joinability 0.2 "
        "--joinability-of rows --exclude-self --no-fold-copies"
    ),
    "search auto": "search demo.pexeso my_suppliers.csv:supplier --auto -k 5",
    "search each column": "search demo.pexeso my_autographs.csv --all-columns -k 2",
    "search overlap": "search demo.pexeso my_suppliers.csv:supplier --method overlap --explain",
    "search containment": (
        "search demo.pexeso my_suppliers.csv:supplier --method containment --min-joinability 0.3"
    ),
    "search transform": (
        "search demo.pexeso my_autographs.csv:signed_by --method transform -k 3 --explain"
    ),
    "search all": "search demo.pexeso my_autographs.csv:signed_by --method all -k 5",
    "search a key": "search demo.pexeso lake/sport/summer_olympics.csv:year,city",
    "search a similar key": (
        "search demo.pexeso lake/sport/summer_olympics.csv:year,city~ -k 3 --explain"
    ),
    "search the proposed key": "search demo.pexeso lake/sport/summer_olympics.csv --keys auto",
    "batch": "batch demo.pexeso queries.jsonl --explain",
    "join": (
        "join demo.pexeso my_autographs.csv:signed_by science/scientists.csv:name --aggregate first"
    ),
    "join the best": "join demo.pexeso my_suppliers.csv:supplier --values all --type inner",
    "join by a key": "join demo.pexeso lake/sport/summer_olympics.csv:year,city --aggregate count",
    "join by a program": (
        "join demo.pexeso my_autographs.csv:signed_by science/scientists.csv --transform "
        "--aggregate first"
    ),
    "explain": "explain demo.pexeso my_autographs.csv:signed_by science/scientists.csv:name",
    "explain a key": (
        "explain demo.pexeso lake/sport/summer_olympics.csv:year,city sport/summer_olympics.csv"
    ),
    "keys": "keys lake/sport/summer_olympics.csv --max-columns 3",
    "transform": "transform my_autographs.csv:signed_by lake/science/scientists.csv:name",
    "graph": "graph demo.pexeso --fold-copies --min-joinability 0.9",
    "graph of similar values": "graph demo.pexeso --method semantic -k 1 --min-joinability 0.9",
    "redundancy": "redundancy demo.pexeso",
    "acquire": (
        "acquire demo.pexeso --have my_suppliers.csv:orders --want business/companies.csv:country "
        "-k 2 --max-seconds 3600"
    ),
    "estimate": "estimate lake --include overlap,containment,composite,redundancy",
    "info": "info demo.pexeso",
    "what was left out": "info demo.pexeso --left-out",
    "notes": "info demo.pexeso --notes",
    "check": "check demo.pexeso",
    "rules": "rules demo.pexeso",
}
WITHOUT_JSON = ("batch", "join")
"""Commands whose data are JSON lines or CSV as they are."""

FORMS = {"search": ("", "--csv"), "explain": ("", "--csv")}
FORMS["graph"] = FORMS["search"]
UNSTEADY = ("batch", "join", "estimate", "check")
"""Commands whose texts have times or sizes, and those that have one form alone."""

SLOW = ("search auto", "search transform", "search all", "graph of similar values")
"""Commands that are printed as text alone: their rows are written as those of the others."""

PRINTED = {
    f"{name} {form or 'as text'}": f"{command} {form}"
    for name, command in COMMANDS.items()
    for form in (FORMS.get(command.split()[0], ("",)) if name not in SLOW else ("",))
    if command.split()[0] not in (*UNSTEADY, "acquire") and name != "info"
} | {
    "two pairs of each": "search demo.pexeso my_suppliers.csv:supplier --explain --pairs 2",
    "all pairs": "search demo.pexeso my_suppliers.csv:supplier -k 1 --explain --pairs all",
    "two shared values": (
        "search demo.pexeso my_suppliers.csv:supplier --method overlap --explain --pairs 2"
    ),
    "all evidence explained": (
        "search demo.pexeso my_autographs.csv:signed_by --method all -k 5 --explain --pairs 1"
    ),
    "containment explained": (
        "search demo.pexeso my_suppliers.csv:supplier --method containment -k 2 --explain --csv"
    ),
    "each column by equal values": (
        "search demo.pexeso my_suppliers.csv --method overlap --all-columns -k 1"
    ),
    "each column by equal values as CSV": (
        "search demo.pexeso my_suppliers.csv --method overlap --all-columns -k 1 --csv"
    ),
    "any column to get": (
        "acquire demo.pexeso --have business/companies.csv:sector --max-tables 2 -k 3 "
        "--max-seconds 3600"
    ),
}
"""The same commands as they print for people, as CSV and as JSON lines."""

HERE_TOO = ("search", "batch", "join")
"""Commands whose JSON is asked for here always; `test_cli_core` asks for that of all of them."""

QUERIES = (
    {"id": "a", "file": "my_suppliers.csv", "column": "supplier"},
    {"id": "b", "values": ["Oslo", "Rome", "Madrid"]},
    {"id": "c", "file": "absent.csv", "column": "city"},
)
VOLATILE = {
    *("seconds", "created", "written_by", "version", "bytes", "index_bytes", "memory_bytes"),
    *("cores", "model_bytes", "read_bytes", "device", "stopped", "of", "lake", "ways"),
}
"""Fields that differ between two runs, machines or versions, or with what a process has loaded."""

DIGITS = 9
N_SHOWN = 2
MAX_SHOWN = 60


def steady(value):
    """Return an answer without volatile fields, its numbers to some digits."""
    if isinstance(value, dict):
        return {name: steady(member) for name, member in value.items() if name not in VOLATILE}
    if isinstance(value, list):
        return [steady(member) for member in value]
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.{DIGITS}g}")
    return value


def digest(value) -> str:
    """Return the digest of an answer."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=10).hexdigest()


def shortened(value):
    """Return an answer with the first entries of each list, the rest by number and digest."""
    if isinstance(value, dict):
        return {name: shortened(member) for name, member in value.items()}
    if isinstance(value, list) and len(value) > N_SHOWN:
        rest = f"{len(value) - N_SHOWN} more: {digest(value[N_SHOWN:])}"
        return [*map(shortened, value[:N_SHOWN]), rest]
    if isinstance(value, list):
        return [shortened(member) for member in value]
    if isinstance(value, str) and len(value) > MAX_SHOWN:
        return f"{value[:MAX_SHOWN]}... {digest(value)}"
    return value


def answer(command: str):
    """Return what a command answers, without what is volatile, and shortened."""
    arguments = command.split()
    if arguments[0] not in WITHOUT_JSON:
        arguments.append("--json")
    done = CliRunner().invoke(cli, arguments, prog_name="pexeso")
    assert done.exit_code == (arguments[0] == "batch"), done.output
    if arguments[0] == "join":
        return shortened(done.stdout.splitlines())
    one_line_each = arguments[0] == "batch" or "--all-columns" in arguments
    lines = done.stdout.splitlines() if one_line_each else [done.stdout]
    return shortened([steady(json.loads(line)) for line in lines])


def printed(command: str):
    """Return the lines that a command prints, without times, and shortened."""
    done = CliRunner().invoke(cli, command.split(), prog_name="pexeso")
    lines = done.stdout.splitlines()
    return [done.exit_code, len(lines), *shortened(lines)]


def set_out(folder: Path) -> None:
    """Copy the demo lake to a folder, and index it there."""
    shutil.copytree(DEMO, folder, dirs_exist_ok=True)
    lines = "".join(f"{json.dumps(query)}\n" for query in QUERIES)
    (folder / "queries.jsonl").write_text(lines, encoding="utf-8")
    os.chdir(folder)
    assert CliRunner().invoke(cli, BUILD.split(), prog_name="pexeso").exit_code == 0


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    before = Path.cwd()
    folder = tmp_path_factory.mktemp("golden") / "demo"
    set_out(folder)
    yield folder
    os.chdir(before)


@pytest.fixture(scope="module")
def golden():
    return json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", long_but(HERE_TOO, COMMANDS))
def test_an_answer_is_as_it_was(demo, golden, name):
    assert answer(COMMANDS[name]) == golden[name]


@pytest.mark.parametrize("name", PRINTED)
def test_a_text_is_as_it_was(demo, golden, name):
    assert printed(PRINTED[name]) == golden[name]


def test_every_golden_answer_is_asked_for(golden):
    assert list(golden) == [*COMMANDS, *PRINTED]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        home = Path.cwd()
        set_out(Path(folder) / "demo")
        answers = {name: answer(command) for name, command in COMMANDS.items()}
        answers |= {name: printed(command) for name, command in PRINTED.items()}
        os.chdir(home)
    lines = [
        f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in answers.items()
    ]
    target = Path(sys.argv[1]) if sys.argv[1:] else GOLDEN
    target.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
