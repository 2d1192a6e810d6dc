"""Building blocks of enrichment: rules, columns as numbers or text, and table gathering.

Columns are read as numbers or text, and the found tables are gathered one at a time.
"""
