"""Loops over letters and tokens of texts: fuzzy joins, learned programs, and similar columns.

What decides is whole numbers, or float64 in strict IEEE 754 arithmetic.
"""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libcpp.algorithm cimport lower_bound
from libcpp.vector cimport vector

import numpy as np

include "fuzzy.pxi"
include "learning/candidates.pxi"
include "learning/suffixes.pxi"
include "learning/chance.pxi"
include "search/grams.pxi"
