"""Results as text: tables for people, which the documentation shows too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.report import markdown_table, rate

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


def means_table(result: Row) -> str:
    """Return mean precision, recall and F of the methods, for each group of cases."""
    rows = []
    for group, methods in result["means"].items():
        for method, scores in methods.items():
            named = [scores[name] for name in ("precision", "recall", "f")]
            rates = ["-" if value is None else rate(value) for value in named]
            solved = f"{scores['solved']} of {scores['cases']}"
            rows.append([group, NAMES[method], *rates, solved, f"{scores['seconds']:.1f}"])
    return markdown_table(["cases", "method", "P", "R", "F", "F at least .95", "s"], rows)


_KINDS = ("equal", "program", "fuzzy")


def tasks_means_table(result: Row) -> str:
    """Return what is joined of all tasks of a set together."""
    rows = []
    for name in dict.fromkeys(row["set"] for row in result["tasks"]):
        tasks = [row for row in result["tasks"] if row["set"] == name]
        sums = [
            {
                what: sum(row["kinds"].get(kind, {}).get(what, 0) for row in tasks)
                for what in ("pairs", "right")
            }
            for kind in _KINDS
        ]
        n_programs = sum(row["program"] is not None for row in tasks)
        # Results of before did not count refusals.
        n_refused = sum(row["refused"] is not None for row in tasks)
        n_true = sum(row["true_pairs"] for row in tasks)
        cells = [_right(counts) for counts in sums]
        seconds = sum(row["seconds"] for row in tasks)
        rows.append(
            [
                name,
                *(str(count) for count in (len(tasks), n_programs, n_refused)),
                f"{n_true:,}",
                *cells,
                f"{seconds:.0f}",
            ]
        )
    kinds = [f"{kind}: right of joined" for kind in _KINDS]
    heads = ["set", "tasks", "with programs", "refused", "true pairs", *kinds, "s"]
    return markdown_table(heads, rows)


def draws_table(result: Row) -> str:
    """Return how many drawn pairs of columns get a program."""
    rows = [
        [
            *(str(draw[name]) for name in ("seed", "pairs", "with_programs", "with_equal_values")),
            f"{draw['seconds']:.0f}",
            f"{draw['largest_seconds']:.1f}",
        ]
        for draw in result["random"]["draws"]
    ]
    heads = ["seed", "pairs", "with a program", "with equal values", "s", "longest, s"]
    return markdown_table(heads, rows)


def planted_page_table(result: Row) -> str:
    """Return seconds, memory and F of drawn tables by rule and rows."""
    return markdown_table(_PLANTED, map(_planted_cells, (*result["planted"], *result["synthetic"])))


def life_table(result: Row) -> str:
    """Return the share of later rows joined with another's key, and of those left alone."""
    rows = [
        [
            f"{row['seed']}",
            f"{row['rows']}",
            f"{row['learned']} of {row['rules']}",
            f"{row['wrong']:.2%}",
            f"{row['alone']:.2%}",
        ]
        for row in result["sizes"]
    ]
    return markdown_table(["seed", "rows", "rules learned", "wrongly joined", "left alone"], rows)


_PLANTED = ("rule", "rows", "learn and join, s", "join, s", "MB", "F", "F without fuzzy")


def _planted_cells(row: Row) -> list[str]:
    joined, peak = row["join_seconds"], row["peak_bytes"]
    return [
        row["rule"],
        f"{row['rows']:,}",
        f"{row['seconds']:.2f}",
        "-" if joined is None else f"{joined:.3f}",
        "-" if peak is None else f"{peak / 1e6:,.0f}",
        rate(row["f"]),
        rate(row["f_without_fuzzy"]),
    ]


def _right(counts: Mapping[str, int] | None) -> str:
    return f"{counts['right']:,} of {counts['pairs']:,}" if counts and counts["pairs"] else "-"


def restraint_tables(result: Row) -> str:
    """Return both tables of the part ``restraint``; its programs are in the result alone."""
    return f"{tasks_means_table(result)}\n\n{draws_table(result)}"
