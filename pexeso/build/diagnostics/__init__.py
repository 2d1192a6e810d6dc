"""Diagnostics of an index and of a machine.

They report whether an index is intact, what is in it, and what is missing on the machine.
"""
