"""An index on disk: named arrays and texts with checksums, one manifest, committed at once and opened memory-mapped."""
