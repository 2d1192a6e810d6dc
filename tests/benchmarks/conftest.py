"""What the tests of the benchmarks share."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

# The benchmarks are no part of the installed packages.
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))


@pytest.fixture(autouse=True)
def _threads_as_before():
    """Runs pin the threads of the process; other tests get theirs back."""
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    with threadpool_limits():
        yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def small_lake():
    from benchmarks.datasets.synthetic import RandomData

    return RandomData(n_columns=40, n_values=600, dimensions=16, n_topics=4, seed=3).load()
