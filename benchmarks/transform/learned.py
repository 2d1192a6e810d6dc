"""What pexeso joins in a case, with the key columns named or found, and how well."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from benchmarks.transform.cases import Case, Key, cleaned_values
from benchmarks.transform.scores import score
from pexeso.transform.joins.joined import TransformJoin
from pexeso.transform.joins.learned import learn_transformation


def learned(case: Case, *, named: bool, seed: int = 0) -> dict[str, Any]:
    """Join a case and score what is joined."""
    columns: dict[str, Any] = {}
    if named:
        columns = {"columns": case.source_columns, "target_columns": [case.target_column]}
    started = time.process_time()
    joined = learn_transformation(str(case.source), str(case.target), seed=seed, **columns)
    pairs = [] if joined.collapse else joined.pairs
    seconds = time.process_time() - started
    value_pairs = {(_key(left), right) for left, right, _ in pairs}
    names = joined.reading.texts.names
    return {
        **score(row_pairs(joined, case), case.truth),
        "f_as_told": score(value_pairs, case.truth)["f"],
        "seconds": seconds,
        "kinds": dict(sorted(Counter(kind for *_, kind in pairs).items())),
        "direction": joined.rule.direction,
        "columns": [names[at] for at in joined.rule.columns],
        "key_column": joined.key_column,
        "cardinality": joined.cardinality,
        "program": joined.program,
        "refused": joined.collapse,
    }


def row_pairs(joined: TransformJoin, case: Case) -> set[tuple[Key, str]]:
    """Return the distinct pairs of true key values in joined rows; none of a join refused."""
    if joined.collapse:
        return set()
    key_columns, target = case.places()
    table = joined.table(how="inner", many_to_many=True)
    keys = zip(*(cleaned_values(table.column(at)) for at in key_columns), strict=True)
    values = cleaned_values(table.column(len(joined.source.names) + target))
    return {
        (key, value)
        for key, value in zip(keys, values, strict=True)
        if value is not None and any(key)
    }


def _key(values: Any) -> Key:
    cells = list(values) if isinstance(values, tuple) else [values]
    return tuple(cleaned_values(cells))
