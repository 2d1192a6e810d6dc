"""Advice on thresholds: learnt from the distances of an index alone, or from pairs that a user has labelled."""
