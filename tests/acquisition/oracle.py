"""The definitions, row by row in plain Python."""

import math
from collections import Counter, defaultdict
from itertools import pairwise


def entropy(values) -> float:
    counts = Counter(values)
    n = sum(counts.values())
    return -sum(c / n * math.log2(c / n) for c in counts.values())


def mutual_information(pairs) -> float:
    pairs = list(pairs)
    return entropy(x for x, _ in pairs) + entropy(y for _, y in pairs) - entropy(pairs)


def outer_join(left, right) -> list[tuple]:
    """Return the pairs of a full outer join of two lists of values."""
    pairs = [(a, b) for a in left for b in right if a == b]
    pairs += [(a, None) for a in left if a not in right]
    return pairs + [(None, b) for b in right if b not in left]


def informativeness(left, right) -> float:
    pairs = outer_join(left, right)
    whole = entropy(pairs)
    return (whole - mutual_information(pairs)) / whole


def conditional_entropy(pairs) -> float:
    """Return the entropy of the first given the second, as the mean over the second."""
    groups = defaultdict(list)
    for x, y in pairs:
        groups[y].append(x)
    n = sum(map(len, groups.values()))
    return sum(len(group) / n * entropy(group) for group in groups.values())


def cumulative_entropy(values) -> float:
    """Return the integral of the distribution function, a step function, times its logarithm."""
    values = sorted(values)
    total = 0.0
    for low, high in pairwise(values):
        share = sum(value <= low for value in values) / len(values)
        total -= (high - low) * share * math.log2(share)
    return total
