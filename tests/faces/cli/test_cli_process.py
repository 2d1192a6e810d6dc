"""The process of the command line: it ends at once, and loses nothing by it."""

import subprocess
import sys
from pathlib import Path

import pytest
from processes import ran, ran_pexeso

ROOT = Path(__file__).resolve().parents[3]

STAND_IN = """
import sys, types
from pathlib import Path

class Slow:
    def __del__(self):
        Path({freed!r}).touch()

slow = Slow()

def main():
    import atexit, tempfile
    folder = tempfile.TemporaryDirectory(dir={folder!r})
    atexit.register(lambda: print("closed"))
    print("answer " * 5000)
    print("message", file=sys.stderr, end="")
    main.kept = folder
    {before}
    raise SystemExit({code})

module = types.ModuleType("pexeso.faces.cli.main")
module.main = main
sys.modules["pexeso.faces.cli.main"] = module
from pexeso.faces.cli.process import run
run()
"""


def ended(tmp_path, code, before="pass", stdout=subprocess.PIPE):
    """Run a process with something else in the place of the command line."""
    (tmp_path / "temporary").mkdir()
    program = STAND_IN.format(
        freed=str(tmp_path / "freed"), folder=str(tmp_path / "temporary"), before=before, code=code
    )
    return ran([sys.executable, "-c", program], stdout=stdout, cwd=ROOT)


@pytest.mark.parametrize("code", [None, 0, 3, 130])
def test_everything_is_written_and_put_away_before_the_process_ends(tmp_path, code):
    done = ended(tmp_path, code)
    assert done.returncode == (code or 0)
    assert done.stdout == "answer " * 5000 + "\nclosed\n"
    assert done.stderr == "message"
    assert list((tmp_path / "temporary").iterdir()) == []
    assert not (tmp_path / "freed").exists(), "nothing is freed one by one"


@pytest.mark.parametrize(
    ("code", "before"), [("'a sentence'", "pass"), ("1", "sys.modules['py4j'] = sys")]
)
def test_what_may_have_more_to_do_ends_as_every_process(tmp_path, code, before):
    done = ended(tmp_path, code, before)
    assert done.returncode == 1
    assert done.stdout.endswith("closed\n")
    assert (tmp_path / "freed").exists()


def test_a_full_disk_is_no_success(tmp_path):
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = ended(tmp_path, 0, stdout=full)
    assert done.returncode != 0
    assert "No space left on device" in done.stderr


def test_the_command_goes_through_it():
    done = ran_pexeso("--version", cwd=ROOT, variables={"PYTHONPROFILEIMPORTTIME": "1"})
    assert "pexeso.faces.cli.process" in done.stderr
    assert done.stdout.startswith("pexeso ")


INTERRUPTED_WHILE_IMPORTING = """
import sys

class Interrupt:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "pexeso.faces.cli.output":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt)
from pexeso.faces.cli.process import run
run()
"""


def test_ctrl_c_is_told_in_a_word_while_modules_are_imported():
    done = ran([sys.executable, "-c", INTERRUPTED_WHILE_IMPORTING, "--version"], cwd=ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "\nInterrupted.\n")
