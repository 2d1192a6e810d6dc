"""Joins by equal text over the catalog of an index: its token sets on disk, and the two searches that answer from them.

`pexeso.overlap` (JOSIE) and `pexeso.containment` (LSH Ensemble) are the algorithms, and know nothing of each other or of a lake; here both are given the same
token sets, built beside the semantic index, kept up to date with it, and asked with the same query columns.
"""
