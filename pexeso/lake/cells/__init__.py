"""Cells of tables: which are missing, and how often each occurs."""
