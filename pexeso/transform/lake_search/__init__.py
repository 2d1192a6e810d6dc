"""Columns of a lake that may join a query column by a program: they share rare pieces of text."""
