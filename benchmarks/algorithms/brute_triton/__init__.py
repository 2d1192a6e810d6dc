"""The algorithm `brute_triton`."""
