"""Tables of the searches for plans of purchase."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.acquisition.plan_figures import DIRECT_RATIO
from benchmarks.report import markdown_table

Result = Mapping[str, Any]
NONE = "-"


def searches_table(result: Result) -> str:
    """Return the best plan and its proof, the front, and the published search, by query."""
    head = ("query", "tables", "plans", "best plan proved, s", "all plans that none beats, s")
    head += ("published search, s", "its difference to the best")
    head += ("difference with any number of tables", "all plans measured, s")
    return markdown_table(head, (_searches(name, query) for name, query in _queries(result)))


def direct_table(result: Result) -> str:
    """Return the published search beside direct purchase, at one budget."""
    return markdown_table(
        ("query", "approach", "correlation", "quality", "informativeness, sum", "price"),
        (row for name, query in _queries(result) for row in _direct(name, query)),
    )


def thinned_table(result: Result) -> str:
    """Return mean distances of correlations of thinned joins to those of whole ones."""
    rows = [(name, query["resampling"]) for name, query in _queries(result) if query["resampling"]]
    shares = [row["rho"] for row in rows[0][1]["kept"]] if rows else []
    return markdown_table(
        ("query, joined rows", *(f"kept {share:g}" for share in shares)),
        (
            (
                f"{name}, {thinned['rows']:,}",
                *(_number(row["difference"]) for row in thinned["kept"]),
            )
            for name, thinned in rows
        ),
    )


def _queries(result: Result) -> Iterator[tuple[str, Result]]:
    for market in result["markets"]:
        for name, query in market["queries"].items():
            yield f"{market['market']} {name}", query


def _searches(name: str, query: Result) -> Sequence[Any]:
    exact, front = query["exact"], query["front"]
    return (
        name,
        query["length"],
        f"{query['prices']['plans']:,}",
        _seconds(exact) if exact.get("proved") else f"{_seconds(exact)} (not proved)",
        _seconds(front),
        _seconds(query["published"]),
        _difference(query["published"]),
        _difference(query["unbounded"]),
        _seconds(query["all_plans"]),
    )


def _direct(name: str, query: Result) -> Iterator[Sequence[Any]]:
    for row in query["budgets"]:
        if row["ratio"] == DIRECT_RATIO and row["affordable"]:
            for approach, search in (("published", "published"), ("direct", "exact")):
                plan = row[search].get("plan")
                if plan is None:
                    why = "not ended" if row[search]["stopped"] else "no plan"
                    yield name, approach, why, *[NONE] * 3
                    continue
                keys = ("correlation", "quality", "informativeness", "price")
                yield name, approach, *(_number(plan[key]) for key in keys)


def _seconds(search: Result) -> str:
    return f"{search['seconds']:.2f}" + (" (not ended)" if search["stopped"] else "")


def _difference(search: Result) -> str:
    difference = search.get("difference")
    return "no plan" if difference is None else f"{difference:.0%}"


def _number(value: float) -> str:
    return f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
