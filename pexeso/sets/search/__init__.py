"""Searches by equal values over the token sets of an index: overlap and containment."""
