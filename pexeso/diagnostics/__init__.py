"""What is told of an index and of a machine: whether an index is whole, what is in it, what is missing here."""
