"""Join graphs and joins, written for other tools."""
