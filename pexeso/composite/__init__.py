"""Exact search for the tables that join most keys of several columns (MATE).

M. Esmailoghli, J.-A. Quiané-Ruiz and Z. Abedjan, "MATE: Multi-Attribute Table Extraction", VLDB
2022. Where its text leaves something open the modules say what is done.

==================================  ================================================================
paper                               module
==================================  ================================================================
XASH (section 5)                    `xash`
Bloom filter                        `bloom`
posting lists, super keys of rows   `row_keys`
keys, initial column                `query`
discovery (algorithm 1), table      `search`, with `loops`
filters, joinability, row filter
==================================  ================================================================

Cells are numbers of values here, so a row is compared with a key without reading its texts, and a
super key is only one of the ways to sort out rows: see `search.search_keys`. Of tables that join
equally many keys the one with the lower number comes first, so every way gives the same answer.

Which columns of a table are a key is proposed by `candidate_keys`, with `key_kinds` and
`unique_columns`; the paper takes keys as given.

Symbols of the paper: Q the columns of the key, m their number; J(T), or j, the most keys that a
mapping of Q to columns of a table T joins; L_T the entries of T in the posting lists that are read.
A mapping gives each column of the key a column of its own. Distinct keys count, not rows.
"""
