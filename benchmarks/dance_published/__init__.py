"""DANCE's search as published: minimal graphs by landmarks, then random walks on them.

It finds good plans, not the best one, and says nothing of how much better a plan could be.
"""
