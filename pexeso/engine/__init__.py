"""The algorithm: exact join search over vectors.

It consists of array programs that depend on neither files nor Spark.
"""
