"""Pieces of text that columns share with a query, against plain sets of Python."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from pexeso.transform.search.candidates import MAX_HOLDERS, MIN_LETTERS, MOST_PIECES, Q, QueryGrams

ALPHABETS = ("abAB", "abc -,", "añß東京", "😀éxyZ", "אבג ab")


def pieces(text: str, size: int) -> set[str]:
    return {text[at : at + size] for at in range(len(text) - size + 1)}


def shared(query: list[str], column: list[str]) -> list[list[set[tuple[str, str]]]]:
    """Return for each text of a column, and each query value, the pieces that they share."""
    lengths = {len(value) for value in query if MIN_LETTERS <= len(value) < Q}
    rows = []
    for text in (cell.lower() for cell in column):
        inside = pieces(text, Q).union(*(pieces(text, size) for size in lengths))
        whole = {text} if MIN_LETTERS <= len(text) < Q else set()
        row = []
        for value in (cell.lower() for cell in query):
            own = pieces(value, Q) | ({value} if MIN_LETTERS <= len(value) < Q else set())
            parts = set().union(*(pieces(value, size) for size in range(MIN_LETTERS, Q)))
            row.append(
                {("in", piece) for piece in own & inside} | {("of", e) for e in parts & whole}
            )
        rows.append(row)
    return rows


def compared(query: list[str], column: list[str]):
    """Return partners, strengths, and the counts of a column, all by sets."""
    table = shared(query, column)
    holders = Counter(piece for value in query_pieces(query) for piece in value)
    texts = Counter(piece for row in table for piece in set().union(*row))
    telling = {piece for piece in texts if holders[piece] * texts[piece] <= MAX_HOLDERS}
    partners, strengths, best = [], [], {}
    for text, row in zip(column, table, strict=True):
        counts = [
            0 if value in column or text in query else len(common & telling)
            for value, common in zip(query, row, strict=True)
        ]
        strength = max(counts)
        chosen = counts.index(strength) if strength else -1
        partners.append(chosen)
        strengths.append(strength)
        if strength:
            best[chosen] = max(best.get(chosen, 0), min(strength, MOST_PIECES))
    return partners, strengths, len(best), sum(best.values()), len(set(query) & set(column))


def query_pieces(query: list[str]) -> list[set[tuple[str, str]]]:
    sets = []
    for value in (cell.lower() for cell in query):
        own = pieces(value, Q) | ({value} if MIN_LETTERS <= len(value) < Q else set())
        parts = set().union(*(pieces(value, size) for size in range(MIN_LETTERS, Q)))
        sets.append({("in", piece) for piece in own} | {("of", piece) for piece in parts})
    return sets


@pytest.mark.parametrize("alphabet", ALPHABETS)
@pytest.mark.parametrize("seed", range(12))
def test_what_columns_share_is_what_sets_say(alphabet, seed):
    drawn = random.Random(f"{alphabet} {seed}")

    def texts(count: int) -> list[str]:
        made = ("".join(drawn.choices(alphabet, k=drawn.randint(1, 9))) for _ in range(count))
        return list(dict.fromkeys(made))

    query = texts(drawn.randint(1, 30))
    columns = [texts(drawn.randint(1, 25)) for _ in range(4)]
    bounds = np.concatenate([[0], np.cumsum([len(column) for column in columns])])
    grams = QueryGrams.of(pa.array(query, pa.large_string())).compare(
        pa.array([text for column in columns for text in column]), bounds
    )
    for at, column in enumerate(columns):
        partners, strengths, n_values, n_pieces, n_equal = compared(query, column)
        here = slice(bounds[at], bounds[at + 1])
        assert grams.partners[here].tolist() == partners
        assert grams.strengths[here].tolist() == strengths
        assert (grams.n_values[at], grams.n_pieces[at]) == (n_values, n_pieces)
        assert grams.n_equal[at] == n_equal


def test_pieces_of_case_and_of_letters_of_several_bytes_are_found():
    query = pa.array(["Ünal, Zoë (1961-)", "東京都千代田区"], pa.large_string())
    column = pa.array(["ZOË ÜNAL", "千代田区 (Tōkyō)"])
    grams = QueryGrams.of(query).compare(column, np.array([0, 2]))
    assert grams.partners.tolist() == [0, 1]


def test_a_short_value_is_found_inside_a_longer_one_and_the_other_way_round():
    grams = QueryGrams.of(pa.array(["no", "se-stockholm"], pa.large_string())).compare(
        pa.array(["no-oslo", "se"]), np.array([0, 2])
    )
    assert grams.partners.tolist() == [0, 1]


def test_nothing_and_very_long_texts():
    nothing = QueryGrams.of(pa.array([], pa.large_string()))
    grams = nothing.compare(pa.array(["abc", "x" * 100_000]), np.array([0, 1, 2]))
    assert grams.n_values.tolist() == [0, 0]
    long = QueryGrams.of(pa.array(["abcdefg", "y" * 100_000], pa.large_string()))
    empty = long.compare(pa.array([], pa.string()), np.array([0]))
    assert len(empty.n_values) == 0
    both = long.compare(pa.array(["z" * 100_000 + "abcdefg", "--abcdefg"]), np.array([0, 1, 2]))
    assert both.n_values.tolist() == [0, 1], "letters behind the first 500 are not looked at"
