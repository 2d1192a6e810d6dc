"""The algorithm `cuml_radius`."""
