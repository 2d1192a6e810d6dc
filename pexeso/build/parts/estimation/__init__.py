"""Basis of the estimates of parts: a sample of the lake, and the seconds that stages take.

The sample is read, and its numbers are scaled to the lake.
"""
