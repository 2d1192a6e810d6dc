"""The kernel for the CPU: loops compiled by numba."""
