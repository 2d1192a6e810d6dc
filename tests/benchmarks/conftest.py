"""What the tests of the benchmarks share."""

import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

# The benchmarks are no part of the installed packages; lakes of the engine's tests serve here too.
for folder in (ROOT, ROOT / "tests" / "engine"):
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


@pytest.fixture(scope="session")
def thread_pools():
    """Look for the libraries with threads of their own once: it takes longer than most tests."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@pytest.fixture(autouse=True)
def _threads_as_before(thread_pools):
    """Runs pin the threads of the process; other tests get theirs back."""
    import torch

    before = torch.get_num_threads()
    with thread_pools.limit():
        yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def _fine_clock(monkeypatch):
    """Measure processor seconds by the wall clock.

    Some machines count them in hundredths: the small data of these tests would take none at all,
    and no ratio of such times exists.
    """
    monkeypatch.setattr(time, "process_time", time.perf_counter)


@pytest.fixture(scope="session")
def small_lake():
    from benchmarks.datasets.synthetic import RandomData

    return RandomData(n_columns=40, n_values=600, dimensions=16, n_topics=4, seed=3).load()
