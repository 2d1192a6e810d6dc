"""The facts behind the demo lake, as plain data: one module for each theme."""
