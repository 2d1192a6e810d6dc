"""Tables on disk: find them, read them whatever their dialect and encoding, choose and normalise their join columns."""
