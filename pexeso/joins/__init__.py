"""Joins of the user's table with a found table.

A join consists of the values that match, the rows that hold them, conflicts, and the resulting
table.
"""
