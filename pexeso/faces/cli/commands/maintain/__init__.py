"""Commands that write an index: build it, and keep it up to date."""
