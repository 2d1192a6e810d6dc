"""The join graph of a lake: all pairs of columns of different tables that join, in one pass."""
