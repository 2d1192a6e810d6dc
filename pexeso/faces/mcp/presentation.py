"""Answers of the service as the tools present them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from pexeso.errors import InputError
from pexeso.faces.mcp.answers import MAX_TEXT, MAX_TOKENS, count_tokens, readable
from pexeso.faces.mcp.tool_call import Call, named_by, reference
from pexeso.faces.service.bases import plain_cells, reading_of
from pexeso.faces.service.judging import JudgeRequest, judged_column
from pexeso.faces.service.requests import ExplainRequest, SearchRequest, split_lake_column
from pexeso.joins.sql import LAKES, YOURS
from pexeso.lake.columns import by_positions, spec_of
from pexeso.lake.containers.reader import read_table
from pexeso.lake.frames.writing import write_file
from pexeso.results.match_kinds import Pair
from pexeso.runtime.formatting import visible
from pexeso.runtime.progress import StageProgress
from pexeso.semantic.combined import CombinedMatch
from pexeso.sets.results import TokenMatch

if TYPE_CHECKING:
    from pexeso.contracts import JoinCheck, JoinChecks
    from pexeso.joins.graph.graphs import ColumnGraph

# Maximum numbers in a candidate or an explanation.
EXAMPLES, COPIES, BRINGS, WORDS = 3, 5, 8, 10

# Columns of a table that a list of tables names.
_MAX_NAMES = 12

_OF_CANDIDATES = ("table", "column", "joinability", "matched", "total", "copies", "brings")


def lake_frame(info: Any, listing: Any, text: str) -> dict[str, Any]:
    if listing.total:
        note = (
            "Search with find_joins, column=lake_column. left_out lists what no search finds, "
            "and why."
        )
    else:
        named = f" with {visible(text, MAX_TEXT)!r} in their names" if text else ""
        note = f"There are no {listing.what}{named}. Try a shorter text, or another `what`."
    return {
        "what": listing.what,
        "tables": info.tables,
        "columns": info.columns,
        "columns_searchable": info.columns_indexed,
        "left_out": info.files - info.tables + info.columns - info.columns_indexed,
        "models": _models(info),
        "parts": info.parts,
        "note": note,
        "untrusted": ["entries"],
    }


def _models(info: Any) -> list[str]:
    facts = info.to_dict()
    further = [
        entry if isinstance(entry, str) else entry["model"] for entry in facts["further_models"]
    ]
    return [facts["model"], *further]


def lake_entry(row: dict[str, Any]) -> dict[str, Any]:
    """Return an entry of `describe_lake`: a column that can be searched with has a reference."""
    if "columns" in row:
        names = row["columns"]
        return {
            "table": row["table"],
            "rows": row["rows"],
            "columns": names[:_MAX_NAMES],
            "n_columns": len(names),
            "lake_columns": [reference(row["table"], name) for name in row["searchable"][:3]],
        }
    if row.get("column") is None:
        return row
    return {"lake_column": reference(row["table"], row["column"]), **row}


def candidates_frame(result: Any, column: str | None, method: str) -> dict[str, Any]:
    if "columns" in result.query:
        raise InputError(
            "find_joins takes one column: for a key of several call find_composite_joins."
        )
    answer = result.to_dict() if not result.matches else None
    options = result.options if isinstance(result.options, dict) else result.options.to_dict()
    query = {**result.query, "file": column if column is not None else result.query.get("file")}
    if result.matches:
        note = (
            "Best first. Check the first candidate by explain_match, then preview_join or join_sql."
        )
    else:
        near = (result.to_dict(hints=True).get("hints") or {}).get("nearest", []) if answer else []
        came = ", ".join(
            f"{reference(one['table'], one['column'])} ({one['matched']} of {one['total']})"
            for one in near
        )
        note = (
            f"Nothing was found by method {method} with {_settings(options)}."
            f"{f' Nearest: {visible(came, 600)}.' if came else ''} Try {_further(method, options)}."
        )
    return {
        "query": readable(query),
        "options": {name: value for name, value in options.items() if value is not None},
        "note": note,
        "untrusted": ["candidates", "query", *([] if result.matches else ["note"])],
    }


def _further(method: str, options: dict[str, Any]) -> str:
    """Return what may find more; each method refuses the thresholds that it does not use."""
    similar = options.get("meaning", options)
    # A larger distance than that of dates, numbers or codes finds what is wrong.
    is_by_kind = "kind" in (similar.get("advice") or {}).get("evidence", ())
    ways = []
    if "max_distance" in similar and not is_by_kind:
        ways.append("a larger max_distance")
    if method != "overlap":
        ways.append("a smaller min_joinability")
    form = "" if method in ("transform", "all") else " (transform for values in another form)"
    left_out = "describe_lake with what=left_out for columns that no search finds"
    return ", ".join([*ways, f"another method{form}", f"or {left_out}"])


def _settings(options: dict[str, Any]) -> str:
    names = ("max_distance", "min_joinability", "min_containment")
    settings = [f"{name} {options[name]:g}" for name in names if options.get(name) is not None]
    return ", ".join(settings) or "default options"


def candidate(match: Any) -> dict[str, Any]:
    """Return a column that was found, with some of the values that match."""
    facts, measures = match.to_dict(), {}
    for name, value in facts.items():
        if value is not None and name not in _OF_CANDIDATES:
            measures[name] = value
    brings, copies = match.brings, match.copies
    return {
        "lake_column": reference(match.table, match.column),
        "joinability": facts.get("joinability")
        or facts.get("share")
        or facts.get("containment")
        or None,
        "matched": facts.get("matched") or facts.get("overlap"),
        "total": facts.get("total"),
        "examples": _examples(match),
        "brings": list(brings[:BRINGS]),
        "n_brings": len(brings),
        "copies": [reference(copy.table, copy.column) for copy in copies[:COPIES]]
        if copies
        else [],
        "n_copies": len(copies),
        "measures": measures,
    }


def _examples(match: Any) -> list[list[Any]]:
    """Return values that match; those whose texts differ first, which show most."""
    if isinstance(match, CombinedMatch):
        match = match.meaning or match.equal_text or match.transform
    if isinstance(match, TokenMatch):
        return [[value, value] for value in match.shared()[:EXAMPLES]]
    differing: list[list[Any]] = []
    equal: list[list[Any]] = []
    for pair in match.pairs():
        query, value = (pair.query, pair.value) if isinstance(pair, Pair) else (pair[0], pair[1])
        (equal if query == value else differing).append([query, value])
    return [*differing, *equal][:EXAMPLES]


def why(explanation: Any, what: str) -> tuple[dict[str, Any], Sequence[dict[str, Any]]]:
    if not hasattr(explanation, "match"):
        if len(explanation.columns) == 1:
            raise InputError(
                f"The values of '{explanation.table}:{explanation.columns[0]}' are not compared by "
                f"their distance: {explanation.matched_keys:,} of {explanation.total_keys:,} of "
                "yours are equal to one of them. Call preview_join to join these."
            )
        raise InputError(
            "explain_match takes one column: for a key of several call find_composite_joins."
        )
    match, pairs = explanation.match, explanation.match.pairs()
    frame = {
        "lake_column": reference(match.table, match.column),
        "joinability": match.joinability,
        "matched": match.matched,
        "query_total": match.total,
        "n_pairs": len(pairs),
        "n_unmatched": len(explanation.unmatched),
        "kinds": match.kinds().to_dict(),
        "words": readable(match.word_contributions(WORDS).to_dict()["words"], 40),
        "what": what,
        "note": _why_note(match),
        "untrusted": ["entries", "words"],
    }
    if what == "unmatched":
        return frame, [value.to_dict() for value in explanation.unmatched]
    names = ("query", "value", "distance", "kind")
    return frame, [dict(zip(names, pair.to_list(), strict=True)) for pair in pairs]


def _why_note(match: Any) -> str:
    if match.matched:
        return "If the pairs mean the same thing, call preview_join or join_sql."
    return (
        "No value matches within the distance: look at what=unmatched for the nearest values, try "
        "a larger max_distance, or another candidate."
    )


def preview(call: Call, join: Any, lake_column: str) -> dict[str, Any]:
    """Return the first rows of a join, and of its columns as many as fit."""
    table = join.joined.table
    frame = {"lake_column": lake_column, **_counts(join)}
    frame["note"] = _preview_note(join, joined=frame["matched_rows"] > 0)
    frame["untrusted"] = ["names", "rows", "warnings"]
    names = [visible(name, 60) for name in table.column_names]
    # Half of the answer at most for names; a row with the columns that are left fits then.
    n_columns = _fitting(names, call.max_tokens // 3)
    rows = table.slice(call.offset, call.limit).select(list(range(n_columns)))
    cells = [plain_cells(column) for column in rows.columns]
    entries = [list(row) for row in zip(*cells, strict=True)] if cells else []
    frame |= {
        "names": names[:n_columns],
        "n_columns": len(names),
        "columns_left_out": len(names) - n_columns,
    }
    return call.page(frame, "rows", entries, total=table.num_rows, items=n_columns)


def _preview_note(join: Any, *, joined: bool) -> str:
    by_program = join.transformed is not None
    if not joined:
        wider = "" if by_program else "a larger max_distance or "
        return f"No row is joined: try {wider}another candidate."
    if by_program:
        return (
            "Write the whole join by write_join where it is offered; learn_transformation has the "
            "rule as SQL."
        )
    return "Write the whole join by join_sql, or write_join where it is offered."


def _fitting(names: Sequence[str], tokens: int) -> int:
    used = 0
    for number, name in enumerate(names):
        used += count_tokens(name) + 1
        if used > tokens:
            return max(number, 1)
    return len(names)


def _counts(join: Any) -> dict[str, Any]:
    report = join.joined.report
    return {
        "your_rows": report.rows,
        "matched_rows": report.matched_rows,
        "joined_rows": report.joined_rows,
        "fan_out": round(report.joined_rows / report.rows, 3) if report.rows else 0.0,
        "warnings": [visible(line, 240) for line in report.lines()],
    }


def sql(call: Call, join: Any, lake_column: str) -> dict[str, Any]:
    answer = {
        "lake_column": lake_column,
        "sql": join.sql,
        "your_table": join.tables[YOURS],
        "lake_table": join.tables[LAKES],
        "query_column": visible(join.query_column, MAX_TEXT),
        "total": len(join.pairs),
        "truncated": False,
        "note": (
            "Run the statements of your_table and lake_table first; where one is null, read that "
            "table, every column as text, under this name, its joined column named as in sql."
        ),
        "untrusted": ["sql", "query_column"],
    }
    needed = count_tokens(answer)
    if needed <= call.max_tokens:
        return answer
    way = (
        f"set max_tokens to {needed + 200}"
        if needed + 200 <= MAX_TOKENS
        else "use write_join where it is offered, or the command pexeso join"
    )
    note = f"The statement lists {len(join.pairs):,} pairs and is too long: {way}."
    short = {**answer, "sql": None, "truncated": True, "note": note, "untrusted": ["query_column"]}
    if count_tokens(short) > call.max_tokens:
        short |= {"your_table": None, "lake_table": None}
    return short


def program(call: Call, transform_join: Any, lake_column: str) -> dict[str, Any]:
    """Return a program that was learned, and the pairs that it joins."""
    frame: dict[str, Any] = {
        "lake_column": lake_column,
        "program": None
        if transform_join.program is None
        else visible(transform_join.program, 1000),
        "sql": transform_join.sql(),
        "python": transform_join.python,
        "direction": transform_join.rule.direction,
        "coverage": transform_join.coverage,
        "cardinality": transform_join.cardinality,
        "collapse": transform_join.collapse or transform_join.shared_keys,
        "tried": None if transform_join.tried is None else visible(transform_join.tried, 600),
        "note": (
            "Join by it with preview_join, by_program=true."
            if transform_join.program
            else "There is no rule: use preview_join without by_program, or another candidate."
        ),
        "untrusted": ["program", "sql", "python", "tried", "pairs"],
    }
    for name in ("python", "sql"):
        if count_tokens(frame) > call.max_tokens // 2:
            frame |= {name: None, "note": f"{frame['note']} {name} is too long and left out."}
    pairs = [
        [spec_of(value) if isinstance(value, tuple) else value, lake_value, kind]
        for value, lake_value, kind in transform_join.pairs
    ]
    return call.page(frame, "pairs", pairs)


def graph(call: Call, column_graph: ColumnGraph, table: str | None) -> dict[str, Any]:
    """Return the edges of a graph, or those of one table, the strongest first."""
    edges = column_graph.edges
    if table is not None:
        edges = edges.filter(pc.equal(edges["left_table"], table))
    names = ("left_table", "left_column", "right_table", "right_column")
    order = [("joinability", "descending"), *((name, "ascending") for name in names)]
    rows = edges.sort_by(order).slice(call.offset, call.limit).to_pylist()
    frame = {
        "columns": column_graph.n_columns,
        "columns_cut": column_graph.n_cut,
        "options": readable(column_graph.options),
        "note": "Best first. Check an edge by explain_match: column is one end, lake_column the "
        "other.",
        "untrusted": ["edges"],
    }
    keep = ("lake_column", "joins")
    return call.page(frame, "edges", rows, total=len(edges), present=_edge, keep=keep)


def _edge(row: dict[str, Any]) -> dict[str, Any]:
    ends = [reference(row[f"{side}_table"], row[f"{side}_column"]) for side in ("left", "right")]
    facts = {name: row[name] for name in ("joinability", "matched", "total", "right_unique")}
    return {"lake_column": ends[0], "joins": ends[1], **facts}


def verified(call: Call, checks: JoinChecks) -> dict[str, Any]:
    """Return what became of declared joins, the broken ones first."""
    frame = {
        "ok": not checks.broken,
        "n_broken": len(checks.broken),
        "note": "Broken ones first: what is broken, and how the join is now.",
        "untrusted": ["joins"],
    }
    ordered = sorted(checks.joins, key=lambda check: not check.broken)
    rows = ordered[call.offset : call.offset + call.limit]
    keep = ("left", "right")
    return call.page(frame, "joins", rows, total=len(ordered), present=_check, keep=keep)


def _check(check: JoinCheck) -> dict[str, Any]:
    return {
        **{"left": check.declared.left, "right": check.declared.right, "ok": not check.broken},
        **{"now": check.change(), "broken": "; ".join(check.broken), "new": check.missing()},
    }


def stages(call: Call) -> StageProgress:
    """Return what reports the stages of a search for redundant tables."""
    from pexeso.redundancy.search import STAGES  # brings Spark

    return lambda stage: call.report(
        STAGES.index(stage), len(STAGES), f"Comparing all tables: {stage}."
    )


def redundancy(call: Call, facts: dict[str, Any]) -> dict[str, Any]:
    delete = [entry["table"] for entry in facts["plan"]["delete"]]
    frame = {
        "tables": len(facts["tables"]),
        "freed_bytes": facts["plan"]["freed_bytes"],
        "delete": readable(delete[:20], 80),
        "n_delete": len(delete),
        "note": "Nothing was deleted. Each entry is a table that is contained in another one.",
        "untrusted": ["entries", "delete"],
    }
    return call.page(frame, "entries", facts["edges"])


def keys(
    call: Call,
    read: tuple[str, dict[str, Any]],
    name: str,
    facts: dict[str, Any],
    key: list[str] | None,
) -> dict[str, Any]:
    """Return keys of a table, and what joins by one; `read` is its file and how it is read."""
    chosen = key or next((entry["columns"] for entry in facts["keys"] if entry["columns"][1:]), [])
    names = ("columns", "kind", "uniqueness")
    frame: dict[str, Any] = {
        "table": visible(name, MAX_TEXT),
        "key": readable(chosen, 60),
        "keys": readable([{field: row[field] for field in names} for row in facts["keys"][:8]], 60),
        "n_keys": len(facts["keys"]),
        "untrusted": ["keys", "key", "candidates", "table"],
    }
    matches: Sequence[Any] = ()
    if len(chosen) < 2:
        frame["note"] = (
            "No key of several columns: join by one column with find_joins, or name columns by key."
        )
    else:
        call.report(1, 2, "Searching by the key.")
        matches, frame["note"] = _by_key(call, *read, spec_of(chosen))
    return call.page(frame, "candidates", matches, present=lambda match: match.to_dict())


def _by_key(call: Call, path: str, reading: dict[str, Any], key: str) -> tuple[Sequence[Any], str]:
    names = read_table(path, options=reading_of(reading)).names
    query = {"query": f"{path}:{by_positions(names, key)}", **reading}
    request = SearchRequest.of(index=call.index, k="all", exclude_self=True, **query)
    result = call.service.run(request).results[0]
    if result.matches:
        return result.matches, "Best first: each candidate is a table and its columns of the key."
    return (), "No table has a row with a whole key of these columns: name fewer or others by key."


def write(join: Any, lake_column: str, path: Path, folder: Path, overwrite: bool) -> dict[str, Any]:
    write_file(join.joined.table, path, overwrite=overwrite)
    return {
        "lake_column": lake_column,
        "file": str(path.relative_to(folder)),
        **_counts(join),
        "note": f"Written to {visible(str(path), 400)}.",
        "untrusted": ["warnings"],
    }


def judged(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    column = judged_column(call.service, call.request(ExplainRequest, given))
    catalog = call.service.open(call.index).catalog
    named = named_by(call.service, call.index, given["lake_column"])
    names = ("query_table", "query_column", "lake_table", "lake_column")
    fields = dict(zip(names, (*column, *split_lake_column(catalog, named)), strict=True))
    texts = {name: given[name] for name in ("your_value", "lake_value", "verdict")}
    response = call.service.run(JudgeRequest.of(index=call.index, **fields, **texts))
    return {
        "your_column": reference(*column),
        "lake_column": given["lake_column"],
        **texts,
        "before": response.before,
        "note": "Recorded; answers follow it from now on.",
        "untrusted": [],
    }
