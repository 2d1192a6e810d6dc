"""Defaults of searches for tables to buy, in a module that loads nothing."""

from __future__ import annotations

DEFAULT_MAX_TABLES = 6
"""Tables of a plan, the shopper's own included."""


DEFAULT_PLANS = 10

DEFAULT_MAX_MEMORY = 2 << 30

DEFAULT_LOOKED_AT = 200
"""Tables that joins are followed to, nearest first."""

DEFAULT_MAX_SECONDS = 60.0
"""What is found by then is told with the gap to what could be."""
