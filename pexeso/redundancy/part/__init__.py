"""The part for redundant tables: hashes of all cells, so that rows of any columns compare."""
