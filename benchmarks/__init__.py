"""Benchmarks of pexeso against its alternatives on the same data, with answers checked.

Not part of the wheel. ``python -m benchmarks run --help`` says how to run;
docs/explanation/benchmarks.md what is measured and how.
"""
