"""The layout of a delimited text: its dialect, where the table begins, its header, where it ends."""
