"""Commands that serve an index to others: to browsers and to agents."""
