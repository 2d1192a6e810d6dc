"""Advice on thresholds, learned from the distances of an index alone or from labelled pairs."""
