"""Tests of the kinds of pairs (equal, near in letters, semantic), and of the counts."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pexeso.lake.normalise.aliases import AliasedNormaliser, Aliases
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.results import match_kinds as module
from pexeso.results.match_kinds import KINDS, LEAST_LIKENESS, MAX_LETTERS, KindCounts
from pexeso.results.matches import Pair
from pexeso.semantic.pairs import PairTable


def kinds_of(ours, theirs):
    kinds = module.kinds_of(pa.array(ours, pa.string()), pa.array(theirs, pa.string()))
    return [KINDS[kind] for kind in kinds]


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ("oslo", "oslo", "exact"),
        ("rome", "roma", "spelling"),  # 2 * 3 letters in common, of 8: 75 of 100, the border
        ("rom", "roi", "meaning"),  # 2 * 2 of 6: 67
        ("curie marie", "marie curie", "spelling"),  # in another order of words
        ("mendelev dmitri", "dmitri mendeleev", "spelling"),
        ("uk", "great britain", "meaning"),
        ("", "oslo", "meaning"),
    ],
)
def test_kinds_by_hand(one, other, kind):
    assert kinds_of([one], [other]) == [kind]
    assert kinds_of([other], [one]) == [kind]


def test_no_pairs_have_no_kinds():
    assert kinds_of([], []) == []


def longest_common(one: str, other: str) -> int:
    row = [0] * (len(other) + 1)
    for letter in one:
        row = _next_row(row, letter, other)
    return row[-1]


def _next_row(row: list[int], letter: str, other: str) -> list[int]:
    lengths = [0]
    for place, symbol in enumerate(other):
        lengths.append(row[place] + 1 if symbol == letter else max(row[place + 1], lengths[place]))
    return lengths


def likeness(one: str, other: str) -> float:
    return 200 * longest_common(one, other) / (len(one) + len(other))


WORDS = (
    st.text("abc ", min_size=1, max_size=10).map(lambda text: " ".join(text.split())).filter(bool)
)


@given(st.lists(st.tuples(WORDS, WORDS), max_size=5))
def test_a_kind_is_what_its_definition_says(pairs):
    kinds = kinds_of([one for one, _ in pairs], [other for _, other in pairs])
    for (one, other), kind in zip(pairs, kinds, strict=True):
        in_order = [" ".join(sorted(text.split())) for text in (one, other)]
        near = max(likeness(one, other), likeness(*in_order)) >= LEAST_LIKENESS - 1e-9
        assert kind == ("exact" if one == other else "spelling" if near else "meaning")


def test_of_very_long_values_the_first_letters_count():
    start = "ab" * (MAX_LETTERS // 2)
    assert kinds_of([start + "x" * 5000], [start + "y" * 5000]) == ["spelling"]


def test_any_number_at_once_gives_the_same(monkeypatch):
    ours = ["oslo", "rome", "uk", "bern", "curie marie"]
    theirs = ["oslo", "roma", "britain", "bern", "marie curie"]
    whole = kinds_of(ours, theirs)
    monkeypatch.setattr(module, "CHUNK_SIZE", 1)
    assert kinds_of(ours, theirs) == whole == ["exact", "spelling", "meaning", "exact", "spelling"]


TABLE = PairTable(
    pa.array(["Roma", "Xyz", "UK"]),
    np.array([0, 0, 2]),
    pa.array(["Rome", "ROMA", "Britain"]),
    pa.array(["rome", "roma", "britain"]),
    np.array([0.01, 0.02, 0.05]),
    np.array([0.01, 0.02, 0.05]),
    np.array([2, 0, 3], np.int8),
)


def test_a_row_has_the_closest_kind_of_its_pairs():
    counts = TABLE.count_kinds(np.array([3, 9, 1]))
    assert counts == KindCounts(
        {"exact": 1, "spelling": 1, "meaning": 1}, {"exact": 3, "spelling": 0, "meaning": 1}
    )
    assert counts.shares == {"exact": 0.75, "spelling": 0.0, "meaning": 0.25}
    assert list(counts.to_dict()) == ["exact", "spelling", "meaning"]


def test_pairs_by_an_alias_are_counted_where_there_are_any():
    normaliser = AliasedNormaliser(Normaliser(), Aliases.of(pa.array(["roma"]), pa.array(["Rome"])))
    table = PairTable(
        pa.array(["Roma", "ROME"]),
        np.array([0, 0, 1, 1]),
        pa.array(["Rome", "ROMA", "Roma", "Rom"]),
        pa.array(["rome"] * 3 + ["rom"]),
        np.zeros(4),
        np.zeros(4),
        np.array([0, 0, 0, 2], np.int8),
    ).with_aliases(normaliser)
    assert [pair.kind for pair in table.to_pairs()] == ["alias", "exact", "alias", "spelling"]
    assert table.count_kinds(np.array([3, 2])) == KindCounts(
        {"exact": 1, "alias": 2, "spelling": 1, "meaning": 0},
        {"exact": 3, "alias": 2, "spelling": 0, "meaning": 0},
    )
    assert list(table.count_kinds(np.array([3, 2])).to_dict()) == list(KINDS)


def test_a_table_of_pairs_gives_them_as_objects_the_first_or_all():
    assert TABLE.to_pairs() == [
        Pair("Roma", "Rome", 0.01, "rome", "spelling"),
        Pair("Roma", "ROMA", 0.02, "roma", "exact"),
        Pair("UK", "Britain", 0.05, "britain", "meaning"),
    ]
    assert TABLE.to_pairs(1) == TABLE.to_pairs()[:1]
    assert TABLE.take(TABLE.starts).to_pairs() == [TABLE.to_pairs()[0], TABLE.to_pairs()[2]]
    assert TABLE.is_matched.tolist() == [True, False, True]


def test_nothing_has_shares_of_zero():
    empty = TABLE.take(np.array([], np.int64))
    shares = empty.count_kinds(np.array([3, 9, 1])).shares
    assert shares == {"exact": 0.0, "spelling": 0.0, "meaning": 0.0}
    assert (len(empty), empty.to_pairs(), empty.is_matched.any()) == (0, [], False)
