"""Pairs of columns of an index that may join by equal values.

================  ==================================================================================
`lake_columns`    columns of an index, with what decides whether two of them may join
`lake_tokens`     tokens of all its shards under common numbers
`containers`      columns that contain a share of another one
`column_pairs`    the rules, all pairs of an index, and those of some tables
`pair_loops`      the compiled loops
================  ==================================================================================
"""
