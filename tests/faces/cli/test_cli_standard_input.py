"""``-`` as a query file: answers are those of the same table in a file."""

import gzip
import io
import json
import os
import re
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from processes import ran, ran_pexeso

import pexeso.faces.cli.options
import pexeso.lake.containers.reader

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


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_answers_as_from_a_file(command, run, small_index, write):
    file = write("places.csv", FORMS["csv"]().decode())
    names = write("names.csv", "name\nOSLO\nROME\nMADRID\nVIENNA\nBERN\n")
    put = {"INDEX": str(small_index), "NAMES": f"{names}:name"}
    arguments = [put.get(word, word) for word in command]
    from_file = [re.sub("^FILE", str(file), argument) for argument in arguments]
    from_input = [re.sub("^FILE", "-", argument) for argument in arguments]
    code = 2 if "place,visits" in " ".join(command) else 0  # of which this index has no part
    named = run(*from_file, code=code)
    piped = run(*from_input, input=FORMS["csv"](), code=code)
    assert code or named.stdout
    for ours, theirs in ((piped.stdout, named.stdout), (piped.stderr, named.stderr)):
        same = theirs.replace(str(file), "/dev/stdin").replace("places.csv", "stdin")
        assert without_times(ours) == without_times(same)


@pytest.mark.parametrize("form", FORMS)
def test_the_format_is_told_by_the_content(form, run, small_index):
    shown = run("search", small_index, "-:place", "--json", input=FORMS[form]()).stdout
    assert query_of(shown) == ("/dev/stdin", "place", 5)


def test_parquet_and_one_value_a_line(run, small_index):
    file = io.BytesIO()
    pq.write_table(pa.table({"town": ["Oslo", "Rome"]}), file)
    for content in (file.getvalue(), b"town\nOslo\nRome\n"):
        shown = run("search", small_index, "-", "--json", input=content).stdout
        assert query_of(shown) == ("/dev/stdin", "town", 2)


def test_a_pipe_of_the_shell(small_index):
    words = ("join", small_index, "-:place", "cities.csv:city")
    done = ran_pexeso(*words, input=FORMS["csv"]().decode())
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("place,visits,match_value,match_distance,city,")
    assert lines[1].startswith("Oslo,0,Oslo,0.0,Oslo,")


def test_standard_input_is_what_it_was_afterwards(run, small_index):
    before = os.fstat(0)
    run("search", small_index, "-", "--json", input=FORMS["csv"]())
    assert os.path.samestat(os.fstat(0), before)


def test_no_input_is_an_empty_table(fail):
    said = fail(1, "keys", "-", input=b"")
    assert said == "Error: /dev/stdin is empty: it has no header row.\n"


def test_more_than_a_table_may_hold(fail, monkeypatch):
    monkeypatch.setattr(pexeso.faces.cli.options, "DEFAULT_MAX_BYTES", 20)
    monkeypatch.setitem(pexeso.lake.containers.reader.read_table.__kwdefaults__, "max_bytes", 20)
    said = fail(1, "keys", "-", input=b"name\n" + b"x\n" * 5_000)
    assert said.startswith("Error: /dev/stdin holds more than 20 bytes")


def test_a_closed_standard_input():
    done = ran(["bash", "-c", f'exec "{sys.executable}" -m pexeso keys - <&-'])
    said = "Error: Standard input is closed. Pipe a table into the command, or name a file.\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", said)


def test_a_system_without_a_name_for_standard_input(fail, monkeypatch):
    monkeypatch.setattr("pexeso.faces.cli.options.STDIN", "/dev/no-such-name")
    said = fail(1, "keys", "-", input=FORMS["csv"]())
    assert said.startswith("Error: A table is read from standard input through /dev/no-such-name")
