"""Programs learned from two tables: likely pairs of rows, examples, and what joins most keys."""
