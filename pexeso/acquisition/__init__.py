"""Data acquisition: which tables to buy or fetch for a budget, over which joins, and why (DANCE).

Y. Li, H. Sun, B. Dong and H. Wang, "Cost-efficient Data Acquisition on Online Data Marketplaces for
Correlation Analysis", PVLDB 12 (4).

- `measures`: what tables join, tell, get wrong and cost, exactly.
- `sampling`: the same from samples of tables, with intervals.
- `graph`: tables, the columns by which they join, and the weights of these joins.
- `search`: plans of purchases: the published search, and one that proves its plan optimal.
"""
