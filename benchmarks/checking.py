"""The harness checks the answers itself: an algorithm cannot grade its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from benchmarks.lake import Answer, BenchmarkLake, BenchmarkQuery
from pexeso.engine.dense.oracle import oracle_counts, oracle_pairs

ORACLE_PAIRS = 1 << 24
"""Most float64 distances that the sample of checked queries may cost.

One query is always checked.
"""


@dataclass(frozen=True)
class Difference:
    """A query for which an algorithm's answer is not the reference's."""

    algorithm: str
    reference: str
    query: int
    name: str
    what: str

    def __str__(self) -> str:
        return (
            f"{self.algorithm} and {self.reference} differ on query {self.query} "
            f"({self.name}): {self.what}"
        )


def normal_form(answer: Answer) -> dict[int, int]:
    """Return an answer as column -> count; a column given twice is an error of the algorithm's.

    Examples
    --------
    >>> normal_form((torch.tensor([4, 2]), torch.tensor([7, 9])))
    {2: 9, 4: 7}
    """
    columns, counts = (part.tolist() for part in answer)
    if len(set(columns)) < len(columns):
        repeated = next(column for column in columns if columns.count(column) > 1)
        raise ValueError(f"The answer holds column {repeated} more than once.")
    return dict(sorted(zip(columns, counts, strict=True)))


def difference(answer: Mapping[int, int], reference: Mapping[int, int]) -> str | None:
    """Say in one clause how an answer differs from the right one; None where it does not.

    Examples
    --------
    >>> difference({2: 9}, {2: 9, 4: 7})
    'column 4 is missing (1 in all)'
    >>> difference({2: 8, 4: 7}, {2: 9, 4: 7})
    'column 2 has 8 matches, not 9 (1 in all)'
    """
    missing, extra = (
        sorted(reference.keys() - answer.keys()),
        sorted(answer.keys() - reference.keys()),
    )
    other = [
        column
        for column in sorted(reference.keys() & answer.keys())
        if answer[column] != reference[column]
    ]
    if missing:
        return f"column {missing[0]} is missing ({len(missing)} in all)"
    if extra:
        return f"column {extra[0]} does not belong there ({len(extra)} in all)"
    if other:
        return (
            f"column {other[0]} has {answer[other[0]]} matches, not {reference[other[0]]} "
            f"({len(other)} in all)"
        )
    return None


def oracle_answer(lake: BenchmarkLake, query: BenchmarkQuery) -> dict[int, int]:
    """Return the right answer, computed without any index."""
    pairs = oracle_pairs(query.vectors, torch.from_numpy(lake.vectors), query.tau)[:2]
    counts = oracle_counts(*pairs, query.weights, lake.column_csr, lake.n_values)
    columns = torch.nonzero(counts >= query.needed)[:, 0]
    return normal_form((columns, counts[columns]))


def oracle_sample(
    lake: BenchmarkLake,
    queries: Sequence[BenchmarkQuery],
    *,
    max_pairs: int = ORACLE_PAIRS,
    seed: int = 0,
) -> list[int]:
    """Draw the queries to check against float64, as many as the bound on distances allows."""
    order = np.random.default_rng(seed).permutation(len(queries)).tolist()
    chosen, left = [], max_pairs
    for number in order:
        cost = len(queries[number]) * lake.n_values
        if cost <= left:
            chosen.append(number)
            left -= cost
    smallest = min(range(len(queries)), key=lambda number: len(queries[number]))
    return sorted(chosen) if chosen else [smallest]


def compare(
    answers: Mapping[str, Sequence[Mapping[int, int]]],
    exact: Sequence[str],
    truths: Mapping[int, Mapping[int, int]],
    queries: Sequence[BenchmarkQuery],
) -> list[Difference]:
    """Compare exact algorithms with the first of them, or with float64 where it is known."""
    differences = []
    for name in exact:
        for number, query in enumerate(queries):
            if number in truths:
                reference, right = "float64", truths[number]
            else:
                reference, right = exact[0], answers[exact[0]][number]
            what = difference(answers[name][number], right)
            if what is not None:
                differences.append(Difference(name, reference, number, query.name, what))
    return differences
