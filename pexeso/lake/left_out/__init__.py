"""What a lake's index is without, and what was repaired while reading, grouped by reason."""
