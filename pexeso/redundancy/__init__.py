"""Tables that others contain, and which of them to keep (R2D2)."""

METHODS = ("exact", "sampled")
SEMANTICS = ("set", "bag")  # a row occurs in the parent, or as often as in the child
