"""The measurement of new processes, on commands that are quick."""

import json
import sys

import pytest
from click import ClickException
from click.testing import CliRunner

from benchmarks.start import main, measured, seconds_of


def test_the_time_of_processes_that_were_waited_for_counts():
    loop = "import time\nwhile time.process_time() < 0.3: pass"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {loop!r}], check=True)"
    wall, used = seconds_of([sys.executable, "-c", outer])
    assert used >= 0.3
    assert wall > 0


def test_ratios_are_of_the_same_round(monkeypatch):
    times = iter([(9.0, 9.0)] * 2 + [(3.0, 1.0), (2.0, 1.0), (8.0, 4.0), (4.0, 1.0)])
    monkeypatch.setattr("benchmarks.start.seconds_of", lambda command: next(times))
    result = measured({"index": [], "session": []}, 2)
    assert result["index"] == {"wall_seconds": 5.5, "processor_seconds": 2.5}
    assert result["index_over_session"] == {"wall": 1.75, "processor": 2.5}


def test_a_command_that_fails_is_told():
    with pytest.raises(ClickException, match="ended with code 3: no such thing"):
        seconds_of([sys.executable, "-c", "import sys; print('no such thing'); sys.exit(3)"])


def test_some_commands_are_measured():
    done = CliRunner().invoke(main, ["--rounds", "1", "--only", "numba,python"])
    assert done.exit_code == 0, done.output
    results = dict(line.split(": ", 1) for line in done.output.splitlines())
    assert list(results) == ["numba", "python"]
    assert json.loads(results["numba"])["processor_seconds"] > 0


def test_a_command_that_is_not_known_is_refused():
    done = CliRunner().invoke(main, ["--only", "java"])
    assert done.exit_code == 2
    assert "Got java." in done.output
