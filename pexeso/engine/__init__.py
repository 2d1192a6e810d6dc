"""The algorithm: exact join search over vectors, as array programs that know neither files nor Spark."""
