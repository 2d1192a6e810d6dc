"""Defaults of requests, in a module that loads nothing."""

DEFAULT_MAX_TABLES = 6
"""Tables of a plan, the shopper's own included."""
