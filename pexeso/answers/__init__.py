"""Answers to queries: what a search found, with the evidence for it, put together from search, re-ranking, explanations and joins."""
