"""An index in a local folder: written, locked, read as a snapshot, cleared away."""
