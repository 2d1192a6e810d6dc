"""Tables that others contain, and which of them to keep (R2D2)."""
