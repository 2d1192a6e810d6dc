"""Why two columns match or not: words that carry a match, rows side by side, nearest values."""
