"""Sets of examples: those of the planted rule, drawn alike for a seed; rows by shared words."""

from __future__ import annotations

import random

import numpy as np

from pexeso.transform.learning import example_sets as module
from pexeso.transform.learning.example_sets import (
    FindingOptions,
    example_sets,
    example_sets_by_starts,
    example_sets_by_words,
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
