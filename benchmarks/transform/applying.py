"""The part ``apply``: rows a second that stored programs are applied to."""

from __future__ import annotations

import json
import statistics
import time
from typing import Any

import numpy as np
import pyarrow.compute as pc

from benchmarks.transform.generated import RULES, SYNTHETIC, planted_pair
from pexeso.transform.programs.applying import apply_program
from pexeso.transform.programs.describing import in_words
from pexeso.transform.programs.storing import program_from_text, program_to_json
from pexeso.transform_join.learned import learn_transformation

LEARNED_FROM = 1_000
N_ROWS = 1_000_000


def measured_apply(*, seed: int = 0, n_rows: int = N_ROWS, repeats: int = 3) -> dict[str, Any]:
    """Learn each rule, and apply its programs to new rows.

    Parameters
    ----------
    seed : int
        Of the rows that programs are learned from; the next one is that of new rows.
    n_rows : int
        At most; a rule with fewer different keys is applied to as many as it has.
    repeats : int
        Of which the median counts.
    """
    rules = {**RULES, **SYNTHETIC}
    return {"programs": [applied(name, n_rows, repeats, seed) for name in rules]}


def applied(name: str, n_rows: int, repeats: int, seed: int) -> dict[str, Any]:
    """Learn a rule, store its program, and apply that to new rows.

    Returns
    -------
    dict
        ``rule``, ``rows``, ``programs``, ``rows_per_second`` of processor time that one program is
        applied to, the mean of all (None where none was learned), and ``right``, the share of the
        rows whose key one of them writes.
    """
    rule = {**RULES, **SYNTHETIC}[name]
    pair = planted_pair(rule, LEARNED_FROM, share=1, seed=seed)
    joined = learn_transformation(
        pair.source, pair.target, columns=pair.columns, target_columns=["key"], seed=seed
    )
    n_rows = min(n_rows, rule.n_keys)
    facts: dict[str, Any] = {"rule": name, "rows": n_rows}
    if joined.program is None:
        return {**facts, "programs": [], "rows_per_second": None, "right": 0.0}
    new = planted_pair(rule, n_rows, share=1, seed=seed + 1)
    tables = [table.sort_by("id") for table in (new.source, new.target)]
    reading, keyed = tables if joined.forward else reversed(tables)
    stored = program_from_text(json.dumps(program_to_json(joined.stored)))
    columns = [reading[column].combine_chunks() for column in stored.columns]
    keys = keyed[joined.key_column].combine_chunks()
    seconds = []
    for _ in range(repeats):
        started = time.process_time()
        written = [apply_program(program, columns) for program in stored.programs]
        seconds.append(time.process_time() - started)
    right = np.zeros(n_rows, bool)
    for texts in written:
        right |= pc.fill_null(pc.equal(texts, keys), False).to_numpy(zero_copy_only=False)
    return {
        **facts,
        "programs": [in_words(program, stored.columns) for program in stored.programs],
        "rows_per_second": n_rows * len(stored.programs) / statistics.median(seconds),
        "right": float(right.mean()),
    }
