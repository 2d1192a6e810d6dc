"""Loops of the CPU kernel: the order of rows, the walk over boxes, which pairs match, and counts.

What decides a match keeps to IEEE 754 to the letter: no reordering, no fusing. The first, quick
looks are bounds with a tolerance (`pexeso.engine.metrics`, `pexeso.engine.maps.slack`); they add up
in lanes that are written here, so that processors take many at a time, and all builds find the same
candidates.

Pointers that loops write to are `Alone`: nothing else leads to the same place, or a compiler would
have to look before it takes many numbers at a time.
"""

from libc.math cimport fabsf, isfinite, sqrt, sqrtf
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t
from libc.string cimport memcpy
from libcpp.algorithm cimport nth_element
from libcpp.vector cimport vector

import numpy as np

from pexeso.errors import IndexCorruptError
from pexeso.runtime.halves cimport Entry, as_single

cdef extern from *:
    ctypedef float* FloatsAlone "float* __restrict"

include "order.pxi"
include "block.pxi"
include "walk.pxi"
include "count.pxi"
