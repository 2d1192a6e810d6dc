"""Columns found, ordered by how likely they can be joined: features, boosted trees, feature attributions."""
