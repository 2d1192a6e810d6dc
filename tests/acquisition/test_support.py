"""What keys of a sample say, against numbers worked out by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest

from pexeso.acquisition.intervals import support_of_keys, unseen_share


def test_effective_keys_with_heavy_ones_outside_of_the_sample():
    equal = support_of_keys(np.full(40, 5), 0.2, unsampled_squares=0)
    assert support_of_keys(np.full(40, 5), 0.2) == replace(equal, known=False)
    assert (equal.keys, equal.effective_keys, equal.inflation) == (40, 40.0, 1.0)
    # The squares of the whole are 40 * 25 / 0.2 = 5000 by the sample, and 1000 + 9000 as known.
    heavy = support_of_keys(np.full(40, 5), 0.2, unsampled_squares=9000)
    assert heavy.inflation == pytest.approx(math.sqrt(2))
    assert heavy.effective_keys == pytest.approx(20)
    assert support_of_keys(np.full(40, 5), 0.2, unsampled_squares=100) == equal


def test_unseen_share_is_that_of_cells_with_one_key():
    cells = np.array([0, 0, 1, 1, 2, 3])
    keys = np.array([0.1, 0.2, 0.3, 0.3, 0.1, 0.1])
    counts = np.array([1, 1, 2, 2, 3, 0])
    assert unseen_share(cells, keys, counts, 0.2) == pytest.approx(0.8 * 7 / 9)
    assert unseen_share(cells[:0], keys[:0], counts[:0], 0.2) == 0
