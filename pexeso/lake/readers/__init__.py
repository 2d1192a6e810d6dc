"""Files to tables: formats, dialects and encodings."""
