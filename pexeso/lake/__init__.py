"""Tables on disk: finding and reading them, choosing join columns, one form for their values, the catalog."""
