"""The part for semantic searches: values as vectors, in partitions."""
