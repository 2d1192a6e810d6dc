"""Joins as SQL, and what is found in DuckDB."""
