"""The part for searches by equal values: columns as sets of tokens, in shards."""
