"""Effectiveness of the search for joinable columns, on lakes whose truth is known.

It is measured as precision, recall, and recall of the semantic-only pairs.
"""
