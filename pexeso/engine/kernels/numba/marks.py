"""Compiled loops of the CPU kernel: which boxes of one level any query value is near to, and nothing below them."""

from __future__ import annotations

import numpy as np

from pexeso.engine.kernels.numba.walks import boxes_near
from pexeso.engine.layout.blocks import FANOUT
from pexeso.runtime.jit import loop


@loop()
def mark_boxes(points, limits, euclidean, boxes, starts, n_blocks, last, marks):
    """Mark the boxes of one level that some query value is near to, all above them included.

    Parameters
    ----------
    points, limits, euclidean, boxes, starts
        Those of `pexeso.engine.kernels.numba.walks.walk`.
    n_blocks : int
        K: boxes of the finest level.
    marks : uint8 (boxes of the level,)
        Set to 1 where a query value is near.
    """
    n_levels = starts.shape[0] - 1
    gaps = np.empty(FANOUT, np.float32)
    waiting_level, waiting = np.empty(FANOUT * (last + 2), np.int64), np.empty(FANOUT * (last + 2), np.int64)
    for query in range(points.shape[0]):
        waiting_level[0], waiting[0], n_waiting = 0, 0, 1
        while n_waiting:
            n_waiting -= 1
            level, group = waiting_level[n_waiting], waiting[n_waiting]
            limit = limits[1] if level == n_levels - 1 else limits[0]
            bits, _ = boxes_near(points, query, boxes, starts[level] + group, limit, euclidean, gaps)
            n_boxes = n_blocks if level == n_levels - 1 else starts[level + 2] - starts[level + 1]
            for j in range(FANOUT):
                number = group * FANOUT + j
                # Boxes that only pad a group are near where the lemma is switched off.
                if not (bits >> j) & 1 or number >= n_boxes:
                    continue
                if level == last:
                    marks[number] = 1
                else:
                    waiting_level[n_waiting], waiting[n_waiting] = level + 1, number
                    n_waiting += 1
