"""Semantic search over an open index.

A query column is encoded, the partitions are searched, and the columns found are ranked and
described.
"""
