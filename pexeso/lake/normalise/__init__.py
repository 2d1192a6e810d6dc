"""The normaliser and its named rules."""
