"""Shared runtime helpers: numba-compiled loops, hashes of numbers, counters that are lent."""
