"""One pass over the partitions of an index: for a single query column, or shared by several that ask alike."""
