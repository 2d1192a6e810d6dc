"""Data acquisition over an index: which tables of the lake to buy or fetch for a budget.

After Y. Li, H. Sun, B. Dong and H. Wang, "Cost-efficient Data Acquisition on Online Data
Marketplaces for Correlation Analysis" (PVLDB 12(4), 2019), called DANCE.

================  ==================================================================================
`searches`        what users call; `results`: plans as users get them
`market_graph`    the join graph that a request can use: pairs of columns of `pexeso.sets`, tables
                  and rows (`lake_market`, `tables`), joins (`graph`)
`plans`           A_S, A_T, B, alpha, beta: a request; TG: a plan, a tree of joins; all plans of a
                  request
`exact`           the best plans with a proof; `candidates`: all columns ranked, by `paths`
`evaluation`      CORR, Q, w and p of a plan, from `row_counts`; `quality`: shares of rows that keep
                  dependencies
`samples`         plans measured on samples of keys (`key_hashes`), with `intervals`
================  ==================================================================================
"""

DEFAULT_MAX_TABLES = 6  # Tables of a plan, the shopper's own included

DEFAULT_PLANS = 10

DEFAULT_MAX_MEMORY = 2 << 30

DEFAULT_LOOKED_AT = 200  # Tables that joins are followed to, nearest first

DEFAULT_MAX_SECONDS = 60.0  # What is found by then is reported with the gap to what could be
