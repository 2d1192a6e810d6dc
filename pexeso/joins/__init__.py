"""Joins of your table with a found table: mapping, rows, conflicts and the resulting table."""
