"""Folders that are one table: with a log of their files, or with partitions in their names."""
