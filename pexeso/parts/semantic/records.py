"""What partitions want of a table: the distinct normalised values of the columns that are kept."""

from pexeso.lake.records import value_records as records

__all__ = ["records"]
