"""Building a partition: vectors are checked, mapped, ordered and cut.

The map and the number of levels of a grid are chosen by cost.
"""
