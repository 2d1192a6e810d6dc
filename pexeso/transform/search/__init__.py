"""Search for columns of a lake that join a query column after a learned program."""
