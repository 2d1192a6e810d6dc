"""Arguments of the tools of agents, drawn by chance."""

import json

TEXTS = (
    *("", ":", "a", "#0", "~", "~0000000000000000", "../secret.csv:a", "secret.csv", "\x00"),
    *("cities.csv", "cities.csv:city", "visits.csv:place", "wide.csv:#3", "named.csv:a:b"),
    *("mine.csv:town", "/etc/passwd", "file:///etc/passwd", "s3://bucket/a.csv:b", "\u202e" * 99),
    *("漢" * 3000, "out.csv", "../out.csv", "{}", "[]", "null", "semantic", "transform", "all"),
    *("games.csv:year,city", "hosts.csv:y,c", "left_out", "columns", "unmatched", "inner"),
)
LISTS = (["Oslo", "ROME", None], [], [1, 2.5, "x" * 5000], ["year", "city"], [[]], ["a", "a"])
RIGHT = {
    "column": "cities.csv:city",
    "lake_column": "visits.csv:place",
    "table": "games.csv",
    "output": "out.csv",
    "overwrite": True,
}
"""Arguments of which some are changed, so that many calls get far."""

NUMBERS = (0, 1, 2, 7, 1000, 5000, 20_000, 0.3, 1.0)
OTHERS = (True, False, None, 0, 1, -1, 7, 1000, 20_000, 10**30, 0.3, 1.0, {"a": 1})


def arguments_of(schema, draw):
    """Return some arguments of a tool, most of the kind that it takes."""
    right = draw.random() < 0.7
    given = {name: RIGHT[name] for name in schema["properties"] if right and name in RIGHT}
    for name, field in schema["properties"].items():
        if draw.random() < (0.08 if right else 0.35):
            kinds = json.dumps(field)
            if '"enum"' in kinds and draw.random() < 0.8:
                enum = field.get("enum") or field["anyOf"][0].get("enum")
                given[name] = draw.choice(enum)
            elif '"array"' in kinds and draw.random() < 0.8:
                given[name] = draw.choice(LISTS)
            elif '"string"' in kinds and draw.random() < 0.9:
                given[name] = draw.choice(TEXTS)
            elif '"array"' in kinds or draw.random() < 0.5:
                given[name] = draw.choice((*OTHERS, *LISTS, *TEXTS))
            elif '"boolean"' in kinds:
                given[name] = draw.choice((True, False))
            else:
                given[name] = draw.choice(NUMBERS)
            if name in ("values", "file") and draw.random() < 0.8:
                given.pop("column", None)  # else most calls have two queries, which gets nowhere
    if draw.random() < 0.02:
        given["nothing"] = 1
    return given
