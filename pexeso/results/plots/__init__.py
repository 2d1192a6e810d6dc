"""Charts of results, by matplotlib."""
