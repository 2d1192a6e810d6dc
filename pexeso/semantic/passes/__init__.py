"""Passes over the partitions of an index.

A pass serves a single query column, or several with the same threshold and filters.
"""
