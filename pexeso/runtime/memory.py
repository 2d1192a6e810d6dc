"""How much memory the system has left, and work that would take more."""

from __future__ import annotations

from pexeso.errors import InputError
from pexeso.runtime.formatting import format_bytes
from pexeso.runtime.system import available_memory

# What a matching pair takes at the most, from the comparison to the joined mapping.
BYTES_OF_A_PAIR = 250

# For so many pairs nobody asks how much memory is left.
FEW_PAIRS = 1 << 18


def require_memory_for_pairs(n_pairs: int, max_distance: float) -> None:
    """Refuse so many matching pairs of values where the memory left does not hold them."""
    needed, available = n_pairs * BYTES_OF_A_PAIR, available_memory()
    if available is not None and needed > available:
        raise InputError(
            f"More than {n_pairs:,} pairs of values match within distance {max_distance:g}, which "
            f"take {format_bytes(needed)} of memory, and {format_bytes(available)} is available: "
            "take a smaller max_distance, or give fewer values."
        )
