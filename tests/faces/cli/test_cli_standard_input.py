"""``-`` as a query file: answers are those of the same table in a file."""

import gzip
import io
import json
import os
import re
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from processes import ran

import pexeso.faces.cli.options
import pexeso.lake.containers.reader
from pexeso.faces.cli.main import cli

COMMANDS = [
    ("search", "INDEX", "FILE:place", "--explain", "--json"),
    ("search", "INDEX", "FILE", "--csv"),
    ("search", "INDEX", "FILE", "--all-columns", "--json"),
    ("search", "--json", "INDEX", "FILE:#0"),
    ("search", "INDEX", "FILE:place,visits", "--json"),
    ("search", "INDEX", "FILE:place", "--method", "overlap", "--json"),
    ("search", "--json", "INDEX", "FILE", "--method", "containment"),
    ("join", "INDEX", "FILE:place", "cities.csv:city"),
    ("join", "INDEX", "FILE:place", "--suffix", "-", "cities.csv:city"),
    ("explain", "INDEX", "FILE:place", "cities.csv:city"),
    ("transform", "FILE:place", "NAMES"),
    ("transform", "FILE:place", "FILE:place"),
    ("keys", "FILE", "--json"),
]
TABLE = [
    {"place": place, "visits": str(n)}
    for n, place in enumerate(["Oslo", "Rome", "Madrid", "Vienna", "Bern"])
]
FORMS = {
    "csv": lambda: (
        b"place,visits\n"
        + b"".join(b"%s,%s\n" % (row["place"].encode(), row["visits"].encode()) for row in TABLE)
    ),
    "json lines": lambda: "\n".join(map(json.dumps, TABLE)).encode(),
    "gzip": lambda: gzip.compress(FORMS["csv"]()),
    "utf-16": lambda: FORMS["csv"]().decode().encode("utf-16"),
}


def without_times(text: str) -> str:
    return re.sub(r"[0-9.,]+ ms|\([a-z]+ [0-9.]+.*\)|\"stats\": .*", "", text)


def query_of(shown: str) -> tuple[str, str, int]:
    query = json.loads(shown)["query"]
    return query["file"], query["column"], query["rows"]


@pytest.fixture
def outcome():
    """Return a function that runs a command with some bytes as standard input."""

    def invoke(arguments: list[object], input: bytes | None = None) -> tuple[int, str, str]:
        result = CliRunner().invoke(cli, list(map(str, arguments)), input=input)
        return result.exit_code, result.stdout, result.stderr

    return invoke


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_answers_as_from_a_file(command, outcome, small_index, tmp_path):
    file, names = tmp_path / "places.csv", tmp_path / "names.csv"
    file.write_bytes(FORMS["csv"]())
    names.write_text("name\nOSLO\nROME\nMADRID\nVIENNA\nBERN\n", encoding="utf-8")
    put = {"INDEX": str(small_index), "NAMES": f"{names}:name"}
    arguments = [put.get(word, word) for word in command]
    from_file = [re.sub("^FILE", str(file), argument) for argument in arguments]
    from_input = [re.sub("^FILE", "-", argument) for argument in arguments]
    code, shown, said = outcome(from_file)
    if "place,visits" not in " ".join(command):  # of which this index has no part
        assert (code, shown != "") == (0, True), said
    piped_code, *piped = outcome(from_input, FORMS["csv"]())
    both = [text.replace(str(file), "/dev/stdin") for text in (shown, said)]
    both = [text.replace("places.csv", "stdin") for text in both]
    assert piped_code == code
    assert list(map(without_times, piped)) == list(map(without_times, both))


@pytest.mark.parametrize("form", FORMS)
def test_the_format_is_told_by_the_content(form, outcome, small_index):
    code, shown, _ = outcome(["search", small_index, "-:place", "--json"], FORMS[form]())
    assert code == 0
    assert query_of(shown) == ("/dev/stdin", "place", 5)


def test_parquet_and_one_value_a_line(outcome, small_index):
    file = io.BytesIO()
    pq.write_table(pa.table({"town": ["Oslo", "Rome"]}), file)
    for content in (file.getvalue(), b"town\nOslo\nRome\n"):
        code, shown, _ = outcome(["search", small_index, "-", "--json"], content)
        assert code == 0
        assert query_of(shown) == ("/dev/stdin", "town", 2)


def test_a_pipe_of_the_shell(small_index):
    program = "from pexeso.faces.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "join", small_index, "-:place", "cities.csv:city"],
        input=FORMS["csv"](),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    assert lines[0].startswith("place,visits,match_value,match_distance,city,")
    assert lines[1].startswith("Oslo,0,Oslo,0.0,Oslo,")


def test_standard_input_is_what_it_was_afterwards(outcome, small_index):
    before = os.fstat(0)
    outcome(["search", small_index, "-", "--json"], FORMS["csv"]())
    assert os.path.samestat(os.fstat(0), before)


def test_no_input_is_an_empty_table(outcome, tmp_path):
    code, shown, said = outcome(["keys", "-"], b"")
    assert (code, shown, said) == (1, "", "Error: /dev/stdin is empty: it has no header row.\n")


def test_more_than_a_table_may_hold(outcome, monkeypatch):
    monkeypatch.setattr(pexeso.faces.cli.options, "DEFAULT_MAX_BYTES", 20)
    monkeypatch.setitem(pexeso.lake.containers.reader.read_table.__kwdefaults__, "max_bytes", 20)
    code, _, said = outcome(["keys", "-"], b"name\n" + b"x\n" * 5_000)
    assert code == 1
    assert said.startswith("Error: /dev/stdin holds more than 20 bytes")


def test_a_closed_standard_input(outcome, monkeypatch):
    program = "from pexeso.faces.cli.main import main; main(['keys', '-'])"
    done = ran(["bash", "-c", f'exec "{sys.executable}" -c "{program}" <&-'])
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        "Error: Standard input is closed. Pipe a table into the command, or name a file.\n",
    )


def test_a_system_without_a_name_for_standard_input(outcome, monkeypatch):
    monkeypatch.setattr("pexeso.faces.cli.options.STDIN", "/dev/no-such-name")
    code, _, said = outcome(["keys", "-"], FORMS["csv"]())
    assert code == 1
    assert said.startswith("Error: A table is read from standard input through /dev/no-such-name")
