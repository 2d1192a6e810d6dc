"""The declared algorithms, one folder each."""
