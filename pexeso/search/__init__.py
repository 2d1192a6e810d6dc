"""Semantic search over an open index: a query column is encoded, the partitions are searched, and what is found is ranked and described."""
