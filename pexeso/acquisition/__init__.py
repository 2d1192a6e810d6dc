"""Data acquisition over an index: which tables of the lake to buy or fetch for a budget.

After Y. Li, H. Sun, B. Dong and H. Wang, "Cost-efficient Data Acquisition on Online Data
Marketplaces for Correlation Analysis" (PVLDB 12(4), 2019), called DANCE.

================  ==================================================================================
`searches`        what users call; `market_search` puts the steps below together
`results`         plans as users get them
`market_graph`    the join graph that a request can use: pairs of columns of `pexeso.sets`, tables
                  and rows (`lake_market`, `tables`), joins (`graph`)
`plans`           A_S, A_T, B, alpha, beta: a request; TG: a plan, a tree of joins
`trees`           all plans of a request; `exact` proves the best, `candidates` ranks all columns
`evaluation`      CORR, Q, w and p of a plan, from `row_counts` of `coded_columns`
`samples`         plans measured on samples of keys (`key_hashes`, `sampled_join`), with `intervals`
`quality`         shares of rows that keep dependencies, with `pexeso.joins.measures`
================  ==================================================================================
"""
