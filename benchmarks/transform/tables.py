"""Results as text: tables for people, which the documentation shows too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

NAMES = {
    "named": "pexeso, columns named",
    "found": "pexeso, columns found",
    "equality": "equality",
    "substring": "substring (SM)",
    "rare pieces": "rare pieces (DQ-P)",
    "constrained fuzzy": "constrained fuzzy (FJ-C)",
    "semantic": "default model alone",
    "best fuzzy": "best fuzzy (FJ-O, an oracle)",
}


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table.

    Examples
    --------
    >>> print(markdown(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = [heads, ["---"] * len(heads), *rows]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return text.replace("| " + " | ".join(["---"] * len(heads)) + " |", "|---" * len(heads) + "|")


def share(value: float | None) -> str:
    """Return a share with three digits.

    Examples
    --------
    >>> share(0.12345), share(1.0), share(None)
    ('.123', '1.000', '-')
    """
    if value is None:
        return "-"
    text = f"{value:.3f}"
    return text.removeprefix("0") if value < 1 else text


def means_table(result: Row) -> str:
    """Return mean precision, recall and F of the methods, for each group of cases."""
    rows = []
    for group, methods in result["means"].items():
        for method, own in methods.items():
            rates = [share(own[name]) for name in ("precision", "recall", "f")]
            solved = f"{own['solved']} of {own['cases']}"
            rows.append([group, NAMES[method], *rates, solved, f"{own['seconds']:.1f}"])
    return markdown(["cases", "method", "P", "R", "F", "F at least .95", "s"], rows)


def cases_table(result: Row) -> str:
    """Return a line for each case: relations, scores of pexeso, F of the others, the program."""
    rows = []
    for row in result["cases"]:
        own = row["methods"]
        cells = [row["case"], str(row["true_pairs"]), _relations(row["relations"])]
        for way in ("named", "found"):
            if way in own:
                rates = " ".join(share(own[way][name]) for name in ("precision", "recall", "f"))
                cells.append(f"{rates}, {own[way]['seconds']:.2f} s, {_kinds(own[way]['kinds'])}")
        cells += [share(scores["f"]) for method, scores in own.items() if method not in _OURS]
        if "named" in own:
            cells.append((own["named"]["program"] or "none").replace("|", "\\|"))
        rows.append(cells)
    methods = list(result["cases"][0]["methods"]) if result["cases"] else []
    heads = ["case", "true pairs", "relation"]
    heads += [f"{NAMES[way]}: P R F" for way in _OURS if way in methods]
    heads += [f"{method}: F" for method in methods if method not in _OURS]
    heads += ["program, columns named"] if "named" in methods else []
    return markdown(heads, rows)


_OURS = ("named", "found")


def entities_table(result: Row) -> str:
    """Return F of pexeso and of its default model alone, for each entity case."""
    rows = [
        [row["case"], *(share(row["methods"][method]["f"]) for method in ("named", "semantic"))]
        for row in result["cases"]
        if row["group"] == "entities"
    ]
    return markdown(["case", NAMES["named"], NAMES["semantic"]], rows)


def _relations(relations: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in relations.items())


def _kinds(kinds: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "nothing"
