"""The parts of an index: what one kind of question needs on disk, each behind the same interface."""
