"""Compiled loops of the sparse space, by what they go through."""
