"""The search for a plan as the paper has it: minimal graphs by landmarks, then a random walk."""
