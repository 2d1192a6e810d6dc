"""How much a column tells of another: codes, entropies, correlation."""
