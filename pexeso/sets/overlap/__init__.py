"""Exact top-k search for the columns that share most values with a query column (JOSIE).

E. Zhu, "Search and Join Algorithms for Tables in Data Lakes", PhD thesis, University of Toronto,
2019, chapter 3 (first at SIGMOD 2019, by E. Zhu, D. Deng, F. Nargesian and R. J. Miller). Where its
text contradicts itself the modules say what is done instead. Its policy of what to read next (J4 to
J11) and ProbeSet are in the benchmarks, to compare with.

=======================================  ===========================================================
thesis                                   module
=======================================  ===========================================================
raw tokens                               `pexeso.lake.tokens`
global order, duplicate groups, integer  `index`; in files, and checked: `saving`
sets, posting lists, their build, query
tokens, distinct lists
dictionary                               `dictionary`, with the pages of files
prefix filter, position filter (J1,      `josie`
J2), read costs (J3), the algorithm
MergeList, and which of them             `planner`; for many queries at once: `batched`
=======================================  ===========================================================

Symbols of the thesis: Q the query (n of its tokens are in the lake), X a set, U the dictionary, i
the number of query tokens accounted for, t_k the k-th best overlap so far, p the length of the
prefix, lambda the number of lists read at a time. Formulas are numbered here:

=====================  =============================================================================
J1, J2                 length of the prefix; upper bound on an overlap
J3                     costs of reading the last tokens of a set, S(z), and a posting list, L(f)
=====================  =============================================================================
"""
