"""Enrichment: columns of found tables that are worth adding to your table."""
