"""The experiment of `examples/enrich.py`.

It has tasks, ways to find tables, models and their scores, and the tables that show them.
"""
