"""Columns as sets of equal values: overlap (JOSIE) and containment (LSH Ensemble)."""
