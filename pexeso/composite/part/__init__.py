"""The part for composite keys: rows of tables behind posting lists of their values."""
