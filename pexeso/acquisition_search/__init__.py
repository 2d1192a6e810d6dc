"""Data acquisition over an index: which tables of the lake to buy or fetch for a budget.

The algorithms are in `pexeso.acquisition`; this package reads what they need from an index and from
files, and tells what they find.
"""
