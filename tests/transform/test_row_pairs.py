"""Pairs of rows by rare pieces: the source's worked figures, and plain search over all pieces."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from pexeso.transform.learning.example_sets import ColumnSuffixes, find_row_pairs
from tests.transform.test_program import PRESIDENTS

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


def test_presidents_of_the_source_pair_by_their_longest_names():
    got = found_pairs(list(PRESIDENTS), list(PRESIDENTS.values()))
    best = [(PRESIDENTS[source] == target, holders) for source, target, holders, _ in got[:5]]
    assert best == [(True, 1)] * 5
    assert [length for *_, length in got[:5]] == [12, 9, 7, 6, 6]


def test_a_session_in_two_rows_halves_the_score():
    sources = ["AXUG General Session", "How2 Session", "Master Planning Session"]
    targets = ["[UBAX03] Master Planning Session", "[UBAX05] Master Planning Session"]
    got = [pair for pair in found_pairs(sources, targets) if pair[0] == sources[2]]
    assert [(holders, length) for *_, holders, length in got] == [(2, 23), (2, 23)]


def test_units_of_the_source():
    sources = ["France.01", "France.03", "United States.01", "United States.02", "United States.03"]
    targets = [
        "France.01.MIX",
        "United States.01.Government",
        "United States.01.Education",
        "United States.03.PS-LRG",
        "United States.04.Retail",
    ]
    pairs = {pair[:2]: pair[2] for pair in found_pairs(sources, targets)}
    assert pairs["United States.01", "United States.01.Education"] == 2
    back = {pair[:2]: pair[2] for pair in found_pairs(targets, sources)}
    assert back["United States.04.Retail", "United States.01"] == 12
