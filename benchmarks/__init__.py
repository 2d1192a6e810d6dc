"""Declared benchmark runs: pexeso against what a user could pick instead, on the same data, answers checked.

Not part of the wheel. ``python -m benchmarks run --help`` says how to run; docs/explanation/benchmarks.md what is measured and how.
"""
