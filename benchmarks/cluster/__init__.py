"""Benchmark of a cluster: a planted lake is indexed and searched there; answers are checked.

The processes of the cluster run on one machine; what they take is counted, and scaled by arithmetic
to a billion columns.
"""
