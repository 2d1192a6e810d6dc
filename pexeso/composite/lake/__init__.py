"""Searches by composite keys over the shards of an index, their queries and results."""
