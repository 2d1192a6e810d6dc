"""The parts of an index: what one kind of query needs on disk, behind a common interface."""
