"""The layout of a delimited text: its dialect, where the table begins and ends, its header."""
