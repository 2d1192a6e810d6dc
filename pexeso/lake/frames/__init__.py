"""Tables and columns in memory, of whichever library, and results as such tables."""
