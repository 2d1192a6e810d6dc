"""Benchmarks of data acquisition: markets of priced and damaged tables, and held-back targets."""
