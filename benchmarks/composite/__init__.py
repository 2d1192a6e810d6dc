"""Searches of composite keys: how fast they are, and what the filters of rows let pass."""
