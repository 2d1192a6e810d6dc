"""Answers to queries: what a search found, with the evidence for it.

They are put together from search, re-ranking, explanations and joins.
"""
