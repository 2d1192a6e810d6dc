"""The result of the part ``plans`` as tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.acquisition.plan_figures import DIRECT_RATIO
from benchmarks.report import markdown_table

Result = dict[str, Any]
NONE = "-"


def plan_tables(result: Result) -> str:
    """Return a stored result as text.

    Parameters
    ----------
    result : dict
        Of the part ``plans``.
    """
    queries = [
        (f"{market['market']} {name}", query)
        for market in result["markets"]
        for name, query in market["queries"].items()
    ]
    parts = [
        "Join graphs.",
        markdown_table(
            ("market", "tables", "edges", "join sets", "processor s", "wall s"),
            (
                (
                    market["market"],
                    market["building"]["tables"],
                    market["building"]["edges"],
                    market["building"]["join_sets"],
                    *_seconds(market["building"]),
                )
                for market in result["markets"]
            ),
        ),
        "The best plan and its proof, and all plans that none beats; without a budget.",
        markdown_table(
            (
                "query",
                "tables",
                "plans formed, measured",
                "best: processor s",
                "wall s",
                "proved",
                "front: processor s",
                "wall s",
                "plans",
                "proved",
            ),
            (_exact(name, query) for name, query in queries),
        ),
        "Other searches on whole tables: seconds of the processor and difference to the optimum.",
        markdown_table(
            (
                "query",
                "published, s",
                "difference",
                "of any size, s",
                "tables",
                "difference",
                "all plans, s",
                "difference",
            ),
            (_others(name, query) for name, query in queries),
        ),
        "By budget, as a share of the price of the whole market: the correlation of the best plan, "
        "the difference of the published search, seconds of both.",
        markdown_table(
            ("query", "least price", "ratio", "correlation", "difference", "exact, s", "pub., s"),
            (row for name, query in queries for row in _budgets(name, query)),
        ),
        "By the rate of samples: published search, and all plans (LP).",
        markdown_table(
            ("query", "rate", "published, s", "difference", "all plans, s", "difference"),
            (
                (
                    name,
                    f"{row['rate']:g}",
                    *_search_cells(row["published"]),
                    *_search_cells(row["all_plans"]),
                )
                for name, query in queries
                for row in query["rates"]
            ),
        ),
        f"Published search and direct purchase at the ratio {DIRECT_RATIO:g}.",
        markdown_table(
            ("query", "approach", "correlation", "quality", "JI, sum", "price"),
            (row for name, query in queries for row in _direct(name, query)),
        ),
        "Thinned joins of the plan with the most rows: mean distance to the correlation without "
        "thinning.",
        markdown_table(
            ("query", "rho", "correlation", "difference"),
            (
                (name, f"{row['rho']:g}", _number(row["correlation"]), _number(row["difference"]))
                for name, query in queries
                if query["resampling"]
                for row in query["resampling"]["kept"]
            ),
        ),
        "By the number of tables of the market: tables of the published plan, seconds.",
        markdown_table(
            ("query", "tables", "edges", "plan's tables", "published, s", "exact, s", "all, s"),
            (
                (
                    name,
                    row["tables"],
                    row["edges"],
                    row["graph_size"] or NONE,
                    _limited(row["published"]),
                    _limited(row["exact"]),
                    _limited(row["all_plans"]),
                )
                for name, query in queries
                for row in query["sizes"]
            ),
        ),
    ]
    return "\n\n".join(parts)


def _exact(name: str, query: Result) -> Sequence[Any]:
    exact, front = query["exact"], query["front"]
    return (
        name,
        query["length"],
        f"{exact['formed']:,}, {exact['measured']:,}",
        *_seconds(exact),
        _proof(exact.get("proved"), exact),
        *_seconds(front),
        front["found"],
        "yes" if front.get("all_proved") else "not ended",
    )


def _others(name: str, query: Result) -> Sequence[Any]:
    seconds, far = _search_cells(query["unbounded"])
    plan = query["unbounded"].get("plan")
    n_tables = NONE if plan is None else len(plan["tables"])
    return (
        name,
        *_search_cells(query["published"]),
        seconds,
        n_tables,
        far,
        *_search_cells(query["all_plans"]),
    )


def _proof(proved: bool | None, search: Result) -> str:
    if proved is None:
        return NONE
    return "yes" if proved else f"no, gap {search['gap']:.0%}"


def _budgets(name: str, query: Result) -> Iterator[Sequence[Any]]:
    min_price = _number(query["prices"]["least"])
    for row in query["budgets"]:
        start = name, min_price, f"{row['ratio']:g}"
        if not row["affordable"]:
            yield (*start, "not affordable", NONE, NONE, NONE)
            continue
        best = row["exact"].get("plan")
        yield (
            *start,
            NONE if best is None else _number(best["correlation"]),
            _search_cells(row["published"])[1],
            _limited(row["exact"]),
            _limited(row["published"]),
        )


def _direct(name: str, query: Result) -> Iterator[Sequence[Any]]:
    for row in query["budgets"]:
        if row["ratio"] == DIRECT_RATIO and row["affordable"]:
            for approach, search in (("published", "published"), ("direct", "exact")):
                plan = row[search].get("plan")
                if plan is None:
                    yield (name, approach, *[row[search].get("stopped") or "no plan"], *[NONE] * 3)
                    continue
                keys = ("correlation", "quality", "informativeness", "price")
                yield (name, approach, *(_number(plan[key]) for key in keys))


def _search_cells(search: Result) -> tuple[str, str]:
    """Return the seconds of a search and the difference of its plan to the optimum."""
    far = search.get("difference")
    return _limited(search), NONE if far is None else f"{far:.3f}"


def _limited(search: Result) -> str:
    return f"{search['seconds']:.2f}" + (" (not ended)" if search["stopped"] else "")


def _seconds(search: Result) -> tuple[str, str]:
    return f"{search['seconds']:.2f}", f"{search['wall']:.2f}"


def _number(value: float) -> str:
    return f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
