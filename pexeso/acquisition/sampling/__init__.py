"""Measures of joins from samples of tables (DANCE, see `pexeso.acquisition`).

===================================  ===============================================================
paper                                module
===================================  ===============================================================
h, hash of join values               `hashing`
S, correlated samples at the rate p  `correlated`
===================================  ===============================================================

A sample depends on the values of keys and a seed alone, never on where a row stands, so it is the
same on every machine, in Spark and out of it.
"""
