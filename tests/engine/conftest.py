"""Test setup of the engine: one thread for torch.

The arrays are tiny, and threads hinder each other on a busy machine.
"""

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
