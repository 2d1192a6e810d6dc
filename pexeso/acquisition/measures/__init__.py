"""Exact measures of tables that could be bought: what they join, tell, get wrong and cost (DANCE).

Y. Li, H. Sun, B. Dong and H. Wang, "Cost-efficient Data Acquisition on Online Data Marketplaces for
Correlation Analysis", PVLDB 12 (4). Where its text leaves something open, or contradicts
itself, the modules say what is done.

==================================  ================================================================
paper                               module
==================================  ================================================================
JI, join informativeness            `informativeness`
H, H(X|Y), I, Shannon entropies     `entropy`
h, h(X|Y), cumulative entropies     `cumulative_entropy`
CORR, correlation                   `correlation`
Q, quality by dependencies (AFDs)   `quality`
entropy-based prices                `prices`
join results                        `join_counts`
sums, correctly rounded             `sums`
==================================  ================================================================

Tables are bags: each row counts, equal rows too. Attributes are matched by equal names. Logarithms
are to base 2. Sums are correctly rounded (`sums`) and logarithms use additions,
multiplications and divisions alone (`logarithm`), so each measure has the same bits on every
processor, whatever the order of the rows.
"""
