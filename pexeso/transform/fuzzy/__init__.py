"""Joins of nearly equal texts under constraints."""
