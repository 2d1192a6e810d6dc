"""Pairs of columns of an index that may join by equal values."""
