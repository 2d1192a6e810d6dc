"""Pairs of rows by rare pieces, against plain search over all pieces."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from pexeso.transform.learning.example_sets import ColumnSuffixes, find_row_pairs

words = st.lists(st.text("abc", max_size=6), max_size=7, unique=True)


def found_pairs(sources, targets, **options):
    """Find pairs as texts with their holders and the length of their piece."""
    texts = [*sources, *targets]
    pairs = find_row_pairs(*ColumnSuffixes([sources, targets]).shared_prefixes(0, 1), **options)
    return [
        (texts[source], texts[target], holders, length)
        for source, target, holders, length in zip(
            pairs.sources.tolist(),
            pairs.targets.tolist(),
            pairs.holders.tolist(),
            pairs.lengths.tolist(),
            strict=True,
        )
    ]


def plain_pairs(sources, targets, min_length):
    pieces = {}
    for text in sources:
        hits = {}
        for start in range(len(text)):
            longer = [text[start:end] for end in range(start + min_length, len(text) + 1)]
            held = [piece for piece in longer if any(piece in target for target in targets)]
            if held:
                left = [source for source in sources if held[-1] in source]
                right = [target for target in targets if held[-1] in target]
                if len(left) * len(right) <= 100:
                    hits[held[-1]] = (len(left) * len(right), left, right)
        fewest = min((holders for holders, *_ in hits.values()), default=0)
        pieces |= {piece: hit for piece, hit in hits.items() if hit[0] == fewest}
    pairs = {}
    for piece, (holders, left, right) in pieces.items():
        for pair in product(left, right):
            pairs.setdefault(pair, []).append((holders, -len(piece)))
    ranked = []
    for (source, target), shared in pairs.items():
        holders, length = min(shared)
        more = len(shared) if holders > 1 else 0
        place = sources.index(source), targets.index(target)
        ranked.append((holders, -more, length, place, source, target))
    return [
        (source, target, holders, -length)
        for holders, _, length, _, source, target in sorted(ranked)
    ]


@given(words, words, st.integers(1, 3))
def test_pairs_are_those_of_plain_search(sources, targets, min_length):
    got = found_pairs(sources, targets, min_length=min_length)
    assert got == plain_pairs(sources, targets, min_length)
