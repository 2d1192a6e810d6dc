"""Statements that rebuild tables: data, held against a grammar before they are run."""
