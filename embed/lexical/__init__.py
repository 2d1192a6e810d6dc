"""Embed by spelling: words and their character n-grams, hashed, and how rare a word is in the lake."""
