"""The algorithm `pexeso`."""
