"""Compiled loops, scratch buffers, formatting, logs and progress: what all other packages use."""
