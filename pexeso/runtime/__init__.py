"""What every package may use: loops compiled by numba, hashes of numbers, counters that are lent."""
