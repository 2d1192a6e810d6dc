"""Sets of examples: those of the planted rule, drawn alike for a seed; rows by shared words."""

from __future__ import annotations

import random

from pexeso.transform.learning.example_sets import example_sets, example_sets_by_words
from pexeso.transform.learning.finding import find_program
from pexeso.transform.learning.options import FindingOptions
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


def test_hours_minutes_and_seconds_are_put_together():
    source, target = times(300)
    found = find_program(source, target.columns)
    assert found.accepted
    assert found.n_keys == source.n_rows
    assert found.program.of(("3", "12", "05")) == "3:12:05"


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
