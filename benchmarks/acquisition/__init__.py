"""Measurements of data acquisition."""
