"""The layout of a delimited text: its dialect, where its table begins and ends, its header."""
