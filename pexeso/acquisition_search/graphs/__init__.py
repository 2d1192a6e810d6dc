"""Join graphs of the tables of an index: all of them, or those that a request can use."""
