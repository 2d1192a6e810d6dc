"""Which measure of two columns orders and cuts what a search finds, and whether models do better.

Data sets with truth, pairs of columns that a wide search finds, measures of them, and models that
are learned on all data sets but one.
"""
