"""A lake larger than the memory it is searched in: partitions on disk, skipped, read in part, or held in memory to compare with."""
