"""Exact search of values as sparse vectors of pairs of letters.

A value is a bag of words, and a word a bag of pairs, so nothing but the words is stored.
"""
