"""Which rule shows that a child has values that its parent lacks: plain code for a pair."""


def refutes(child, parent):
    """Return ``bounds``, ``nulls`` or ``nan``; None where nothing is shown."""
    if child.has_value and parent.all_null:
        return "bounds"
    for name, sign, other in (("min", 1, "max"), ("max", -1, "min")):
        bound = getattr(parent, name)
        if bound is None or not getattr(parent, f"{name}_cover"):
            continue
        near, far = getattr(child, name), getattr(child, other)
        if near is not None and getattr(child, f"{name}_witness") and before(near, bound, sign):
            return "bounds"
        covered = child.has_value and far is not None and getattr(child, f"{other}_cover")
        if covered and before(far, bound, sign):
            return "bounds"
    if child.null_count and parent.null_count == 0:
        return "nulls"
    if child.nan is True and parent.nan is False:
        return "nan"
    return None


def before(ours, other, sign):
    return ours < other if sign > 0 else ours > other
