"""Joins of keys that are written differently: what is found, and what it takes.

=============  ====================================================================================
module         what it holds
=============  ====================================================================================
`cases`        the shared pairs of tables, their keys and their true pairs
`scores`       precision, recall and F of pairs, and their means
`learned`      what pexeso joins in a case, with the key columns named or found
`best_fuzzy`   the best fuzzy join, tuned on the truth of the case
`quality`      the part ``cases``: all of these on all cases
`restraint`    pairs of columns that a program should leave alone
`planted`      the part ``planted``: seconds, memory and F on these
`life`         the part ``life``: rules of few rows, applied to later rows
`tables`       results as text
`command`      ``python -m benchmarks transform``
=============  ====================================================================================
"""
