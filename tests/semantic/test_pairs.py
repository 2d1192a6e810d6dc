"""Pairs of values: which of them need judging most, and those of very long texts."""

import numpy as np
import pyarrow as pa

from pexeso import build_index
from pexeso.semantic.pairs import PairTable

TITLES = [f"On the {word} of very long titles of reports" for word in ("use", "uses", "abuse")]


def explained(index) -> list:
    (match,) = index.search(TITLES * 3, max_distance=0.65, min_joinability=0.1)
    joined = match.join({"title": TITLES}, on="title")
    return [match.pairs(), match.kinds(), match.word_contributions(3), len(joined)]


def test_pairs_are_the_same_with_wide_offsets(tmp_path, monkeypatch):
    """Texts are more than offsets of 32 bits reach; the bound is small here."""
    lake = tmp_path / "lake"
    lake.mkdir()
    rows = [f"{title}.,{number}" for number, title in enumerate(TITLES * 2)]
    (lake / "a.csv").write_text("\n".join(["title,n", *rows]))
    aliases = tmp_path / "aliases.csv"
    aliases.write_text(f"alias,value\n{TITLES[0]},{TITLES[1]}\n")
    for options in ({}, {"aliases": aliases}):
        index = build_index(lake, tmp_path / "lake.pexeso", overwrite=bool(options), **options)
        plain = explained(index)
        assert len(plain[0]) >= 3
        with monkeypatch.context() as patched:
            patched.setattr("pexeso.store.arrays.MAX_BYTES", 10)
            assert explained(index) == plain


def table(text, distances):
    names = pa.array([f"v{at}" for at in range(len(text))])
    texts = pa.array([f"t{at}" for at in range(5)])
    kinds = np.zeros(len(text), np.int8)
    return PairTable(texts, np.array(text), names, names, *[np.array(distances)] * 2, kinds)


def test_of_each_text_the_nearest_pair_counts_and_the_farthest_of_these_come_first():
    pairs = table([0, 0, 1, 2, 2, 3, 4], [0.0, 0.9, 0.2, 0.3, 0.8, 0.1, 0.3])
    weakest = pairs.weakest(3)
    assert weakest.text.tolist() == [2, 4, 1]
    assert weakest.values.to_pylist() == ["v3", "v6", "v2"]
    assert len(pairs.weakest(9)) == 4


def test_where_all_texts_have_an_equal_value_there_is_none():
    assert len(table([0, 1, 1], [0.0, 0.0, 0.5]).weakest(3)) == 0
