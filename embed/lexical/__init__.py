"""Embedding by spelling: hashed words and character n-grams, and word rarity in the lake."""
