"""The definitions, row by row in plain Python, and measures of tables made of the product's."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np

from pexeso.acquisition.graph import join_informativeness
from pexeso.acquisition.quality import QualityOfCounts
from pexeso.acquisition.tables import EntropyPrices, MarketTable, free
from pexeso.joins.measures import correlation, key_codes


def entropy(values) -> float:
    counts = Counter(values)
    n = sum(counts.values())
    return -sum(c / n * math.log2(c / n) for c in counts.values())


def mutual_information(pairs) -> float:
    pairs = list(pairs)
    return entropy(x for x, _ in pairs) + entropy(y for _, y in pairs) - entropy(pairs)


def outer_join(left, right) -> list[tuple]:
    pairs = [(a, b) for a in left for b in right if a == b]
    pairs += [(a, None) for a in left if a not in right]
    return pairs + [(None, b) for b in right if b not in left]


def informativeness(left, right) -> float:
    pairs = outer_join(left, right)
    whole = entropy(pairs)
    return (whole - mutual_information(pairs)) / whole


def cumulative_entropy(values) -> float:
    values = sorted(values)
    total = 0.0
    for low, high in pairwise(values):
        share = sum(value <= low for value in values) / len(values)
        total -= (high - low) * share * math.log2(share)
    return total


def table_informativeness(left, right, names):
    codes = key_codes(left, right, names)
    n_codes = max(int(side.max(initial=-1)) for side in codes) + 1
    counts = [np.bincount(side[side >= 0], minlength=n_codes) for side in codes]
    return join_informativeness(*counts)


def total_correlation(table, names, **options):
    return math.fsum(
        correlation(table, [names[at]], names[:at], **options) for at in range(1, len(names))
    )


def quality(table, dependencies, counts=None):
    return QualityOfCounts(table, dependencies)(counts)


def market_table(name, rows, *, price=None, owned=False, numeric=(), dependencies=()):
    if price is None:
        price = free if owned else EntropyPrices(rows.select)
    facts = name, tuple(rows.column_names), rows.num_rows, rows.select
    return MarketTable(*facts, price, owned, frozenset(numeric), lambda: dependencies)


def correct_rows(table, dependency):
    return QualityOfCounts(table, [dependency]).correct()
