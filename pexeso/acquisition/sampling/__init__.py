"""Measures of joins from samples of tables (DANCE, see `pexeso.acquisition`).

======================================  ============================================================
paper                                   module
======================================  ============================================================
h, hash of join values                  `hashing`, with `md5`
S, correlated samples at the rate p     `correlated`
S12', re-sampled joins, eta and rho     `thinned_join`
estimates of JI, CORR and Q             `estimates`, and `pairs` for two tables
(no intervals in the paper)             `intervals`, `support`, `key_summaries` of whole tables
======================================  ============================================================

A sample depends on the values of keys and a seed alone, never on where a row stands, so it is the
same on every machine, in Spark and out of it. At the rate 1 each estimate is the exact value and
its interval has no width.
"""
