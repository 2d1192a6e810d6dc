"""The arrays of a partition: maps, blocks, the published grid, and what must hold of them."""
