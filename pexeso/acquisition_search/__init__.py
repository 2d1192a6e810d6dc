"""Join graphs for acquisitions over the tables of an index.

=======================  ===========================================================================
`lake_columns`           columns of an index with what pairs are decided by
`column_pairs`           pairs of columns that may join, of all tables or of some
=======================  ===========================================================================
"""
