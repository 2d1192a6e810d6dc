"""Stage 2 of a build: columns of similar content grouped into partitions that fit in memory.

Columns become histograms over the regions of a codebook (:mod:`partition.codebook`), histograms are
clustered under a divergence (:mod:`partition.clustering`, :mod:`partition.clustering`), and
clusters are made to fit a size limit (:mod:`partition.balance`). :mod:`partition.plan` runs all of
it over a lake. Importing this package imports neither Spark nor scikit-learn.
"""
