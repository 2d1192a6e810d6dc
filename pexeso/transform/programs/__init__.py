"""Programs that write one key in the form of another: what they do, say and look like."""
