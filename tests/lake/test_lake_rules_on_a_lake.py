"""Tests of the rules on real values: how many they change, and that others keep their form."""

import pyarrow as pa
import pytest

from pexeso.lake.containers.reader import read_table
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.normalise.rules import DEFAULT_RULES

pytestmark = pytest.mark.lakes
EVERY = 12
"""Of so many tables one is looked at."""


@pytest.fixture(scope="module")
def columns(lake_folder):
    tables = sorted(lake_folder("wikitables").rglob("*.csv"))[::EVERY]
    return [column.drop_null().unique() for table in tables for column in read_table(table).columns]


@pytest.fixture(scope="module")
def forms(columns):
    return Normaliser().normalise_columns(columns)


def n_distinct(columns):
    return len(pa.concat_arrays(columns).drop_null().unique())


def test_what_is_normalised_keeps_its_form(forms):
    assert Normaliser().normalise_columns(forms) == forms


@pytest.mark.parametrize(
    ("rule", "min_count", "max_count"),
    [
        ("footnotes", 1, 40),
        ("opponents", 10, 60),
        ("ranks", 3, 40),
        ("dates", 150, 750),
        ("periods", 10, 100),
        ("addresses", 20, 150),
        ("ordinals", 10, 100),
        ("states", 5, 80),
    ],
)
def test_a_rule_changes_few_values_and_makes_few_of_them_equal(
    columns, forms, rule, min_count, max_count
):
    """Check that a rule changes few values and makes few of them equal.

    The bounds are a little wider than the counts observed, so that a rule that changes too much
    leaves them. The changed values were read.
    """
    way = "off" if rule in DEFAULT_RULES else "on"
    others = Normaliser().switched(**{way: [rule]}).normalise_columns(columns)
    on, off = (forms, others) if way == "off" else (others, forms)
    changed = {
        (before, after)
        for first, second in zip(off, on, strict=True)
        if first != second
        for before, after in zip(first.to_pylist(), second.to_pylist(), strict=True)
        if before != after
    }
    assert min_count <= len(changed) <= max_count
    assert n_distinct(off) - n_distinct(on) <= len(changed)
