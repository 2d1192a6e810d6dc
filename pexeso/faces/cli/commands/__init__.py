"""The commands, one module each or for a few that belong together."""
