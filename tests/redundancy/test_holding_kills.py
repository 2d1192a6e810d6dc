"""Moves of tables that are killed leave each table whole, and go on; and the test of that can fail.

They run in a process of their own: the children are forks of it, and it has one thread.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from processes import ran

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BROKEN = """
import sys
sys.path[:0] = [{here!r}]
import holding_kills
from pexeso.redundancy import holding_folder as journal
from pexeso.redundancy import holding
{change}
# Up to the first failure: the kills after it would tell no more.
sys.exit(0 if any(kill.failure for kill in holding_kills.kills_at_every_step()) else 3)
"""


def run(*command: str) -> subprocess.CompletedProcess:
    return ran(
        [sys.executable, *command],
        cwd=ROOT,
        variables={"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        timeout=300,
    )


def test_tables_are_whole_in_one_place_after_a_kill_and_the_call_goes_on():
    done = run(str(HERE / "holding_kills.py"), "40")
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 failures; " in done.stdout
    assert done.stdout.startswith("40 calls (10 apply elsewhere, 10 apply here, 10 undo elsewhere,")


@pytest.mark.long
def test_tables_are_whole_in_one_place_whatever_the_step_of_the_kill():
    done = run(str(HERE / "holding_kills.py"), "--every-step")
    assert done.returncode == 0, done.stdout + done.stderr
    calls = int(done.stdout.split()[0])
    assert f"{calls} killed before their end" in done.stdout
    assert calls > 400


@pytest.mark.parametrize(
    "change",
    [
        # The original is removed file by file under its own name.
        pytest.param(
            "holding._Moving.finish_leaving = "
            "lambda self, table: holding.remove_tree(self.lake/table)",
            marks=pytest.mark.long,
        ),
        # A copy gets its name before it is whole.
        "holding._Moving.copy_of = lambda self, table: self.stored / table; rename = "
        "holding.rename_new; holding.rename_new = lambda a, b: None if a == b else rename(a, b)",
        # A table moves without a line in the journal.
        "journal.Journal.add = lambda self, entry: self.tables.update({entry.table: entry})",
    ],
)
def test_a_move_that_is_not_safe_is_found(change):
    done = run("-c", BROKEN.format(here=str(HERE), change=change))
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
