"""The time that a search tells is the time that was waited for it."""

import re
import time
from pathlib import Path

import pytest
from processes import ran_pexeso

ROOT = Path(__file__).resolve().parents[3]


def milliseconds_of(line):
    """The milliseconds of a line, and those of its phases."""
    total, phases = re.search(r" in ([\d.,]+) ms(?: \((.*)\))?$", line).groups()
    split = [phase.split() for phase in (phases or "").split(", ") if phase]
    return float(total.replace(",", "")), {
        name: float(value.replace(",", "")) for name, value in split
    }


def test_a_process_tells_the_time_from_its_start(small_index, places):
    started = time.perf_counter()
    done = ran_pexeso("search", small_index, f"{places}:place", cwd=ROOT, check=True)
    waited = 1000 * (time.perf_counter() - started)
    total, phases = milliseconds_of(done.stderr.splitlines()[-1])
    # Ending the process is not told; torch alone takes over a second to go.
    assert 0.4 * waited < total <= waited
    assert list(phases)[:2] == ["start", "open"]
    assert sum(phases.values()) == pytest.approx(total, rel=0.01, abs=5)


def test_a_command_within_a_process_tells_its_own_time(run, small_index, places):
    started = time.perf_counter()
    result = run("search", small_index, f"{places}:place")
    waited = 1000 * (time.perf_counter() - started)
    assert milliseconds_of(result.stderr.splitlines()[-1])[0] <= waited + 1


def test_several_searches_tell_what_was_waited_for_all(run, small_index, write):
    path = write("two.csv", "a,b\nOslo,Rome\nMadrid,Dublin\nBern,Paris\n")
    *lines, last = run("search", small_index, path, "--all-columns").stderr.splitlines()
    assert re.fullmatch(r"2 searches in [\d.,]+ ms", last)
    assert not any("start" in milliseconds_of(line)[1] for line in lines if " ms (" in line)
