"""Benchmark of a lake that is larger than the memory it is searched in.

Partitions are on disk and skipped or read in part, or held in memory for comparison.
"""
