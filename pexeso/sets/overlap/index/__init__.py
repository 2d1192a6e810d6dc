"""The index of overlap search: sets and posting lists, built, stored, opened and checked."""
