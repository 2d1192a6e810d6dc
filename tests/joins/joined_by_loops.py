"""A join as one would write it down first: loops over all rows.

What the joins of the product are held against.
"""

import math
import unicodedata


def join_by_loops(
    ours, on, links, theirs, column, normalise, values="nearest", how="left", ways=None
):
    """Join two lists of dictionaries.

    `links` is {(query value, lake value): distance}; cells are normalised by `normalise`.
    One-to-one is not judged here: give the links that it chose.
    """
    joined = []
    first = {normalise(other[column]): at for at, other in reversed(list(enumerate(theirs)))}
    for row in ours:
        query = normalise(row[on])
        ranked = sorted(
            (distance, query != lake, first.get(lake, len(theirs)), lake)
            for (mine, lake), distance in links.items()
            if mine == query
        )
        if values == "nearest":
            ranked = ranked[:1]
        matches = [
            {"match_value": other[column], "match_distance": distance, **other}
            for distance, _, _, lake in ranked
            for other in theirs
            if normalise(other[column]) == lake
        ]
        if values != "all":
            matches = of_own_form(matches, row[on])
        if ways is not None and matches:
            matches = [one_of(matches, ways)]
        if not matches and how == "left":
            matches = [dict.fromkeys(["match_value", "match_distance", *theirs[0]])]
        joined += [{**row, **other} for other in matches]
    return joined


def of_own_form(matches, text):
    """Keep the same cells, where there are some; else those of other case or spaces; else all."""
    same = [match for match in matches if match["match_value"] == text]
    alike = [match for match in matches if folded(match["match_value"]) == folded(text)]
    return same or alike or matches


def folded(text):
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def one_of(rows, ways):
    one = {name: rows[0][name] for name in ("match_value", "match_distance")}
    for name, way in ways.items():
        cells = [row[name] for row in rows]
        one[name] = aggregate(cells, way)
    return one


def aggregate(cells, way):
    present = [cell for cell in cells if cell is not None]
    if way == "first":
        return cells[0]
    if way == "list":
        return present
    if way == "distinct":
        return list(dict.fromkeys(present))
    if way == "count":
        return len(present)
    numbers = [float(cell) for cell in present if is_number(cell)]
    if not numbers:
        return None
    return {
        "sum": math.fsum,
        "min": min,
        "max": max,
        "mean": lambda them: math.fsum(them) / len(them),
    }[way](numbers)


def is_number(cell):
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False
