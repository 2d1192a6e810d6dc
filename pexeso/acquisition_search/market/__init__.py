"""Tables of an index as tables of a market.

================  ==================================================================================
`lake_market`     tables that read their rows when these are needed; kinds of columns
`lake_rows`       the rows, a bounded number of them in memory
`prices_file`     prices: nothing, by entropy, or from a file
`dependencies`    dependencies: discovered on samples of rows, or from a file
================  ==================================================================================
"""
