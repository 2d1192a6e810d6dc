"""The algorithm `ball_tree`."""
