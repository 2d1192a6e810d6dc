"""What answers requests of verbs that are more than a call: a module for each."""
