"""Join graphs of the tables of an index: all of them, or those that a request can use.

=================  =================================================================================
`table_pairs`      pairs of tables that may join, with their pairs of columns
`row_pairs`        the same of tables in memory
`reachable`        tables on short paths between the ends of a request
`market_graph`     the graph that a request searches
`stored_graph`     the graph of all tables in a file, built and brought up to date
`spark_weights`    its joins weighed by Spark
`sample_market`    the graph of a folder of samples, without an index
=================  =================================================================================
"""
