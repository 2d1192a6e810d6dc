"""Defaults of searches for tables to buy, in a module that loads nothing."""

METHODS = ("exact", "published")
"""All plans, with a proof; or the paper's search, which looks at some."""

DEFAULT_PLANS = 10

DEFAULT_MAX_MEMORY = 2 << 30

DEFAULT_LOOKED_AT = 200
"""Tables that joins are followed to, nearest first."""

DEFAULT_MAX_SECONDS = 60.0
"""What is found by then is told with the gap to what could be."""
