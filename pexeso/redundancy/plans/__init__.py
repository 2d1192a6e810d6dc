"""Redundant tables of a lake found, planned, set aside and brought back."""
