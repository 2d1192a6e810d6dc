"""Tables of an index as tables of a market: rows, kinds of columns, prices, dependencies."""
