"""Tables on disk: search, reading, join columns, normalised values and the catalog."""
