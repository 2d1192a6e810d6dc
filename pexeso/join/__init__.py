"""The user's table joined with a found one: values that match, rows that hold them, conflicts, and the table that comes out."""
