"""Numbers of 16 bits in compiled loops, which numba knows on no processor.

Arrays of float16 are handed to loops as their bits, uint16.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from pexeso.runtime.jit import loop


@intrinsic
def _widened(context, bits):
    """Turn the bits of a finite float16 into that number as float32.

    By steps on whole numbers, as numba knows no float16 on the CPU, and as not every processor has
    an instruction for it. Exponents are moved by 112. A number too small for that has none: its
    bits are read as those of a number from ``2**-14`` on, which is taken off again. No step meets
    a float32 below the normal ones, which processors may be set to take for zero; and as whole
    numbers come last, loose arithmetic cannot reorder what is done here.
    """

    def generate(context, builder, signature, arguments):
        whole, single = ir.IntType(32), ir.FloatType()
        bits = builder.zext(arguments[0], whole)
        rest = builder.shl(builder.and_(bits, whole(0x7FFF)), whole(13))
        normal = builder.add(rest, whole(112 << 23))
        after = builder.bitcast(builder.add(rest, whole(113 << 23)), single)
        small = builder.bitcast(builder.fsub(after, single(2.0**-14)), whole)
        is_small = builder.icmp_unsigned("<", rest, whole(1 << 23))
        sign = builder.shl(builder.and_(bits, whole(0x8000)), whole(16))
        value = builder.or_(builder.select(is_small, small, normal), sign)
        return builder.bitcast(value, single)

    return types.float32(types.uint16), generate


def _single(entry: Any) -> Any:
    return np.float32(entry.view(np.float16)) if isinstance(entry, np.uint16) else entry


@overload(_single)
def _compiled_single(entry):
    if isinstance(entry, types.Integer):
        return lambda entry: _widened(entry)
    return lambda entry: entry


@loop
def as_single(entry):
    """Return an entry of an array as float32: as it is, or from the bits of a float16.

    Examples
    --------
    >>> float(as_single(np.float16(-1.5).view(np.uint16))), float(as_single(np.float32(0.1))) == 0.1
    (-1.5, False)
    """
    return _single(entry)
