"""The space of dense vectors: maps, blocks, filters and verification."""
