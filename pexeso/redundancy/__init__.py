"""Tables that others contain, and which of them to keep (R2D2)."""

SEMANTICS = ("set", "bag")
"""How rows are counted; see `pexeso.redundancy.containment.contained_rows`."""
