"""The join graph of a lake: all pairs of columns of different tables that join, in one pass.

=================  =================================================================================
`options`          by which values columns join, and which edges are kept
`nodes`            the columns of the lake, and those that stand for their copies
`equal_values`     edges by equal values, from the token sets
`spark_tasks`      the same in tasks of Spark
`semantic`         edges by values alike: each column of the lake is a query of a shared pass
`graphs`           the edges of a snapshot, a batch at a time
`results`          the graph as a result in memory
=================  =================================================================================
"""
