"""Pairs of rows, samples and sets of examples against plain search, and hits by chance."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pexeso.transform import texts
from pexeso.transform.learning import chance
from pexeso.transform.learning import example_sets as module
from pexeso.transform.learning.chance import bits_of_few, bound_on_luck, hits_by_chance
from pexeso.transform.learning.example_sets import (
    MAX_PREFIX,
    ColumnSuffixes,
    FindingOptions,
    SharedPrefixes,
    example_sets,
    example_sets_by_starts,
    example_sets_by_words,
    find_row_pairs,
    sample_sizes,
    sample_texts,
    sorted_suffixes,
)
from pexeso.transform.learning.finding import find_program
from pexeso.transform.texts import TextTable


def times(n_rows: int, seed: int = 1) -> tuple[TextTable, TextTable]:
    drawn = random.Random(seed)
    parts = [(drawn.randrange(24), drawn.randrange(60), drawn.randrange(60)) for _ in range(n_rows)]
    parts = sorted(set(parts))
    keys = [f"{hour}:{minute}:{second}" for hour, minute, second in parts]
    columns = {
        name: [str(part[at]) for part in parts]
        for at, name in enumerate(("hour", "minute", "second"))
    }
    drawn.shuffle(keys)
    return TextTable.of(columns), TextTable.of({"time": keys})


def drawn_sets(sets):
    return [(group.target, rows, keys) for group, (rows, keys), _ in sets]


def test_rows_of_several_columns_are_paired_by_the_words_they_share():
    source, target = times(300)
    sets = drawn_sets(example_sets_by_words(source, target.columns, FindingOptions()))
    assert len(sets) > 5
    right = [
        all(sorted(key.split(":")) == sorted(row) for row, key in zip(rows, keys, strict=True))
        for _, rows, keys in sets
    ]
    assert sum(right) >= 0.9 * len(right)


def test_sets_are_the_same_for_a_seed_and_rows_in_them_differ():
    names = [f"{first} {last}" for first in ("Ann", "Bo", "Cyd") for last in ("Lee", "Ray", "Moe")]
    source = TextTable.of({"name": names})
    target = TextTable.of({"mail": [name.lower().replace(" ", ".") + "@a.us" for name in names]})

    def sets(seed):
        return drawn_sets(example_sets(source, target.columns, 3, FindingOptions(seed=seed)))

    assert sets(1) == sets(1)
    assert sets(1) != sets(2)
    for _, rows, keys in sets(1):
        assert len(set(rows)) == len(set(keys)) == len(rows)


def test_of_a_column_with_long_values_none_are_examples():
    source = TextTable.of({"text": [f"{n} " * 120 for n in range(5)]})
    target = TextTable.of({"key": [f"{n} {n}" for n in range(5)]})
    assert drawn_sets(example_sets(source, target.columns, 3, FindingOptions())) == []


def dates(n_rows: int, n_years: int) -> tuple[TextTable, TextTable]:
    """Return days in two forms; a fifth of them stand on both sides."""
    n_true = n_rows // 5
    days = np.random.default_rng(0).permutation(n_years * 365)[: 2 * n_rows - n_true]
    iso = np.datetime_as_string(np.datetime64("1000-01-01") + days.astype("timedelta64[D]"))
    turned = ["/".join(reversed(day.split("-"))) for day in iso.tolist()]
    return TextTable.of({"day": iso.tolist()[:n_rows]}), TextTable.of({"key": turned[-n_rows:]})


def test_in_samples_without_rare_pieces_pairs_with_equal_starts_tell(monkeypatch):
    source, target = dates(20_000, 1_200)
    options = FindingOptions()
    monkeypatch.setattr(module, "_WHOLE", 1_000)
    finding = find_program(source, target.columns, options)
    assert finding.accepted
    assert finding.program.of(["1234-05-17"]) == "17/05/1234"
    assert finding.n_keys == 4_000
    # The likeliest pairs alone are of one year, and of other days.
    sets = drawn_sets(example_sets(source, target.columns, 3, options))
    right = [
        all("/".join(reversed(row[0].split("-"))) == key for row, key in zip(*one, strict=True))
        for _, *one in sets
    ]
    assert not any(right)
    assert find_program(source, target.columns, options, thorough=False) is None


def test_columns_that_are_looked_at_as_a_whole_have_no_sets_by_starts(monkeypatch):
    source, target = dates(5_000, 1_200)
    assert not list(example_sets_by_starts(source, target.columns, 3, FindingOptions()))
    monkeypatch.setattr(module, "_WHOLE", 1_000)
    assert list(example_sets_by_starts(source, target.columns, 3, FindingOptions()))


drawn_words = st.lists(st.text("abc", max_size=6), max_size=7, unique=True)


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


@given(drawn_words, drawn_words, st.integers(1, 3))
def test_pairs_are_those_of_plain_search(sources, targets, min_length):
    got = found_pairs(sources, targets, min_length=min_length)
    assert got == plain_pairs(sources, targets, min_length)


words = st.text("ab ", max_size=9)


@given(st.lists(words, max_size=8))
def test_suffixes_are_in_order_and_know_what_they_share(texts):
    values, shared = sorted_suffixes(texts)
    places = sorted(
        (text[start:], number, start)
        for number, text in enumerate(texts)
        for start in range(len(text))
    )
    assert values.tolist() == [number for _, number, _ in places]
    suffixes = [suffix for suffix, _, _ in places]
    assert shared.tolist() == [
        _common(one, other) for one, other in zip(["", *suffixes], suffixes, strict=False)
    ]


def _common(one: str, other: str) -> int:
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return count


@given(st.lists(words, max_size=8), st.lists(words, max_size=8), st.lists(words, max_size=3))
def test_the_longest_prefix_and_its_holders_are_those_of_linear_search(sources, targets, others):
    prefixes, _ = ColumnSuffixes([sources, others, targets]).shared_prefixes(0, 2)
    got = sorted(
        zip(
            prefixes.sources.tolist(),
            prefixes.lengths.tolist(),
            prefixes.n_sources.tolist(),
            prefixes.n_targets.tolist(),
            strict=True,
        )
    )
    expected = []
    for number, text in enumerate(sources):
        for start in range(len(text)):
            hits = [
                text[start:end]
                for end in range(start + 1, len(text) + 1)
                if any(text[start:end] in target for target in targets)
            ]
            if hits:
                held = hits[-1]
                n_sources = sum(held in source for source in sources)
                n_targets = sum(held in target for target in targets)
                expected.append((number, len(held), n_sources, n_targets))
    assert got == sorted(expected)
    for place in range(len(prefixes.sources)):
        inside = set(prefixes.members[prefixes.first[place] : prefixes.last[place] + 1].tolist())
        assert len(inside) == prefixes.n_sources[place] + prefixes.n_targets[place]


@given(st.lists(st.lists(words, max_size=5), min_size=2, max_size=4))
def test_suffixes_of_two_columns_are_those_of_these_alone(columns):
    _compare_with_columns_alone(columns, [(0, 1), (0, len(columns) - 1)])


def test_suffixes_of_two_columns_of_thirty_are_those_of_these_alone():
    drawn = np.random.default_rng(5)
    sizes = drawn.integers(0, 40, 30)
    letters = [list("abcd"), list("efgh")]
    columns = [
        ["".join(drawn.choice(letters[at % 2], drawn.integers(0, 25))) for _ in range(size)]
        for at, size in enumerate(sizes)
    ]
    _compare_with_columns_alone(columns, [(0, 2), (1, 29), (3, 28), (14, 15)])


def _compare_with_columns_alone(columns, pairs):
    suffixes = ColumnSuffixes(columns)
    for one, other in pairs:
        prefixes, sides = suffixes.shared_prefixes(one, other)
        assert sides.tolist() == [1] * len(columns[one]) + [2] * len(columns[other])
        alone, _ = ColumnSuffixes([columns[one], columns[other]]).shared_prefixes(0, 1)
        for name in SharedPrefixes.__dataclass_fields__:
            assert getattr(prefixes, name).tolist() == getattr(alone, name).tolist(), name


@pytest.mark.parametrize("letters", ["ab", "abcdefghijklmnopqrstuvwxyz0123456789", "añ日😀"])
def test_prefixes_longer_than_the_limit_count_as_that_long(letters):
    text = "".join(np.random.default_rng(1).choice(list(letters), 3 * MAX_PREFIX))
    values, shared = sorted_suffixes([text, text])
    assert shared.max() == MAX_PREFIX
    assert (np.diff(values[shared == MAX_PREFIX]) >= 0).any()


def test_a_long_cell_of_one_letter_takes_no_longer_than_any():
    prefixes, _ = ColumnSuffixes([["a" * 100_000], ["a" * 100_000]]).shared_prefixes(0, 1)
    assert len(prefixes.sources) == 100_000
    assert set(prefixes.n_targets.tolist()) == {1}


@given(st.integers(1, 40), st.integers(1, 60), st.sampled_from([0.25, 0.5, 1.0]))
def test_no_smaller_samples_would_do(n_source, n_target, participation):
    source, target, expected = sample_sizes(n_source, n_target, participation=participation)
    enough = [
        one + other
        for one in range(1, n_source + 1)
        for other in range(1, n_target + 1)
        if one * other / n_source * participation >= 20 - 1e-9
    ]
    if enough:
        assert expected >= 20
        assert source + target == min(enough)
        assert source <= n_source
        assert target <= n_target
    else:
        assert (source, target) == (n_source, n_target)
    assert expected == pytest.approx(source * target / n_source * participation)


def test_too_few_pairs_are_as_rare_as_promised():
    n_rows, participation = 2_000, 0.5
    n_source, n_target, expected = sample_sizes(n_rows, n_rows, participation=participation)
    rng = np.random.default_rng(0)
    n_trials, n_pairs = 10_000, int(n_rows * participation)
    # How many of the pairs' sources are drawn, and of these, how many of the targets.
    sources = rng.hypergeometric(n_pairs, n_rows - n_pairs, n_source, n_trials)
    pairs = rng.hypergeometric(sources, n_rows - sources, n_target)
    assert pairs.mean() == pytest.approx(expected, rel=0.02)
    assert (pairs <= 4).mean() <= 0.0017


def test_empty_tables_need_no_sample():
    assert sample_sizes(0, 5) == (0, 0, 0.0)
    assert sample_sizes(5, 0) == (0, 0, 0.0)


@given(st.lists(st.text("abcdé ", max_size=4), unique=True), st.integers(0, 12), st.integers(0, 3))
def test_the_sample_depends_on_the_texts_alone(texts, size, seed):
    values = pa.array(texts, pa.string())
    places = sample_texts(values, size, seed)
    assert np.array_equal(places, np.unique(places))
    assert len(places) == min(size, len(texts))
    chosen = {texts[place] for place in places}
    backwards = texts[::-1]
    assert chosen == {
        backwards[place] for place in sample_texts(pa.array(backwards, pa.string()), size, seed)
    }


def test_another_seed_draws_other_texts_and_all_are_drawn_alike_often():
    values = pa.array([f"text {number}" for number in range(100)])
    counts = np.zeros(100, np.int64)
    for seed in range(1000):
        counts[sample_texts(values, 20, seed)] += 1
    assert counts.sum() == 20_000
    assert counts.min() > 140  # 200 on average, standard deviation 13
    assert counts.max() < 260


def test_texts_of_one_hash_are_taken_by_their_order(monkeypatch):
    monkeypatch.setattr(texts, "hash_bytes", lambda values, seed: np.zeros(len(values), "u8"))
    values = pa.array(["d", "a", "c", "b"])
    assert sample_texts(values, 2).tolist() == [1, 3]


def form(text: str) -> str:
    return "".join("0" if c.isdigit() else "a" if c.isalpha() else c for c in text)


def plain_hits(written: list[str], keys: list[str], following: float) -> float:
    """Return the expected hits from plain counters, one key after the other."""
    groups = defaultdict(list)
    for text in written:
        groups[form(text)].append(text)
    varied = {
        letter
        for texts in groups.values()
        for column in zip(*texts, strict=True)
        if len(set(column)) > 1 or len(texts) == 1
        for letter in column
        if letter.isalnum()
    }
    n_digits = sum(map(str.isdigit, varied))
    n_varied = {"0": n_digits, "a": len(varied) - n_digits}
    total = 0.0
    for key in keys:
        texts = groups.get(form(key), [])
        own = key in texts
        one, following_digits = float(len(texts)), 2
        columns = list(zip(*texts, strict=True))
        for place, letter in enumerate(key if texts else ""):
            first = columns.index(columns[place])
            count = Counter(columns[place])
            if first != place:
                one *= key[first] == letter
            elif form(letter) in n_varied and (len(count) > 1 or len(texts) == 1):
                others = len(texts) - own + n_varied[form(letter)]
                share = (count[letter] - own + 1) / others
                follows = not letter.isdigit() or following_digits > 0
                following_digits -= letter.isdigit()
                one *= min(1.0, following * share if follows else share)
            elif letter not in count:
                one = 0.0
        total += min(1.0, one)
    return total


@pytest.mark.parametrize("following", [1.0, 2.0])
@pytest.mark.parametrize("letters", ["01", "ab1-", "Aé9. x", "0123456789"])
def test_hits_are_those_of_plain_counters(letters, following):
    drawn = random.Random(3)
    for _ in range(150):
        written, keys = (
            sorted({"".join(drawn.choices(letters, k=drawn.randint(1, 4))) for _ in range(size)})
            for size in (drawn.randint(1, 30), drawn.randint(1, 30))
        )
        expected = plain_hits(written, keys, following)
        assert hits_by_chance(written, keys, following) == pytest.approx(expected, abs=1e-9)


def test_a_sample_tells_nearly_the_same(monkeypatch):
    drawn = random.Random(4)
    written = sorted({f"{drawn.randint(0, 99999):05}" for _ in range(9000)})
    keys = sorted({f"{drawn.randint(0, 99999):05}" for _ in range(7000)})
    whole = hits_by_chance(written, keys)
    monkeypatch.setattr(chance, "_MANY", 2000)
    assert hits_by_chance(written, keys) == pytest.approx(whole, rel=0.1)
    # That is what independent draws really hit.
    assert len({*written} & {*keys}) == pytest.approx(whole, rel=0.1)


def test_few_long_keys_say_more_than_few_digits_behind_a_constant():
    units = ["France.01", "United States.01", "United States.03"]
    assert bits_of_few(units, units, [*units, "France.03"], 4) > 30
    numbers = [f"T-AO-19{digit}" for digit in range(8)]
    digits = ["1", "2", "3", "5", "7"]
    assert bits_of_few(digits[:3], digits, numbers, 5) < 10, "too little for one operator"
    # What a key has in common with the one before it says nothing again.
    assert bits_of_few(numbers[:3], numbers, numbers, 5) < bits_of_few(units, units, numbers, 5)
    # Nor does what all of them end with.
    ended = [f"{digit})" for digit in digits]
    assert bits_of_few(ended[:3], ended, [f"Cup ({digit})" for digit in "123468"], 5) < 10


@pytest.mark.parametrize(
    ("source", "keys"),
    [
        (["1922", "1991", "1980", "1902", "1884"], [f"T-AO-19{at}" for at in range(6)]),
        (["2", "6", "26", "25", "15", "8", "1"], ["8:00pm", "1:00pm", "4:15pm", "2:00pm"]),
        (
            ["7.95", "7.97", "4.69", "3.31", "5.94", "1.2", "9.1", "12.5", "20.3", "18.7", "2.1"],
            [*(f"World Snooker Championship ({n})" for n in range(1, 12)), *"abcdefgh"],
        ),
        (["Ayon", "Tnabe", "Scott", "Albert"], ["AL", "TN", "SC", "SD", "NM", "AY"]),
    ],
    ids=["digits", "hours", "digits before a sign", "two letters"],
)
def test_few_short_pieces_are_refused(source, keys):
    fit = find_program(TextTable.of({"a": source}), TextTable.of({"b": keys}).columns)
    assert fit is None or not fit.accepted


STATES = "AL AR AZ CA CO DE GA IL IN LA MA MD ME MN MO MS NC NE NY PA SC SD TN VA"
TEAMS = "Canada Colombia Germany Japan Brazil Nigeria Norway Sweden Mexico France Spain China Chile"


def test_a_list_that_joins_less_than_a_third_joins_columns_that_are_named_alone():
    tables = TextTable.of({"a": STATES.split()}), TextTable.of({"b": TEAMS.split()}).columns
    for named in (True, False):
        fit = find_program(*tables, FindingOptions(named=named))
        assert fit is not None
        assert fit.accepted == named
    assert fit.why.startswith("less than a third")
    # Codes of the same countries are joined either way.
    codes = "CA CO DE JP BR NG NO SE MX FR ES CN CL US IT GB"
    countries = TextTable.of({"a": codes.split()})
    by_list = find_program(countries, tables[1], FindingOptions(named=False))
    assert by_list is not None
    assert by_list.accepted


@pytest.mark.parametrize(("hits", "expected"), [(4_000, 2_390.5), (400, 239.0), (3, 0.5), (40, 39)])
def test_the_bound_is_that_of_its_formula_for_many_hits_too(hits, expected):
    formula = math.exp(hits * math.log(expected / hits) + hits - expected)
    assert formula * 0.999 <= bound_on_luck(hits, expected) <= formula * math.e
