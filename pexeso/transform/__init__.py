"""Joins of keys that are written differently, by a program learned from the two tables."""

MAX_PROGRAMS = 16
