"""The join graph of a market: tables, the columns by which they join, and what joins are worth.

==============================  ====================================================================
paper                           module
==============================  ====================================================================
D_i, instances                  `tables`: `MarketTable`
I-edges, AS-edges, JI weights   `joins`: `JoinEdge` with its `JoinSet` s, `JoinGraph`
AS-lattice, AS-vertices         `lattice`: `Lattice`, `LatticeEdge`
==============================  ====================================================================

The paper's second layer has a vertex for each set of attributes, 2**m - m - 1 of them for a table
with m columns. By its Property 4.1 a weight depends on the two tables and the columns of the join
alone, so a graph stores one `JoinSet` for each set of columns by which two tables join, and a plan
derives which columns it buys.
"""
