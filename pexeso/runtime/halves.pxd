"""Numbers of 16 bits in compiled loops, on processors without an instruction for them.

Arrays of float16 are handed to loops as their bits, uint16.
"""

from libc.stdint cimport uint16_t, uint32_t
from libc.string cimport memcpy

ctypedef fused Entry:
    float
    uint16_t


cdef inline float as_single(Entry entry) noexcept nogil:
    """Return an entry of an array as float32: as it is, or from the bits of a finite float16.

    Exponents are moved by 112. A number too small for that has none: its bits are read as those of
    a number from ``2**-14`` on, which is taken off again. No step meets a float32 below the normal
    ones, which processors may be set to take for zero.
    """
    cdef uint32_t rest, after, small, bits
    cdef float number
    if Entry is float:
        return entry
    else:
        rest = (<uint32_t>entry & 0x7FFF) << 13
        after = rest + (<uint32_t>113 << 23)
        memcpy(&number, &after, 4)
        number -= <float>6.103515625e-05
        memcpy(&small, &number, 4)
        bits = small if rest < (<uint32_t>1 << 23) else rest + (<uint32_t>112 << 23)
        bits |= (<uint32_t>entry & 0x8000) << 16
        memcpy(&number, &bits, 4)
        return number
