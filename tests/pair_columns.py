"""Pairs of values that match, as the columns that a mapping is made of."""

import numpy as np
import pyarrow as pa

from pexeso.joins.mapping import PairColumns


def pair_columns(pairs):
    texts = (
        pa.array([getattr(pair, name) for pair in pairs], pa.large_string())
        for name in ("query", "key", "value")
    )
    distances = np.array([pair.distance for pair in pairs], dtype=np.float64)
    return PairColumns(*texts, distances, distances)
