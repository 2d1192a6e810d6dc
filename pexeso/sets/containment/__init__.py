"""Containment search: the sets that hold at least a given share of a query's tokens.

This is LSH Ensemble (E. Zhu, "Search and Join Algorithms for Tables in Data Lakes", PhD thesis,
University of Toronto, 2019, chapter 2; first published at VLDB 2016). The order in which to read,
with the part of the chapter that each module makes real (equations as numbered in the docstrings):

==================  ================================================================================
`hashing`           tokens as 64-bit numbers
`minhash`           MinHash signatures and their union; estimated similarity
`conversion`        containment and Jaccard similarity (E3 to E5), the probability of a candidate
                    (E1, E12)
`partitioning`      false positives of the conversion (E8, E9) and the partitions with the least of
                    them
`tuning`            bands and rows for a threshold, so that a recall is kept; the source's choice
                    (E13 to E15) is in the benchmarks
`bands`             dynamic LSH: one index of a partition for every setting
`lists`             posting lists: the exact way, and verification
`options`           what an index is built with
`ensemble`          the index: build, and search by lists or by bands, whichever is expected to be
                    faster
`stored`            the index on disk
==================  ================================================================================

By bands the recall is a promise about chance: hash functions are drawn by the seed, once for an
index. By lists nothing is missed. The precision after verification is 1.
"""
