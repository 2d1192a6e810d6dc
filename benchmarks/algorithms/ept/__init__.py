"""The algorithm `ept`."""
